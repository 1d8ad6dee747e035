"""The files of one Codex home, and which of them is which thread's."""

import os
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexer.decode import BadJson, decode_object
from indexer.files import opened
from indexer.sources.base import Root, Transcript, Unreadable
from indexer.sources.codex import lines
from indexer.sources.codex.compressed import CompressedTail
from indexer.sources.codex.header import Header, header_of, is_bare_header
from indexer.sources.codex.lines import Sort
from indexer.sources.codex.names import FOLDERS, RolloutName, is_rollout, rollout_name
from indexer.sources.codex.titles import FILE, SessionIndex, ThreadDatabase
from indexer.sources.codex.values import fields
from indexer.sources.files import listed
from indexer.sources.values import text
from indexer.tail import Position, Tail
from schemas.times import parse_iso

RESCAN_SECONDS = 5.0
"""A file that another one names and that is not known is looked for no more often than this."""

MAX_HEADER_BYTES = 1 << 26

MAX_END_BYTES = 1 << 16
"""How much of a file's end is looked through for the time of its last line."""


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    name: RolloutName


class Home:
    """`~/.codex` or another folder like it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        """Held while the files are listed or added to: events come on another thread than reads."""
        self.names = SessionIndex(path / FILE)
        self.database = ThreadDatabase(path)
        self._files: dict[str, _File] = {}
        """By path, as texts: a path takes ten times as long to be hashed."""
        self._threads: dict[str, list[_File]] = {}
        self._scanned_at: float | None = None
        self._turn_ids: dict[Path, tuple[set[str], Position | None]] = {}

    def transcripts(self, root: Root) -> Iterator[Transcript]:
        """The files of a root that are to be read, of each thread one.

        Raises:
            OSError: as `listed` does.
        """
        failure: OSError | None = None
        found: list[Transcript] = []
        try:
            found += listed(root, is_rollout)
        except OSError as error:
            failure = error
        self._know([*(transcript.path for transcript in found), *self._elsewhere(root.path)])
        yield from (transcript for transcript in found if self.is_current(transcript.path))
        if failure is not None:
            raise failure

    def is_current(self, path: Path) -> bool:
        """Whether a thread is read from this file: not one that another generation, copy or form has replaced."""
        with self._lock:
            self._add(path)
            file = self._files.get(str(path))
            beside = [] if file is None else list(self._threads[_group(file)])
        if file is None:
            return False
        if file.name.is_compressed and os.path.lexists(path.with_suffix("")):
            return False  # unpacked to go on; for a moment both are there
        return _current(beside) == file

    def others(self, path: Path) -> list[Path]:
        """The other files of the thread that is read from this one."""
        with self._lock:
            file = self._files.get(str(path))
            return [] if file is None else [one.path for one in self._threads[_group(file)] if one != file]

    def find(self, rollout: str) -> Path | None:
        """The file of a generation by its own id."""
        for is_anew in (False, True):
            if is_anew and not self._rescan():
                break
            with self._lock:
                named = [file for file in self._files.values() if file.name.rollout == rollout]
            fitting = [file for file in named if _is_there(file)]
            if fitting:
                return (_current(fitting) or fitting[0]).path
        return None

    def turn_ids(self, thread: str) -> Collection[str] | None:
        """The ids of the program's turns in a thread's own files; None where there are none of these."""
        for is_anew in (False, True):
            if is_anew and not self._rescan():
                break
            with self._lock:
                named = [file for file in self._threads.get(thread, ()) if not file.name.is_document]
            files = [file for file in named if _is_there(file)]
            if files:
                found: set[str] = set()
                for file in files:
                    found |= self._turn_ids_in(file)
                return found
        return None

    def _know(self, paths: Iterable[Path]) -> None:
        found = list(paths)
        with self._lock:
            self._scanned_at = time.monotonic()
            self._files = {}
            self._threads = {}
            for path in found:
                self._add(path)

    def _add(self, path: Path) -> None:
        name = rollout_name(path.name)
        if str(path) not in self._files and name is not None:
            file = self._files[str(path)] = _File(path, name)
            self._threads.setdefault(_group(file), []).append(file)

    def _elsewhere(self, root: Path | None) -> Iterator[Path]:
        """The files of the other folders, as far as they can be listed: a thread may have some in each."""
        for folder in FOLDERS:
            if self.path / folder != root:
                for parent, _, names in os.walk(self.path / folder):
                    yield from (Path(parent, name) for name in names if is_rollout(name))

    def _rescan(self) -> bool:
        if self._scanned_at is not None and time.monotonic() - self._scanned_at < RESCAN_SECONDS:
            return False
        self._know(self._elsewhere(None))
        return True

    def _turn_ids_in(self, file: _File) -> set[str]:
        found, position = self._turn_ids.get(file.path, (set(), None))
        try:
            with tail_of(file.path, position, settle_ms=0, wanted=_wanted_for_turn_id) as tail:
                if tail.is_anew:
                    found = set()
                for line in tail:
                    if (turn_id := _turn_id(line.raw)) is not None:
                        found.add(turn_id)
                self._turn_ids[file.path] = found, tail.position
        except (OSError, Unreadable):
            return found
        return found


def tail_of(path: Path, since: Position | None = None, **how: Any) -> Tail:
    """The lines of a file, whatever its form."""
    kind = CompressedTail if path.name.endswith(".zst") else Tail
    return kind(path, since, **how)


def read_header(path: Path, name: RolloutName) -> Header | None:
    """The header in the first line of a file, None where it has none.

    Raises:
        OSError, Unreadable: it cannot be read.
    """
    try:
        value = decode_object(_first_line(path))
    except BadJson:
        return None
    if value.get("type") == "session_meta":
        return header_of(fields(value.get("payload")), name)
    return header_of(value, name) if is_bare_header(value) else None


def _first_line(path: Path) -> bytes:
    """The first line, empty where it has no end yet. It has tens of kilobytes; a block of a `Tail` would be more."""
    if path.name.endswith(".zst"):
        with tail_of(path) as tail:
            return next((line.raw for line in tail), b"")
    with opened(path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
        line = file.readline(MAX_HEADER_BYTES)
    return line if line.endswith(b"\n") else b""


def _group(file: _File) -> str:
    return file.name.thread or str(file.path)


def _current(files: list[_File]) -> _File | None:
    """The one of a thread's files to read it from: its newest generation, and of copies of that the newest."""
    if len(files) == 1:
        return files[0]
    there = [file for file in files if _is_there(file)]
    if not there:
        return None
    newest = max(there, key=lambda file: (file.name.stamp, _mtime_ns(file))).name.rollout
    copies = [file for file in there if file.name.rollout == newest]
    # A compressed file is never written to again: beside a plain one it is what that one was unpacked from.
    copies = [file for file in copies if not file.name.is_compressed] or copies
    return copies[0] if len(copies) == 1 else max(copies, key=lambda file: (_last_ms(file), str(file.path)))


