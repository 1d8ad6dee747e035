"""Turn files: append-only JSON Lines that any program can write, `*.turns.jsonl` (`docs/turn-files.md`)."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from indexer.sources.base import (
    Append,
    Checkpoint,
    Part,
    Patch,
    Root,
    SessionFacts,
    Skipped,
    Transcript,
    Unsettled,
    Waiting,
)
from indexer.sources.completion import complete
from indexer.sources.files import holds, listed, outermost
from indexer.sources.line_objects import object_on
from indexer.sources.values import in_calendar
from indexer.tail import Line, Position, Tail
from schemas.errors import quoted
from schemas.items import Item, Kind, Status
from schemas.times import parse_iso
from schemas.turn_file import KEYS, MAX_ID_CHARS, SUFFIX, VERSION

PART_BYTES = 4_000_000
"""How much of a file goes into one part."""

MAX_UNKNOWN_KEYS = 8
"""How many unknown keys of one line are counted by name."""

_CHECKPOINT_VERSION = 1

TEXT_SHARE = 0.85
"""Of a file's bytes; the rest are keys, times and escapes."""


class TurnFileSource:
    """The turn files below some folders, at any depth."""

    name: ClassVar[str] = "turn-file"
    is_whole_record: ClassVar[bool] = False
    quiet_seconds: ClassVar[int | None] = None

    def __init__(self, folders: Sequence[Path], usual_folders: Sequence[Path] = ()) -> None:
        """`folders` were named by the user, the usual ones are looked into if they are there."""
        named = outermost(folders)
        usual = [folder for folder in usual_folders if not any(map(folder.is_relative_to, named))]
        self._roots = (*(Root(folder, is_named=True) for folder in named), *map(Root, usual))

    def roots(self) -> Sequence[Root]:
        return self._roots

    def state_files(self) -> Sequence[Path]:
        return ()

    def listed_projects(self) -> Sequence[Path] | None:
        return None

    def transcripts(self, root: Root) -> Iterator[Transcript]:
        return listed(root, is_turn_file)

    def owns(self, root: Root, path: Path) -> bool:
        return is_turn_file(path.name)

    def titles(self) -> Mapping[str, str]:
        return {}

    def text_bytes(self, transcript: Transcript) -> int:
        return int(transcript.size * TEXT_SHARE)

    def recorded_session(self, transcript: Transcript) -> str | None:
        return None

    def facts(self, transcript: Transcript) -> SessionFacts | None:
        with Tail(transcript.path) as tail:
            for line in tail:
                batch = _Batch(_State(), transcript)
                batch.take(line)
                return batch.state.header.facts() if batch.state.header else None
        return None

    def read(self, transcript: Transcript, since: Checkpoint | None, *, settle_ms: int = 2000) -> Iterator[Part]:
        state, position = _restored(since)
        with Tail(transcript.path, position, settle_ms=settle_ms) as tail:
            if tail.is_anew:
                state = _State()
            batch = _Batch(state, transcript, is_first=tail.is_anew)
            for line in tail:
                batch.take(line)
                if batch.size >= PART_BYTES and state.header is not None:
                    yield batch.part(tail.position, is_last=False)
                    batch = _Batch(state, transcript)
            if state.header is None:
                raise Waiting(batch.skipped)
            if state.is_anew or position is None or tail.position.offset > position.offset:
                yield batch.part(tail.position, is_last=True)
            if tail.is_torn:
                raise Unsettled


def is_turn_file(name: str) -> bool:
    """Whether a file of this name is a turn file."""
    return name.endswith(SUFFIX)


def turns_folder_of(folder: Path) -> Path | None:
    """The folder, where a turn file lies somewhere below it."""
    return folder if holds(folder, is_turn_file) else None


@dataclass(slots=True)
class _Header:
    """What the `session`, `title` and `archived` lines said so far."""

    id: str
    project: str
    title: str = ""
    agent: str | None = None
    is_archived: bool = False
    started_ms: int | None = None

    def facts(self) -> SessionFacts:
        return SessionFacts(
            key=self.id,
            session_id=self.id,
            project=Path(os.path.realpath(self.project)),
            title=self.title,
            agent=self.agent,
            is_archived=self.is_archived,
            started_ms=self.started_ms,
        )


