"""The numbers that Cydonia gave, from a project's own registry.

`<project>/.cydonia/state.db` (`entries.db` before) is SQLite and belongs to Cydonia: opening it, even for
reading, leaves files beside it and can make Cydonia's own writes fail. So it is copied, and only the copy
is opened. As it may come with a cloned repository it is treated as hostile.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from indexer.files import opened

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
    rows = read_table(
        [project / ".cydonia" / name for name in _NAMES],
        scratch,
        "entries",
        ("number", "kind", "id"),
        lambda _: (
            "SELECT number, kind, id FROM main.entries WHERE typeof(number) = 'integer' AND number > 0"
            f" AND typeof(kind) = 'text' AND length(kind) <= {MAX_NAME_CHARS}"
            f" AND (id IS NULL OR (typeof(id) = 'text' AND length(id) <= {MAX_NAME_CHARS}))"
        ),
        lambda: registry_signature(project),
    )
    return None if rows is None else {number: (kind, id_) for number, kind, id_ in rows}


def read_table(
    databases: Sequence[Path],
    scratch: Path,
    table: str,
    columns: Sequence[str],
    query: Callable[[Collection[str]], str],
    signature: Callable[[], object],
) -> list[tuple[Any, ...]] | None:
    """The rows of a table in the first of some SQLite databases that is there, by way of a copy in `scratch`.

    `query` makes the statement from the columns that the table has, of which there must be `columns`;
    `signature` changes when a database does. None where nothing could be learnt.
    """
    try:
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryDirectory(dir=scratch, prefix="registry-") as folder:
            copy = Path(folder) / "copy.db"
            return _read(copy, table, columns, query) if _copy(databases, copy, signature) else None
    except (OSError, sqlite3.Error, UnicodeDecodeError, _Hostile):
        # UnicodeDecodeError: SQLite quotes the damaged bytes in its message, and sqlite3 fails to decode that.
        return None


def _copy(databases: Sequence[Path], copy: Path, signature: Callable[[], object]) -> bool:
    """Copy a database as it is at one moment; whether there is one, and there was such a moment."""
    for _ in range(_TRIES):
        before = signature()
        database = next((database for database in databases if _signature(database) is not None), None)
        if database is None:
            return False
        for suffix in _SUFFIXES:
            _copy_file(database.with_name(database.name + suffix), copy.with_name(copy.name + suffix))
        if signature() == before:
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


def _read(
    copy: Path, table: str, columns: Sequence[str], query: Callable[[Collection[str]], str]
) -> list[tuple[Any, ...]]:
    deadline = time.monotonic() + MAX_SECONDS
    with closing(sqlite3.connect(copy, isolation_level=None)) as database:
        database.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
        database.text_factory = lambda raw: raw.decode("utf-8", "replace")
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA cell_size_check = ON")
        database.execute("PRAGMA mmap_size = 0")
        statement = query(_plain_columns(database, table, columns))
        rows = database.execute(f"{statement} LIMIT {MAX_ROWS + 1}").fetchall()
    if len(rows) > MAX_ROWS:
        raise _Hostile
    return rows


def _plain_columns(database: sqlite3.Connection, table: str, columns: Sequence[str]) -> set[str]:
    """The columns of a table; one that computes is refused: a view, a virtual table, generated columns.

    Raises:
        _Hostile: it is no plain table with the columns that are read.
    """
    tables = database.execute(
        "SELECT count(*) FROM main.sqlite_master WHERE name = ? AND type = 'table' AND rootpage > 0", (table,)
    ).fetchone()
    plain = {row[1] for row in database.execute(f"PRAGMA main.table_xinfo('{table}')") if row[6] == 0}
    if tables != (1,) or not plain.issuperset(columns):
        raise _Hostile
    return plain


def _signature(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev
