import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from indexer import registry
from indexer.registry import read_registry, registry_signature
from tests.indexer.sources.model import snapshot

TABLE = "CREATE TABLE entries (number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, id TEXT, UNIQUE(kind, id))"
ROWS = [(1, "article", "1789"), (2, "session", "1790000000100"), (5, "session", None)]
NUMBERS = {number: (kind, id_) for number, kind, id_ in ROWS}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "kettle"
    (project / ".cydonia").mkdir(parents=True)
    return project


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


@contextmanager
def registry_of(project: Path, *statements: str, name: str = "state.db") -> Iterator[sqlite3.Connection]:
    """A registry that stays open, as Cydonia keeps it."""
    with closing(sqlite3.connect(project / ".cydonia" / name, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)
        yield database


def filled(project: Path, name: str = "state.db") -> None:
    with registry_of(project, TABLE, name=name) as database:
        database.executemany("INSERT INTO entries VALUES (?, ?, ?)", ROWS)


@pytest.mark.parametrize("name", ["state.db", "entries.db"])
def test_numbers_kinds_ids_and_tombstones_are_read(project: Path, scratch: Path, name: str) -> None:
    filled(project, name)
    assert read_registry(project, scratch) == NUMBERS


def test_the_newer_name_wins(project: Path, scratch: Path) -> None:
    filled(project)
    with registry_of(project, TABLE, name="entries.db"):
        assert read_registry(project, scratch) == NUMBERS


@pytest.mark.parametrize("mode", ["WAL", "DELETE", "TRUNCATE", "PERSIST"])
def test_an_open_registry_is_read_and_nothing_changes_beside_it(project: Path, scratch: Path, mode: str) -> None:
    with registry_of(project, f"PRAGMA journal_mode = {mode}", TABLE) as database:
        database.executemany("INSERT INTO entries VALUES (?, ?, ?)", ROWS)
        before = snapshot(project)
        assert read_registry(project, scratch) == NUMBERS
        assert snapshot(project) == before
        database.execute("INSERT INTO entries VALUES (6, 'board', 'b')")
    assert list(scratch.iterdir()) == []
    assert scratch.stat().st_mode & 0o777 == 0o700


def test_an_unfinished_transaction_is_not_read(project: Path, scratch: Path) -> None:
    filled(project)
    with registry_of(project, "PRAGMA cache_size = 1", "BEGIN IMMEDIATE") as database:
        database.execute("DELETE FROM entries")
        database.executemany(
            "INSERT INTO entries (kind, id) VALUES ('board', ?)", [(str(n) * 99,) for n in range(2000)]
        )
        assert (project / ".cydonia" / "state.db-journal").stat().st_size > 0
        assert read_registry(project, scratch) == NUMBERS


def test_a_registry_that_changes_while_it_is_copied_is_copied_again(
    project: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(project)
    copy_file, copies = registry._copy_file, []

    def copy_and_change(source: Path, target: Path) -> None:
        copy_file(source, target)
        copies.append(source.name)
        if len(copies) == 1:
            with registry_of(project, "INSERT INTO entries VALUES (9, 'board', 'b')"):
                pass

    monkeypatch.setattr(registry, "_copy_file", copy_and_change)
    assert read_registry(project, scratch) == {**NUMBERS, 9: ("board", "b")}
    assert copies.count("state.db") == 2


def test_a_registry_that_is_written_to_all_the_time_tells_nothing(
    project: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(project)
    signatures = iter(range(1000))
    monkeypatch.setattr(registry, "registry_signature", lambda _project: next(signatures))
    assert read_registry(project, scratch) is None


@pytest.mark.parametrize(
    "statements",
    [
        (),
        ("CREATE TABLE other (number, kind, id)",),
        ("CREATE TABLE entries (number INTEGER PRIMARY KEY, kind TEXT)",),
        ("CREATE VIEW entries AS SELECT 1 AS number, 'session' AS kind, 'x' AS id",),
        ("CREATE VIRTUAL TABLE entries USING fts5(number, kind, id)",),
        (
            "CREATE TABLE entries (number INTEGER PRIMARY KEY, kind TEXT, "
            "id TEXT GENERATED ALWAYS AS (hex(kind)) VIRTUAL)",
        ),
        (
            "CREATE VIEW entries AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) "
            "SELECT n AS number, 'session' AS kind, n AS id FROM c",
        ),
    ],
)
def test_an_entries_of_another_shape_tells_nothing(project: Path, scratch: Path, statements: tuple[str, ...]) -> None:
    with registry_of(project, "PRAGMA user_version = 1", *statements):
        pass
    assert read_registry(project, scratch) is None
    assert list(scratch.iterdir()) == []


def test_values_of_another_type_are_left_out(project: Path, scratch: Path) -> None:
    with registry_of(project, "CREATE TABLE entries (number, kind, id)") as database:
        database.executemany(
            "INSERT INTO entries VALUES (?, ?, ?)",
            [
                (1, "session", "a"),
                ("two", "session", "b"),
                (3, b"session", "c"),
                (4, "session", b"d"),
                (5, None, "e"),
                (-6, "session", "f"),
                (7.5, "session", "g"),
                (8, "session", "h" * 5000),
                (2**63 - 1, "session", "i"),
            ],
        )
        database.execute("INSERT INTO entries VALUES (10, 'session', CAST(x'ff' AS TEXT))")
    assert read_registry(project, scratch) == {
        1: ("session", "a"),
        2**63 - 1: ("session", "i"),
        10: ("session", "\ufffd"),
    }


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_tells_nothing(project: Path, scratch: Path, content: bytes) -> None:
    (project / ".cydonia" / "state.db").write_bytes(content)
    assert read_registry(project, scratch) is None


def test_a_database_with_a_flipped_byte_anywhere_never_raises(project: Path, scratch: Path) -> None:
    filled(project)
    path = project / ".cydonia" / "state.db"
    content = path.read_bytes()
    for at in range(0, len(content), 97):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        numbers = read_registry(project, scratch)
        assert numbers is None or all(isinstance(number, int) for number in numbers)


def test_what_is_no_file_tells_nothing_and_holds_nobody(project: Path, scratch: Path) -> None:
    assert read_registry(project, scratch) is None
    assert read_registry(project / "gone", scratch) is None
    os.mkfifo(project / ".cydonia" / "state.db")
    assert read_registry(project, scratch) is None


@pytest.mark.parametrize(("limit", "value"), [("MAX_ROWS", 2), ("MAX_BYTES", 5000), ("MAX_VALUE_BYTES", 5)])
def test_a_registry_over_a_limit_tells_nothing(
    project: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    filled(project)
    monkeypatch.setattr(registry, limit, value)
    assert read_registry(project, scratch) is None


def test_a_query_that_takes_too_long_tells_nothing(
    project: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with registry_of(project, TABLE) as database:
        database.execute("BEGIN")
        database.executemany("INSERT INTO entries (kind, id) VALUES ('session', ?)", [(str(n),) for n in range(20_000)])
        database.execute("COMMIT")
    monkeypatch.setattr(registry, "MAX_SECONDS", -1.0)
    assert read_registry(project, scratch) is None


def test_a_journal_that_names_a_file_to_delete_deletes_nothing(project: Path, scratch: Path, tmp_path: Path) -> None:
    """SQLite deletes the super-journal that a hot journal names, once it was rolled back."""
    filled(project)
    victim = tmp_path / "precious"
    victim.write_text("precious\n")
    name, page_bytes, magic = os.fsencode(victim), 4096, bytes.fromhex("d9d505f920a163d7")
    pages = (project / ".cydonia" / "state.db").stat().st_size // page_bytes
    checksum = sum(byte - 256 if byte > 127 else byte for byte in name) & 0xFFFFFFFF
    (project / ".cydonia" / "state.db-journal").write_bytes(
        (magic + struct.pack(">IIIII", 0, 0, pages, 512, page_bytes)).ljust(512, b"\0")
        + struct.pack(">I", 0x40000000 // page_bytes + 1)
        + name
        + struct.pack(">II", len(name), checksum)
        + magic
    )
    assert read_registry(project, scratch) is None
    assert victim.read_text() == "precious\n"


def test_the_signature_tells_of_every_change(project: Path) -> None:
    empty = registry_signature(project)
    with registry_of(project, "PRAGMA journal_mode = WAL", TABLE) as database:
        created = registry_signature(project)
        database.execute("INSERT INTO entries VALUES (1, 'board', 'b')")
        added = registry_signature(project)
    assert len({empty, created, added}) == 3
    assert registry_signature(project / "gone") == empty
