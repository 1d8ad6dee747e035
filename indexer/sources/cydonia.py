"""Cydonia's session records: `<project>/.cydonia/sessions/*.json`, each rewritten whole at every change.

A record is written over itself, up to 60 times a second, so that many reads meet it empty or cut. Such
a read says nothing. A session's key is `<project's path>/<file's stem>`, so that a record which was copied
to another project, or carries another's `id`, stays a session of its own.
"""

import os
import re
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from indexer.decode import BadJson, decode
from indexer.files import opened
from indexer.sources.base import (
    Append,
    Checkpoint,
    Part,
    Root,
    SessionFacts,
    Skipped,
    Transcript,
    Unreadable,
    Unsettled,
)
from indexer.sources.files import listed
from indexer.sources.values import seconds_as_ms, text
from schemas.errors import quoted
from schemas.items import Item, Kind, Status
from schemas.texts import trimmed

SESSIONS_FOLDER = Path(".cydonia", "sessions")

PART_CHARS = 4_000_000
"""About how much text goes into one part."""

_READ_BYTES = 1 << 24
_HEAD_BYTES = 4096
_SESSION_KEY = re.compile(rb'\n  "session": "([0-9A-Za-z._-]{1,128})"')
_STAMP = re.compile(r"([0-9]{13})(?:-[0-9]+)?")
_STATUSES = {"Running": Status.RUNNING, "Success": Status.OK, "Failure": Status.FAILED}

TEXT_SHARE = 0.75
"""Of a record's bytes; the rest are keys, indents and escapes."""


