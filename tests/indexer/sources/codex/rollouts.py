"""Builders of invented rollout files, and what is read from them."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from indexer.sources.base import Append, Part, Patch, Root
from indexer.sources.codex import CodexSource
from schemas.items import Item, Kind, Status
from schemas.times import iso_utc
from tests.indexer.sources.model import StoredSession, transcript_of

START = 1_796_032_800_000
"""2026-11-30T10:00:00Z, when the first line of every file is written; each further one is a second later."""

THREAD = "019adf00-0000-7000-8000-000000000001"
OTHER = "019adf00-0000-7000-8000-000000000002"
CHILD = "019adf00-0000-7000-8000-000000000003"

Line = dict[str, Any]


def second(number: int) -> int:
    """The time of the line of this index."""
    return START + number * 1000


def line(type_: str, payload: Any, **more: Any) -> Line:
    return {"type": type_, "payload": payload, **more}


def meta(id_: str = THREAD, **more: Any) -> Line:
    payload = {
        "id": id_,
        "timestamp": "2026-11-30T09:59:59.000Z",
        "cwd": "/home/a/kettle",
        "originator": "codex_cli_rs",
        "cli_version": "0.150.0",
        "source": "cli",
        **more,
    }
    return line("session_meta", payload)


def spawned(parent: str = THREAD, **more: Any) -> Line:
    """The header of a subagent."""
    spawn = {"parent_thread_id": parent, "depth": 1, "agent_path": "/root/scout", "agent_nickname": "Scout"}
    return meta(CHILD, source={"subagent": {"thread_spawn": spawn}}, session_id=THREAD, **more)


def item(type_: str, **payload: Any) -> Line:
    return line("response_item", {"type": type_, **payload})


def event(type_: str, **payload: Any) -> Line:
    return line("event_msg", {"type": type_, **payload})


def shown(type_: str, id_: str = "i1", **content: Any) -> Line:
    """An `item_completed` of a paginated file."""
    told = {"type": type_, "id": id_, **content}
    return event("item_completed", thread_id=THREAD, turn_id="T1", item=told, completed_at_ms=START)


def context(turn_id: str | None = None, **more: Any) -> Line:
    named = {} if turn_id is None else {"turn_id": turn_id}
    return line("turn_context", {**named, "cwd": "/home/a/kettle", "model": "some-model", **more})


def started(turn_id: str) -> Line:
    return event("task_started", turn_id=turn_id, started_at=START // 1000)


def complete(turn_id: str, **more: Any) -> Line:
    return event("task_complete", turn_id=turn_id, last_agent_message=None, **more)


def user_item(*texts: str) -> Line:
    return item("message", role="user", content=[{"type": "input_text", "text": text} for text in texts])


def user_event(message: str, **more: Any) -> Line:
    return event("user_message", message=message, **more)


def user(message: str) -> list[Line]:
    """A message as it is written: what goes to the model, and then what was shown."""
    return [user_item(message), user_event(message)]


def agent(text: str) -> Line:
    return item("message", role="assistant", content=[{"type": "output_text", "text": text}])


def agent_event(message: str) -> Line:
    return event("agent_message", message=message)


def reasoning(*summary: str, **more: Any) -> Line:
    return item(
        "reasoning",
        summary=[{"type": "summary_text", "text": text} for text in summary],
        **{"content": None, "encrypted_content": "gAAAA", **more},
    )


def call(name: str, arguments: Any, id_: str = "c1", **more: Any) -> Line:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return item("function_call", name=name, arguments=written, call_id=id_, **more)


def custom_call(name: str, input_: str, id_: str = "c1") -> Line:
    return item("custom_tool_call", name=name, input=input_, call_id=id_, status="completed")


def output(text: Any, id_: str = "c1") -> Line:
    return item("function_call_output", call_id=id_, output=text)


def shell_output(text: str, code: int = 0) -> str:
    """An output under the header that shells write."""
    return (
        f"Chunk ID: 1a2b3c\nWall time: 0.0421 seconds\nProcess exited with code {code}\n"
        f"Original token count: 12\nOutput:\n{text}"
    )


def encoded(lines: Iterable[Line | bytes], *, first: int = 0) -> bytes:
    """The lines of a file, each stamped a second after the one before."""
    raw = []
    for number, one in enumerate(lines, first):
        if isinstance(one, dict):
            stamped = (
                one if "timestamp" in one or "payload" not in one else {"timestamp": iso_utc(second(number)), **one}
            )
            one = json.dumps(stamped, ensure_ascii=False, separators=(",", ":")).encode()
        raw.append(one + b"\n")
    return b"".join(raw)


def file_name(thread: str = THREAD, rollout: str | None = None, stamp: str = "2026-11-30T10-00-00") -> str:
    return f"rollout-{stamp}-{thread}{'' if rollout is None else f'_{rollout}'}.jsonl"


class CodexHome:
    """A Codex home in a test's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sessions = path / "sessions"
        self.archived = path / "archived_sessions"
        self.day = self.sessions / "2026" / "11" / "30"
        self.day.mkdir(parents=True)
        self.source = CodexSource([path])

    def write(self, *lines: Line | bytes, thread: str = THREAD, **name: Any) -> Path:
        path = self.day / file_name(thread, **name)
        path.write_bytes(encoded(lines))
        return path

    def append(self, path: Path, *lines: Line | bytes, first: int = 100) -> None:
        with path.open("ab") as file:
            file.write(encoded(lines, first=first))

    def root_of(self, path: Path) -> Root:
        folder = self.archived if path.is_relative_to(self.archived) else self.sessions
        return Root(folder)

    def listed(self) -> list[Path]:
        """All files that are to be read."""
        roots = [root for root in self.source.roots() if root.path.is_dir()]
        return [transcript.path for root in roots for transcript in self.source.transcripts(root)]

    def read_on(self, path: Path, session: "ReadSession", settle_ms: int = 0) -> int:
        transcript = transcript_of(path, self.root_of(path))
        return session.apply_all(self.source.read(transcript, session.checkpoint, settle_ms=settle_ms))

    def read(self, path: Path) -> "ReadSession":
        session = ReadSession()
        self.read_on(path, session)
        return session

    def session(self, *lines: Line | bytes, header: Line | None = None, **name: Any) -> "ReadSession":
        """The session of a file with these lines behind its header."""
        return self.read(self.write(meta() if header is None else header, *lines, **name))


