"""The names of threads that stand beside their files: in `session_index.jsonl`, and in Codex's own database."""

import os
import re
import time
from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from indexer.decode import BadJson, decode_object
from indexer.registry import read_table
from indexer.sources.values import iso_as_ms, text
from indexer.tail import Tail

FILE = "session_index.jsonl"

LOOK_SECONDS = 60.0
MAX_NAME_CHARS = 400

_DATABASE = re.compile(r"state_([0-9]{1,6})\.sqlite")


class SessionIndex:
    """`{id, thread_name, updated_at}` a line, appended to; the newest of an id wins."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._signature: tuple[int, int, int] | None = None
        self._names: dict[str, tuple[str, int]] = {}

    def name_of(self, thread: str) -> tuple[str, int] | None:
        """The name, empty where it was taken away, and when it was given."""
        self._refresh()
        return self._names.get(thread)

    def all(self) -> dict[str, str]:
        """The names of all threads, empty where one was taken away."""
        self._refresh()
        return {thread: name.strip() for thread, (name, _) in self._names.items()}

    def _refresh(self) -> None:
        try:
            found = os.stat(self.path)
        except OSError:
            return  # a file that cannot be read now changes nothing
        signature = found.st_size, found.st_mtime_ns, found.st_ino
        if signature == self._signature:
            return
        try:
            self._names = _read(self.path)
        except OSError:
            return
        self._signature = signature


def _read(path: Path) -> dict[str, tuple[str, int]]:
    names: dict[str, tuple[str, int]] = {}
    with Tail(path, settle_ms=0) as tail:
        for line in tail:
            try:
                entry = decode_object(line.raw)
            except BadJson:
                continue
            thread, name = text(entry.get("id")), text(entry.get("thread_name"))
            at_ms = iso_as_ms(entry.get("updated_at")) or 0
            if thread is not None and at_ms >= names.get(thread, ("", 0))[1]:
                names[thread] = name or "", at_ms
    return names


class ThreadDatabase:
    """Table `threads` of `state_<number>.sqlite`, which is a rebuildable view, can be stale, and is read by copy.

    As it changes all the time while Codex runs, it is looked at once a minute at most.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._looked_at: float | None = None
        self._signature: object = None
        self._names: dict[str, str] = {}

    def name_of(self, thread: str) -> str:
        """The name that was given, or the title if it is more than the first message; else empty."""
        now = time.monotonic()
        if self._looked_at is None or now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            self._refresh()
        return self._names.get(thread, "")

    def _refresh(self) -> None:
        databases = _databases(self._home)
        signature = _signature(databases)
        if not databases or signature == self._signature:
            return
        with TemporaryDirectory(prefix="turndex-") as scratch:
            rows = read_table(databases, Path(scratch), "threads", ("id",), _query, lambda: _signature(databases))
        if rows is not None:
            self._signature = signature
            self._names = {
                thread: name or (title if title != first_message else "") or ""
                for thread, name, title, first_message in rows
                if isinstance(thread, str)
            }


def _databases(home: Path) -> list[Path]:
    """The databases of a home, the one with the highest number first."""
    found = [
        (int(named[1]), path)
        for folder in (home, home / "sqlite")
        for path in folder.glob("state_*.sqlite")
        if (named := _DATABASE.fullmatch(path.name))
    ]
    return [path for _, path in sorted(found, reverse=True)]


def _signature(databases: list[Path]) -> object:
    return [_stat(path.with_name(path.name + suffix)) for path in databases[:1] for suffix in ("", "-wal", "-journal")]


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def _query(columns: Collection[str]) -> str:
    wanted = ("name", "title", "first_user_message")
    shown = (
        f"CASE WHEN typeof({column}) = 'text' THEN substr({column}, 1, {MAX_NAME_CHARS}) END"
        if column in columns
        else "NULL"
        for column in wanted
    )
    return f"SELECT id, {', '.join(shown)} FROM main.threads"


def newest(*names: tuple[str, int] | None) -> str:
    """The name that was given last, empty where there is none."""
    given = [name for name in names if name is not None]
    return max(given, key=lambda name: name[1])[0].strip() if given else ""