class CydoniaSource:
    """The records of the projects that Cydonia's state file lists, and of some more."""

    name: ClassVar[str] = "cydonia"
    is_whole_record: ClassVar[bool] = True
    quiet_seconds: ClassVar[int | None] = None

    def __init__(self, state_file: Path | None, more_projects: Sequence[Path] = ()) -> None:
        self._state_file = state_file
        self._more_projects = tuple(more_projects)
        self._listed: tuple[Path, ...] | None = None if state_file else ()
        """What the state file said when it could last be read; None: never."""

    def roots(self) -> Sequence[Root]:
        listed_now = self._read_state() or ()
        return [
            Root(project / SESSIONS_FOLDER, project=project, is_recursive=False)
            for project in dict.fromkeys((*listed_now, *self._more_projects))
        ]

    def state_files(self) -> Sequence[Path]:
        return () if self._state_file is None else (self._state_file,)

    def listed_projects(self) -> Sequence[Path] | None:
        """The open projects; None as long as the state file could not be read even once."""
        listed_now = self._read_state()
        return None if listed_now is None else list(dict.fromkeys((*listed_now, *self._more_projects)))

    def transcripts(self, root: Root) -> Iterator[Transcript]:
        return listed(root, _is_record)

    def owns(self, root: Root, path: Path) -> bool:
        return _is_record(path.name) and path.parent == root.path

    def titles(self) -> Mapping[str, str]:
        return {}

    def text_bytes(self, transcript: Transcript) -> int:
        return int(transcript.size * TEXT_SHARE)

    def recorded_session(self, transcript: Transcript) -> str | None:
        try:
            with opened(transcript.path) as descriptor:
                head = os.read(descriptor, _HEAD_BYTES)
        except OSError:
            return None
        # A record is printed with an indent of two: nothing but a key of its own stands behind one.
        found = _SESSION_KEY.search(head)
        return None if found is None else found[1].decode()

    def facts(self, transcript: Transcript) -> SessionFacts | None:
        return None

    def read(self, transcript: Transcript, since: Checkpoint | None, *, settle_ms: int = 2000) -> Iterator[Part]:
        content = _read_whole(transcript.path, None if since is None else since.get("signature"))
        if content is None:
            return
        try:
            record = _decode_record(content.raw)
        except BadJson as error:
            if abs(time.time_ns() - content.mtime_ns) < settle_ms * 1_000_000:
                raise Unsettled from error
            raise Unreadable(error.reason) from error
        yield from _parts(transcript, record, content)

    def _read_state(self) -> tuple[Path, ...] | None:
        """The projects that are listed now and are directories; what was known where that cannot be read."""
        if self._state_file is None:
            return self._listed
        try:
            state = tomllib.loads(self._state_file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
            return self._existing()
        projects = state.get("projects")
        if isinstance(projects, list):
            # Without the key the file was caught in a write: it is truncated first.
            paths = (Path(path) for path in projects if isinstance(path, str) and "\0" not in path)
            self._listed = tuple(Path(os.path.realpath(path)) for path in paths if path.is_absolute())
        return self._existing()

    def _existing(self) -> tuple[Path, ...] | None:
        # `Path.is_dir` would raise for one that may not be entered, or whose disk is gone, and so hide all others.
        return None if self._listed is None else tuple(project for project in self._listed if os.path.isdir(project))


@dataclass(frozen=True, slots=True)
class _Content:
    """A file's bytes, all of one moment."""

    raw: bytes
    signature: list[int]
    mtime_ns: int


def _is_record(name: str) -> bool:
    return name.endswith(".json")


def _read_whole(path: Path, known: list[int] | None) -> _Content | None:
    """Read a file that nobody wrote to meanwhile; None where its signature is the known one.

    Raises:
        Unsettled: somebody did.
        OSError: it cannot be read.
    """
    with opened(path) as descriptor:
        before = os.fstat(descriptor)
        if _signature(before) == known:
            return None
        blocks = []
        while block := os.read(descriptor, _READ_BYTES):
            blocks.append(block)
        after = os.fstat(descriptor)
    raw = b"".join(blocks)
    if _signature(before) != _signature(after) or len(raw) != after.st_size:
        raise Unsettled
    return _Content(raw, _signature(after), after.st_mtime_ns)


def _signature(stat: os.stat_result) -> list[int]:
    return [stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_dev]


def _decode_record(raw: bytes) -> dict[str, Any]:
    """The record.

    Raises:
        BadJson: empty, cut, or no record at all.
    """
    if not raw or raw.isspace():
        raise BadJson("empty")
    if not raw.rstrip().endswith(b"}"):  # tells most cut records without parsing them
        raise BadJson("not a JSON object, or cut")
    record = decode(raw)
    if not isinstance(record, dict):
        raise BadJson("not a JSON object")
    if not isinstance(record.get("items"), list):
        raise BadJson('no "items"')
    return record


def _parts(transcript: Transcript, record: dict[str, Any], content: _Content) -> Iterator[Part]:
    """The whole record, in parts; only the last one's checkpoint says that it was read."""
    facts = _facts(transcript, record)
    turns, skipped = _turns(record, _first_ms(transcript.path.stem, record, content))
    copied = _copied_items(record)
    changes: list[Append] = []
    size = 0
    is_first = True
    for number, turn in enumerate(turns, start=1):
        first = 0
        for index, item in enumerate(turn.items, start=1):
            size += _size(item)
            if size >= PART_CHARS:
                is_whole = index == len(turn.items)
                items = tuple(turn.items[first:index])
                changes.append(Append(number, turn.at_ms, first, items, is_whole, is_copy=turn.end <= copied))
                yield Part(facts, tuple(changes), {"signature": None}, is_from_start=is_first)
                changes, size, first, is_first = [], 0, index, False
        if first < len(turn.items) or not turn.items:
            items = tuple(turn.items[first:])
            changes.append(Append(number, turn.at_ms, first, items, is_whole=True, is_copy=turn.end <= copied))
    yield Part(
        facts,
        tuple(changes),
        {"signature": content.signature},
        tuple(skipped),
        turns=len(turns),
        is_from_start=is_first,
    )


def _copied_items(record: dict[str, Any]) -> int:
    """How many items of a fork were copied from the record that it was forked from; 0 where it is no fork."""
    fork = record.get("fork")
    before = fork.get("before") if isinstance(fork, dict) and text(fork.get("session")) is not None else None
    return before if isinstance(before, int) else 0


def _facts(transcript: Transcript, record: dict[str, Any]) -> SessionFacts:
    project = transcript.root.project or transcript.path.parent.parent.parent
    stem = transcript.path.stem
    name, title = text(record.get("name")), text(record.get("title"))
    fork = record.get("fork")
    stamp = _STAMP.fullmatch(stem)
    return SessionFacts(
        key=os.fsencode(f"{project}/{stem}").decode("utf-8", "backslashreplace"),
        session_id=os.fsencode(stem).decode("utf-8", "replace"),
        project=project,
        title=name if name is not None and trimmed(name) else title or "",
        agent=text(record.get("agent")),
        agent_id=text(record.get("agent_id")),
        is_archived=record.get("closed") is True,
        started_ms=int(stamp[1]) if stamp else None,
        forked_from=text(fork.get("session")) if isinstance(fork, dict) else None,
        agent_session=text(record.get("session")),
    )


def _first_ms(stem: str, record: dict[str, Any], content: _Content) -> int:
    """The time of turns before the first one whose time is known."""
    stamp = _STAMP.fullmatch(stem)
    if stamp:
        return int(stamp[1])
    updated_ms = seconds_as_ms(record.get("updated"))
    return content.mtime_ns // 1_000_000 if updated_ms is None else updated_ms


@dataclass(slots=True)
class _Turn:
    at_ms: int
    items: list[Item]
    end: int = 0
    """How many items of the record stand before what follows it."""


def _turns(record: dict[str, Any], first_ms: int) -> tuple[list[_Turn], list[Skipped]]:
    """The turns: a run of items up to the next `User`, unless all of it is `Process`.

    An item that is not understood is kept out of its turn, but makes a run a turn as any other does: the
    numbers are Cydonia's, which does understand it.
    """
    sent_at = record.get("sent_at")
    if not isinstance(sent_at, dict):
        sent_at = {}
    turns: list[_Turn] = []
    skipped: list[Skipped] = []
    leading: list[Item] = []
    at_ms = first_ms
    for index, raw in enumerate(record["items"]):
        tag, payload = _untagged(raw)
        sent_ms = seconds_as_ms(sent_at.get(str(index))) if tag == "User" else None
        item = _item(tag, payload, sent_ms, skipped)
        if tag == "User" or (not turns and tag != "Process"):
            at_ms = at_ms if sent_ms is None else sent_ms
            turns.append(_Turn(at_ms, [] if tag == "User" else leading))
        if item is not None:
            (turns[-1].items if turns else leading).append(item)
        if turns:
            turns[-1].end = index + 1
    return turns, skipped


def _untagged(raw: Any) -> tuple[str, Any]:
    """An item's tag and payload. The tag is empty where there is none, or more than one."""
    if isinstance(raw, str):
        return raw, None  # a variant without a payload
    if not isinstance(raw, dict):
        return "", None
    tags = list(raw) if len(raw) == 1 else [tag for tag in raw if tag in _TAGS]
    return (tags[0], raw[tags[0]]) if len(tags) == 1 else ("", None)


_TAGS = frozenset({"User", "Agent", "Thinking", "Tool", "Notice", "Process"})


def _item(tag: str, payload: Any, at_ms: int | None, skipped: list[Skipped]) -> Item | None:
    """The item; None, and counted, where it is not understood."""
    fields = payload if isinstance(payload, dict) else {}
    match tag, payload:
        case "User", str():
            return Item(Kind.USER, text=payload, at_ms=at_ms)
        case "Agent", str():
            return Item(Kind.AGENT, text=payload)
        case "Thinking", {"text": str(words)}:
            return Item(Kind.THINKING, text=words)
        case "Notice", {"text": str(words)}:
            return Item(Kind.NOTICE, text=words)
        case "Tool", dict():
            return Item(
                Kind.TOOL,
                label=text(fields.get("label")),
                status=_status(fields.get("status"), skipped),
                output=text(fields.get("output")),
            )
        case "Process", dict():
            return Item(Kind.PROCESS, command=text(fields.get("command")), output=text(fields.get("output")))
    reason = f'malformed item "{tag}"' if tag in _TAGS else f'unknown item "{quoted(tag)}"' if tag else "malformed item"
    skipped.append(Skipped(reason))
    return None


def _status(written: Any, skipped: list[Skipped]) -> Status:
    """A tool's status; one that is not understood leaves the tool running."""
    status = _STATUSES.get(written) if isinstance(written, str) else None
    if status is None:
        skipped.append(Skipped(f'unknown status "{quoted(written)}"' if isinstance(written, str) else "no status"))
        return Status.RUNNING
    return status


def _size(item: Item) -> int:
    return sum(len(part) for part in (item.text, item.label, item.output, item.command) if part is not None)
