"""Cydonia's session records: `<project>/.cydonia/sessions/*.json`, each rewritten whole at every change.

A record is written over itself, up to 60 times a second, so that many reads meet it empty or cut
(`whole` tells them). A session's key is `<project's path>/<file's stem>`, so that a record which was copied
to another project, or carries another's `id`, stays a session of its own.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from indexer.files import opened
from indexer.sources.base import Checkpoint, Part, Root, SessionFacts, Skipped, Transcript
from indexer.sources.files import listed
from indexer.sources.values import seconds_as_ms, text
from indexer.sources.whole import Document, Turn, parts_of, read_document
from schemas.errors import quoted
from schemas.items import Item, Kind, Status
from schemas.texts import trimmed

SESSIONS_FOLDER = Path(".cydonia", "sessions")

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
        record = read_document(transcript.path, since, list_key="items", settle_ms=settle_ms)
        if record is not None:
            turns, skipped = _turns(record.fields, _first_ms(transcript.path.stem, record))
            yield from parts_of(record, _facts(transcript, record.fields), turns, skipped)

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


def _is_record(name: str) -> bool:
    return name.endswith(".json")


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


def _first_ms(stem: str, record: Document) -> int:
    """The time of turns before the first one whose time is known."""
    stamp = _STAMP.fullmatch(stem)
    if stamp:
        return int(stamp[1])
    updated_ms = seconds_as_ms(record.fields.get("updated"))
    return record.mtime_ns // 1_000_000 if updated_ms is None else updated_ms


def _turns(record: dict[str, Any], first_ms: int) -> tuple[list[Turn], list[Skipped]]:
    """The turns: a run of items up to the next `User`, unless all of it is `Process`.

    An item that is not understood is kept out of its turn, but makes a run a turn as any other does: the
    numbers are Cydonia's, which does understand it.
    """
    sent_at = record.get("sent_at")
    if not isinstance(sent_at, dict):
        sent_at = {}
    turns: list[Turn] = []
    skipped: list[Skipped] = []
    leading: list[Item] = []
    copied = _copied_items(record)
    at_ms = first_ms
    for index, raw in enumerate(record["items"]):
        tag, payload = _untagged(raw)
        sent_ms = seconds_as_ms(sent_at.get(str(index))) if tag == "User" else None
        item = _item(tag, payload, sent_ms, skipped)
        if tag == "User" or (not turns and tag != "Process"):
            at_ms = at_ms if sent_ms is None else sent_ms
            turns.append(Turn(at_ms, [] if tag == "User" else leading))
        if item is not None:
            (turns[-1].items if turns else leading).append(item)
        if turns:
            turns[-1].is_copy = index < copied
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