@dataclass(slots=True)
class _State:
    """What must be remembered between two lines, and so between two reads."""

    header: _Header | None = None
    is_anew: bool = True
    """Whether this reading began at the file's beginning: its last part says how many turns there are."""
    turn: int = 0
    count: int = 0
    """Items in the turn."""
    turn_ms: int = 0
    last_ms: int | None = None
    """The time that an item without one gets."""
    open_tools: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Turn and index of the running tool of each id. There is never a second one: a line completes the first."""
    leading: list[Item] = field(default_factory=list)
    """Process items before the first turn: they belong to it where it starts without a message, else to none."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        state = cls(**value)
        state.header = _Header(**value["header"])
        state.open_tools = {id_: (turn, index) for id_, (turn, index) in value["open_tools"].items()}
        state.leading = [Item(**{**item, "kind": Kind(item["kind"])}) for item in value["leading"]]
        return state


def _restored(since: Checkpoint | None) -> tuple[_State, Position | None]:
    if since is None or since.get("version") != _CHECKPOINT_VERSION:
        return _State(), None
    return _State.from_json(since["state"]), Position.from_json(since["position"])


@dataclass(slots=True)
class _Piece:
    """The items of a turn that one part brings."""

    at_ms: int
    first: int
    items: list[Item] = field(default_factory=list)


