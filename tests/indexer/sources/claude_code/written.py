"""Invented transcripts, line by line, and what was read from them."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from indexer.sources.base import Call, Part, Root, SessionFacts, Side
from indexer.sources.claude_code import ClaudeCodeSource
from schemas.items import Kind
from schemas.times import iso_utc
from tests.indexer.sources.model import StoredSession, transcript_of

TEN = 1_796_032_800_000
"""2026-11-30T10:00:00Z, the time of line 0; each line is a second later."""

CWD = "/home/a/kettle"
SESSION = "0b9d4a3e-5f7c-4c1e-9a52-7d1e0c7f2a11"
VERSION = "2.1.150"

Line = dict[str, Any] | bytes


def user(content: Any = "", **more: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": content}, **more}


def agent(*blocks: Any, id: str | None = "msg_1", **more: Any) -> dict[str, Any]:
    """A line of an answer; a block that is a string is text."""
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    message = {"id": id, "model": "model-a", "role": "assistant", "content": content, "stop_reason": None}
    return {"type": "assistant", "message": message, "requestId": "req_1", **more}


def call(id: str, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def result(id: str, content: Any = "done", *, more: Any = None, **block: Any) -> dict[str, Any]:
    line = user([{"type": "tool_result", "tool_use_id": id, "content": content, **block}])
    return line if more is None else {**line, "toolUseResult": more}


def system(subtype: str | None, **more: Any) -> dict[str, Any]:
    return {"type": "system", **({} if subtype is None else {"subtype": subtype}), **more}


def attachment(type: str, /, *, line: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {"type": "attachment", "attachment": {"type": type, **fields}, **(line or {})}


def sidecar(type: str, **fields: Any) -> dict[str, Any]:
    return {"type": type, "uuid": None, "timestamp": None, **fields}


def at(second: int) -> str:
    return iso_utc(TEN + second * 1000)


@dataclass
class ReadSession(StoredSession):
    """What was read of a file: its session, the sessions beside it by id, and calls of subagents by id."""

    sides: dict[str, StoredSession] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)

    def apply(self, part: Part) -> None:
        super().apply(part)
        for side in part.sides:
            self.sides.setdefault(side.facts.session_id, StoredSession()).apply(_part(side))
        self.calls |= {call.id: call for call in part.calls}

    @property
    def kinds(self) -> list[list[str]]:
        return [[item.kind.value for item in turn.items] for turn in self.turns]

    @property
    def said(self) -> list[list[tuple[str, str | None]]]:
        """For each turn its items, as kind and text, label, or output of a process."""
        return [
            [
                (item.kind.value, item.output if item.kind is Kind.PROCESS else item.text or item.label)
                for item in turn.items
            ]
            for turn in self.turns
        ]

    @property
    def the_facts(self) -> SessionFacts:
        assert self.facts is not None
        return self.facts


def _part(side: Side) -> Part:
    return Part(side.facts, side.changes, {}, turns=side.turns)


@dataclass
class Written:
    """A transcript that is being written. A line gets what is usual unless it says otherwise; None leaves it out."""

    path: Path
    root: Root
    source: ClaudeCodeSource
    count: int = 0
    usual: dict[str, Any] = field(default_factory=dict)

    def encoded(self, *lines: Line) -> bytes:
        raw = []
        for line in lines:
            if isinstance(line, dict):
                envelope = {
                    "parentUuid": f"u{self.count - 1}" if self.count else None,
                    "isSidechain": False,
                    "userType": "external",
                    "cwd": CWD,
                    "sessionId": SESSION,
                    "version": VERSION,
                    "gitBranch": "main",
                    "uuid": f"u{self.count}",
                    "timestamp": at(self.count),
                }
                values = {**envelope, **self.usual, **line}
                kept = {
                    key: value for key, value in values.items() if value is not None or key in ("parentUuid", "message")
                }
                line = json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()
                self.count += 1
            raw.append(line + b"\n")
        return b"".join(raw)

    def add(self, *lines: Line) -> None:
        self.add_bytes(self.encoded(*lines))

    def add_bytes(self, raw: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(raw)

    def read(self, *lines: Line) -> ReadSession:
        """Add lines, and read the whole."""
        self.add(*lines)
        return self.read_on(ReadSession())

    def read_on(self, session: ReadSession, *, settle_ms: int = 0) -> ReadSession:
        transcript = transcript_of(self.path, self.root)
        session.apply_all(self.source.read(transcript, session.checkpoint, settle_ms=settle_ms))
        return session

    def beside(self, name: str, **usual: Any) -> "Written":
        """Another transcript, by its path below `projects`."""
        return Written(self.root.path / name, self.root, self.source, usual=usual)

    @property
    def folder(self) -> Path:
        return self.path.parent


def written_in(config: Path) -> Written:
    source = ClaudeCodeSource([config])
    root = source.roots()[0]
    return Written(root.path / "-home-a-kettle" / f"{SESSION}.jsonl", root, source)


def age(path: Path, seconds: int) -> None:
    """Make a file so old."""
    then = path.stat().st_mtime_ns - seconds * 10**9
    os.utime(path, ns=(then, then))
