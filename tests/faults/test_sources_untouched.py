"""Sources are only read: nothing beside them is written, locked or touched, and nobody is made to wait."""

import hashlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from indexer.pipeline import Indexer
from schemas.settings import Settings
from tests.indexer.archives import Transcripts, append, found_in, index, session_of, sessions_of, user, write_record
from tests.indexer.sources.model import snapshot
from tests.waiting import wait_for

Seen: TypeAlias = tuple[dict[str, tuple[int, ...]], dict[str, str]]

TABLE = "CREATE TABLE entries (number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, id TEXT, UNIQUE(kind, id))"
JOURNALS = ["WAL", "DELETE", "TRUNCATE", "PERSIST"]


def seen(folder: Path) -> Seen:
    """Names, sizes, modes, inodes, mtimes, ctimes and contents of everything in a folder."""
    contents = {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()
    }
    return snapshot(folder), contents


@contextmanager
def indexing(settings: Settings) -> Iterator[None]:
    indexer = Indexer(settings)
    indexer.start()
    try:
        wait_for(lambda: indexer.status().is_ready, "the first scan is done")
        yield
    finally:
        indexer.stop()


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    transcripts = Transcripts(tmp_path / "sources")
    transcripts.turn_file("a", user("hello"))
    for name in ("kettle", "pan"):
        project = transcripts.project(name)
        for n in range(3):
            write_record(project, f"179000000000{n}", f"hello {n}")
    return transcripts


@pytest.fixture
def settings(transcripts: Transcripts, tmp_path: Path) -> Settings:
    return transcripts.settings(data=str(tmp_path / "data"))


@contextmanager
def open_registry(transcripts: Transcripts, journal: str) -> Iterator[sqlite3.Connection]:
    """A registry as Cydonia keeps it open; a writer of it never waits."""
    path = transcripts.folder / "work" / "kettle" / ".cydonia" / "state.db"
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)) as registry:
        registry.execute(f"PRAGMA journal_mode = {journal}")
        registry.execute(TABLE)
        registry.execute("INSERT INTO entries VALUES (4, 'session', '1790000000000')")
        yield registry


@pytest.mark.parametrize("journal", JOURNALS)
def test_a_scan_and_what_follows_it_leave_everything_as_it_was(
    transcripts: Transcripts, settings: Settings, journal: str
) -> None:
    with open_registry(transcripts, journal) as registry:
        registry.execute("BEGIN IMMEDIATE")
        registry.execute("INSERT INTO entries VALUES (5, 'session', '1790000000001')")
        before = seen(transcripts.folder)
        index(settings)
        assert seen(transcripts.folder) == before
        with indexing(settings):
            assert seen(transcripts.folder) == before
            for step in _live_steps(transcripts, settings, registry):
                before = seen(transcripts.folder)
                wait_for(step, "what was written is found")
                assert seen(transcripts.folder) == before
        assert seen(transcripts.folder) == before
    assert numbers(settings, "1790000000001") == [5]


def numbers(settings: Settings, session_id: str) -> list[int]:
    return [
        session.number
        for session in sessions_of(settings).values()
        if session.session_id == session_id and session.project.name == "kettle" and session.number is not None
    ]


def _live_steps(
    transcripts: Transcripts, settings: Settings, registry: sqlite3.Connection
) -> Iterator[Callable[[], object]]:
    """Write something each time, and answer what tells that it was followed."""
    append(transcripts.turns / "a.turns.jsonl", user("appended"))
    yield lambda: found_in(settings, "appended")
    write_record(transcripts.folder / "work" / "kettle", "1790000000000", "hello 0", "rewritten")
    yield lambda: found_in(settings, "rewritten")
    registry.execute("COMMIT")
    write_record(transcripts.folder / "work" / "kettle", "1790000000001", "hello 1", "numbered")
    yield lambda: found_in(settings, "numbered") and numbers(settings, "1790000000001")
    (transcripts.turns / "a.turns.jsonl").unlink()
    transcripts.turn_file("b", user("in its place"))
    yield lambda: found_in(settings, "in its place") and session_of(settings, "a").is_deleted


@pytest.mark.parametrize("journal", JOURNALS)
def test_whoever_writes_the_registry_is_never_made_to_wait(
    transcripts: Transcripts, settings: Settings, journal: str
) -> None:
    kettle = transcripts.folder / "work" / "kettle"
    is_over = threading.Event()
    failures: list[sqlite3.Error] = []
    written = 0
    with open_registry(transcripts, journal) as registry:

        def write() -> None:
            nonlocal written
            while not is_over.wait(0.001):
                try:
                    registry.execute("BEGIN IMMEDIATE")
                    registry.execute("INSERT INTO entries(kind, id) VALUES ('article', ?)", (str(written),))
                    registry.execute("COMMIT")
                except sqlite3.Error as error:
                    failures.append(error)
                    return
                written += 1

        thread = threading.Thread(target=write)
        thread.start()
        try:
            with indexing(settings):
                for n in range(20):
                    write_record(kettle, "1790000000002", f"text {n}")
                    wait_for(lambda n=n: found_in(settings, f"text {n}"), "what was written is found")
        finally:
            is_over.set()
            thread.join()
    assert failures == []
    assert written > 20