def _is_there(file: _File) -> bool:
    return os.path.lexists(file.path)


def _last_ms(file: _File) -> int:
    """When the last line of a file was written; the file's own time where that cannot be told."""
    if not file.name.is_compressed:
        try:
            with opened(file.path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as end:
                end.seek(max(0, end.seek(0, os.SEEK_END) - MAX_END_BYTES))
                ends = end.read(MAX_END_BYTES).split(b"\n")
        except OSError:
            ends = []
        for line in reversed(ends):
            head = lines.head_of(line[: lines.BEGINNING])
            at_ms = parse_iso(head.stamp.decode("ascii", "replace")) if head is not None and head.stamp else None
            if at_ms is not None:
                return at_ms
    return _mtime_ns(file) // 1_000_000


def _mtime_ns(file: _File) -> int:
    try:
        return file.path.stat().st_mtime_ns
    except OSError:
        return 0


def _wanted_for_turn_id(beginning: bytes) -> int | None:
    head = lines.head_of(beginning)
    if head is None:
        return lines.NOTHING
    if head.sort not in (Sort.CONTEXT, Sort.TASK):
        return lines.NOTHING
    return lines.WHOLE if lines.turn_id_of(head) is None else lines.BEGINNING


def _turn_id(raw: bytes) -> str | None:
    head = lines.head_of(raw)
    if head is not None and (turn_id := lines.turn_id_of(head)) is not None:
        return turn_id
    try:
        return text(fields(decode_object(raw).get("payload")).get("turn_id"))
    except BadJson:
        return None