class _Batch:
    """The lines of one part: what they change, and what of them was not understood."""

    def __init__(self, state: _State, transcript: Transcript, *, is_first: bool = False) -> None:
        self.state = state
        self._is_first = is_first
        """Whether it holds the file's first line."""
        self.size = 0
        """Bytes of the lines taken."""
        self._file_ms = transcript.mtime_ns // 1_000_000
        self._line = 0
        self._pieces: dict[int, _Piece] = {}
        """By turn. The turn under way is among them, as this part may be what ends it."""
        if state.turn:
            self._pieces[state.turn] = _Piece(state.turn_ms, state.count)
        self._patches: dict[tuple[int, int], Patch] = {}
        """Completed tools of earlier parts, by turn and index; one of this part is completed in its piece."""
        self.skipped: list[Skipped] = []

    def take(self, line: Line) -> None:
        self.size += len(line.raw) + 1
        self._line = line.number
        value = object_on(line, self._skip)
        if value is not None:
            self._take_object(value)

    def part(self, position: Position, *, is_last: bool) -> Part:
        """All of it, to be stored together with how far the file was read.

        In a reading from the beginning a turn is whole once the next one begins or the file ends; until then
        what an earlier reading had of it stays, so that nobody sees it half.
        """
        state = self.state
        assert state.header is not None
        was_anew, state.is_anew = state.is_anew, state.is_anew and not is_last
        appends = (
            Append(
                turn,
                piece.at_ms,
                piece.first,
                tuple(piece.items),
                is_whole=was_anew and (is_last or turn != state.turn),
            )
            for turn, piece in self._pieces.items()
        )
        return Part(
            facts=state.header.facts(),
            changes=(*self._patches.values(), *(append for append in appends if append.items or append.is_whole)),
            checkpoint={"version": _CHECKPOINT_VERSION, "state": state.as_json(), "position": position.as_json()},
            skipped=tuple(self.skipped),
            turns=state.turn if was_anew and is_last else None,
            is_from_start=self._is_first,
        )

    def _take_object(self, line: dict[str, Any]) -> None:
        kind = line.get("type")
        if not isinstance(kind, str):
            self._skip('no "type"')
            return
        if kind not in KEYS:
            self._skip(f'unknown type "{quoted(kind)}"')
            return
        header = self.state.header
        if header is None and kind != "session":
            self._skip("before the session line")
            return
        self._count_unknown_keys(line, KEYS[kind])
        match kind:
            case "session":
                self._take_session(line)
            case "title":
                if header is not None and (title := self._required_text(line)) is not None:
                    header.title = title
            case "archived":
                is_archived = line.get("value")
                if header is not None and isinstance(is_archived, bool):
                    header.is_archived = is_archived
                else:
                    self._skip('"value" is not true or false')
            case "tool":
                self._take_tool(line)
            case "process":
                command, output = self._text(line, "command"), self._text(line, "output")
                self._add(Item(Kind.PROCESS, command=command, output=output, at_ms=self._time(line)))
            case _:
                if (text := self._required_text(line)) is not None:
                    self._add(Item(Kind(kind), text=text, at_ms=self._time(line)))

    def _take_session(self, line: dict[str, Any]) -> None:
        version = line.get("version")
        if isinstance(version, int) and version > VERSION:
            self._skip(f"version {version}")
        elif version is not None and (not isinstance(version, int) or isinstance(version, bool) or version < 1):
            self._skip('"version" is not a version')
        id_, project = self._text(line, "id"), self._text(line, "project")
        if id_ is not None and not 1 <= len(id_) <= MAX_ID_CHARS:
            self._skip(f'"id" is not 1 to {MAX_ID_CHARS} characters')
            id_ = None
        if project is not None and (not project.startswith("/") or "\0" in project):
            self._skip('"project" is not an absolute path')
            project = None
        header = self.state.header
        if header is None:
            if id_ is None or project is None:
                self._skip('a session line without "id" and "project"')
                return
            header = self.state.header = _Header(id_, project)
            header.started_ms = self._time(line)
        else:
            if id_ not in (None, header.id):
                self._skip("the id of another session")
            header.project = project or header.project
        title, agent = self._text(line, "title"), self._text(line, "agent")
        header.title = header.title if title is None else title
        header.agent = header.agent if agent is None else agent

    def _take_tool(self, line: dict[str, Any]) -> None:
        id_, label = self._text(line, "id"), self._text(line, "label")
        given, output = self._text(line, "input"), self._text(line, "output")
        status = self._status(line)
        open_tools = self.state.open_tools
        place = None if id_ is None else open_tools.get(id_)
        if place is not None:
            complete(Patch(*place, label=label, status=status, input=given, output=output), self._pieces, self._patches)
        else:
            status = status or Status.RUNNING
            place = self._add(
                Item(Kind.TOOL, label=label, status=status, input=given, output=output, at_ms=self._time(line))
            )
        if id_ is not None and status in (Status.OK, Status.FAILED):
            open_tools.pop(id_, None)
        elif id_ is not None:
            open_tools[id_] = place

    def _add(self, item: Item) -> tuple[int, int]:
        """Put an item behind the others; its turn and index, (0, 0) where it has none yet."""
        state = self.state
        if item.kind is Kind.PROCESS and state.turn == 0:
            state.leading.append(item)
            return 0, 0
        if item.kind is Kind.USER or state.turn == 0:
            # Leading process items belong to a turn that starts without a message; before one they are no turn.
            items = [] if item.kind is Kind.USER else state.leading
            items.append(item)
            state.leading = []
            state.turn += 1
            state.turn_ms = self._file_ms if items[0].at_ms is None else items[0].at_ms
            state.count = len(items)
            self._pieces[state.turn] = _Piece(state.turn_ms, 0, items)
        else:
            self._pieces[state.turn].items.append(item)
            state.count += 1
        return state.turn, state.count - 1

    def _time(self, line: dict[str, Any]) -> int | None:
        """The line's own time, else that of the item before; a completed tool keeps the time it was opened."""
        written = self._text(line, "at")
        if written is not None:
            at_ms = in_calendar(parse_iso(written))
            if at_ms is None:
                self._skip('"at" is not a time')
            else:
                self.state.last_ms = at_ms
        return self.state.last_ms

    def _status(self, line: dict[str, Any]) -> Status | None:
        written = self._text(line, "status")
        if written is None:
            return None
        try:
            return Status(written)
        except ValueError:
            self._skip(f'unknown status "{quoted(written)}"')
            return None

    def _required_text(self, line: dict[str, Any]) -> str | None:
        text = self._text(line, "text")
        if line.get("text") is None:
            self._skip('no "text"')
        return text

    def _text(self, line: dict[str, Any], key: str) -> str | None:
        """A text; None where it is not given, or null, or something else (which is counted)."""
        value = line.get(key)
        if value is None or isinstance(value, str):
            return value
        self._skip(f'"{key}" is not a text')
        return None

    def _count_unknown_keys(self, line: dict[str, Any], known: frozenset[str]) -> None:
        unknown = [key for key in line if key not in known]
        for key in unknown[:MAX_UNKNOWN_KEYS]:
            self._skip(f'unknown key "{quoted(key)}"')
        if len(unknown) > MAX_UNKNOWN_KEYS:
            self._skip("more unknown keys")

    def _skip(self, reason: str) -> None:
        self.skipped.append(Skipped(reason, self._line))