class ReadSession(StoredSession):
    """A session that also keeps where its turns come from, and which of its calls started agents."""

    def __init__(self) -> None:
        super().__init__()
        self.origins: dict[int, str | None] = {}
        self.copies: set[int] = set()
        self.agents: dict[str, str | None] = {}
        self.changes: list[Append | Patch] = []

    def apply(self, part: Part) -> None:
        super().apply(part)
        for change in part.changes:
            self.changes.append(change)
            if isinstance(change, Append):
                self.origins[change.turn] = change.origin
                self.copies -= {change.turn}
                self.copies |= {change.turn} if change.is_copy else set()
        for started_agent in part.calls:
            place = self.turns[started_agent.turn - 1].items[started_agent.index]
            assert place.kind is Kind.TOOL
            self.agents[started_agent.id] = started_agent.session_id
        self.origins = {turn: origin for turn, origin in self.origins.items() if turn <= len(self.turns)}
        self.copies = {turn for turn in self.copies if turn <= len(self.turns)}

    @property
    def prompts(self) -> list[str | None]:
        """The messages that started the turns; None where a turn began without one."""
        return [turn.items[0].text if turn.items[0].kind is Kind.USER else None for turn in self.turns]

    @property
    def items(self) -> list[Item]:
        return [one for turn in self.turns for one in turn.items]

    def of(self, kind: Kind) -> list[Item]:
        return [one for one in self.items if one.kind is kind]

    @property
    def notices(self) -> list[str | None]:
        return [one.text for one in self.of(Kind.NOTICE)]

    @property
    def tools(self) -> list[tuple[str | None, Status | None]]:
        return [(one.label, one.status) for one in self.of(Kind.TOOL)]

    @property
    def why_skipped(self) -> list[str]:
        return [skipped.reason for skipped in self.skipped]

    @property
    def state(self) -> dict[str, Any]:
        """All that a reader sees, to be compared."""
        return {
            "turns": self.turns,
            "facts": self.facts,
            "origins": self.origins,
            "copies": self.copies,
            "agents": self.agents,
        }


def touch_later(path: Path, seconds: int = 60) -> None:
    """Have a file look as if it was written later than it was."""
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + seconds * 1_000_000_000))
