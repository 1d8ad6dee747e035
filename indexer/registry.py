"""The numbers that Cydonia gave, from a project's own registry.

`<project>/.cydonia/state.db` (`entries.db` before) is SQLite and belongs to Cydonia: opening it, even for
reading, leaves files beside it and can make Cydonia's own writes fail. So it is copied, and only the copy
is opened. As it may come with a cloned repository it is treated as hostile.
"""

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from indexer.sources.files import opened

Numbers: TypeAlias = dict[int, tuple[str, str | None]]
"""By number, the kind and the id of what it was given to; an id of None is a tombstone."""

MAX_ROWS = 1_000_000
MAX_BYTES = 1 << 30
"""A registry with more rows or bytes than these is not one."""

MAX_SECONDS = 5.0
"""How long a query of a registry may take."""

MAX_VALUE_BYTES = 1 << 20
"""A registry with a longer value is not one either."""

MAX_NAME_CHARS = 1024
"""A kind or an id that is longer is none of Cydonia's."""

_TRIES = 5
_NAMES = ("state.db", "entries.db")
_SUFFIXES = ("", "-wal", "-journal")
_SUPER_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_BLOCK_BYTES = 1 << 20


class _Hostile(Exception):
    """The registry is not of the shape that Cydonia writes."""


def registry_signature(project: Path) -> tuple[tuple[int, int, int, int] | None, ...]:
    """Changes when the project's registry does; size, mtime, inode and device of each of its files."""
    return tuple(_signature(project / ".cydonia" / f"{name}{suffix}") for name in _NAMES for suffix in _SUFFIXES)


def read_registry(project: Path, scratch: Path) -> Numbers | None:
    """What each number was given to, by way of a copy in the folder `scratch`, which is removed again.

    None where nothing could be learnt: there is no registry, or it is damaged, hostile, of another shape,
    or written to all the time. What was known before then still holds.
    """
    try:
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryDirectory(dir=scratch, prefix="registry-") as folder:
            copy = Path(folder) / "copy.db"
            return _read(copy) if _copy(project, copy) else None
    except (OSError, sqlite3.Error, UnicodeDecodeError, _Hostile):
        # UnicodeDecodeError: SQLite quotes the damaged bytes in its message, and sqlite3 fails to decode that.
        return None


def _copy(project: Path, copy: Path) -> bool:
    """Copy the registry as it is at one moment; whether there is one, and there was such a moment."""
    for _ in range(_TRIES):
        before = registry_signature(project)
        name = next((name for name in _NAMES if _signature(project / ".cydonia" / name) is not None), None)
        if name is None:
            return False
        for suffix in _SUFFIXES:
            _copy_file(project / ".cydonia" / f"{name}{suffix}", copy.with_name(copy.name + suffix))
        if registry_signature(project) == before:
            return True
    return False


def _copy_file(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    try:
        with opened(source) as descriptor, target.open("xb") as file:
            if os.fstat(descriptor).st_size > MAX_BYTES:
                raise _Hostile
            while block := os.read(descriptor, _BLOCK_BYTES):
                file.write(block)
                if file.tell() > MAX_BYTES:
                    raise _Hostile
    except FileNotFoundError:
        return
    with target.open("rb") as file:
        # A journal may name a file that SQLite deletes after it was rolled back. Only transactions over several
        # databases write such journals, and Cydonia's are not: here it could name any file of the user's.
        file.seek(max(0, file.seek(0, os.SEEK_END) - len(_SUPER_JOURNAL_MAGIC)))
        if target.name.endswith("-journal") and file.read() == _SUPER_JOURNAL_MAGIC:
            raise _Hostile


def _read(copy: Path) -> Numbers:
    deadline = time.monotonic() + MAX_SECONDS
    with closing(sqlite3.connect(copy, isolation_level=None)) as database:
        database.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
        database.text_factory = lambda raw: raw.decode("utf-8", "replace")
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA cell_size_check = ON")
        database.execute("PRAGMA mmap_size = 0")
        _check_shape(database)
        rows = database.execute(
            "SELECT number, kind, id FROM main.entries WHERE typeof(number) = 'integer' AND number > 0"
            " AND typeof(kind) = 'text' AND length(kind) <= :chars"
            " AND (id IS NULL OR (typeof(id) = 'text' AND length(id) <= :chars)) LIMIT :rows",
            {"chars": MAX_NAME_CHARS, "rows": MAX_ROWS + 1},
        ).fetchall()
    if len(rows) > MAX_ROWS:
        raise _Hostile
    return {number: (kind, id_) for number, kind, id_ in rows}


def _check_shape(database: sqlite3.Connection) -> None:
    """Refuse an `entries` that computes: a view, a virtual table, generated columns.

    Raises:
        _Hostile: it is no plain table with the columns that are read.
    """
    tables = database.execute(
        "SELECT count(*) FROM main.sqlite_master WHERE name = 'entries' AND type = 'table' AND rootpage > 0"
    ).fetchone()
    hidden = {row[1]: row[6] for row in database.execute("PRAGMA main.table_xinfo('entries')")}
    if tables != (1,) or any(hidden.get(column) != 0 for column in ("number", "kind", "id")):
        raise _Hostile


def _signature(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev
