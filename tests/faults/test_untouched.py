"""Nothing is written, locked or touched beside the transcripts: those who write them never notice."""

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from search_api.address import read_address
from tests.indexer.archives import Transcripts, append, user, write_record
from tests.indexer.sources.model import snapshot
from tests.served import served
from tests.waiting import wait_for

TABLE = "CREATE TABLE entries (number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, id TEXT, UNIQUE(kind, id))"
MANY_BOARDS = (
    "INSERT INTO entries (kind, id) WITH RECURSIVE boards(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM boards"
    " WHERE n < 10000) SELECT 'board', printf('%0100d', n) FROM boards"
)
"""So many that reading them under a lock would take longer than a writer pauses."""

FIRST, SECOND = "1790000000000", "1790000000001"
ROUNDS = 6
COMMIT_EVERY_SECONDS = 0.005

PROGRAM = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
for statement in sys.stdin:
    database.execute(statement).fetchall()
    print("done", flush=True)
"""


class Registry:
    """A project's registry, held open by another program that never waits for a lock.

    A program of its own, as SQLite's locks are the process's: closing the file once more would let go of them.
    """

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def execute(self, *statements: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for statement in statements:
            self._process.stdin.write(statement + "\n")
            self._process.stdin.flush()
            assert self._process.stdout.readline() == "done\n", f"refused: {statement}"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def registry_of(project: Path) -> Iterator[Registry]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, path_of_registry(project)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Registry(process)


def path_of_registry(project: Path) -> Path:
    return project / ".cydonia" / "state.db"


def state_of(folder: Path) -> dict[str, tuple[tuple[int, ...], str]]:
    """Sizes, modes, inodes, mtimes, ctimes and hashes of everything in a folder, and of itself."""
    return {
        name: (facts, hashlib.sha256(path.read_bytes()).hexdigest() if (path := folder / name).is_file() else "")
        for name, facts in snapshot(folder).items()
    }


@contextmanager
def sleeping(home: Path) -> Iterator[None]:
    """Have the server stand still, so that what happens meanwhile is none of its doing."""
    address = read_address(home / ".local" / "share" / "turndex")
    assert address is not None
    os.kill(address.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(address.pid, signal.SIGCONT)


@contextmanager
def following(home: Path, transcripts: Transcripts) -> Iterator[httpx.Client]:
    """A server of these transcripts that looks through their folders every second."""
    config = home / "config.toml"
    config.write_text(
        f'[sources.cydonia]\nstate_file = "{transcripts.state_file}"\n'
        f'[sources.turn-file]\nfolders = ["{transcripts.turns}"]\n[indexing]\nrescan_seconds = 1\n',
        encoding="utf-8",
    )
    with served(home, ["--config", str(config)]) as client:
        yield client


def hits(client: httpx.Client, query: str) -> list[dict[str, Any]]:
    answer = client.get("/session_search", params={"q": query}).raise_for_status()
    found: list[dict[str, Any]] = answer.json()["hits"]
    return found


def number_of(client: httpx.Client, query: str) -> int | None:
    """The number of the one session that says this; None while it has none, or is not found."""
    numbers: list[int | None] = [hit["session"] for hit in hits(client, query)]
    return numbers[0] if len(numbers) == 1 else None


def wait_until_numbered(client: httpx.Client, query: str, number: int) -> None:
    wait_for(lambda: number_of(client, query) == number, f"the session that says {query} has number {number}")


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    """A folder with turn files, projects and a state file: all that is a source's, and nothing else."""
    return Transcripts(tmp_path / "sources")


@pytest.mark.parametrize(("mode", "beside"), [("WAL", "state.db-wal"), ("DELETE", "state.db-journal")])
def test_a_scan_live_changes_and_the_end_leave_everything_as_it_was(
    home: Path, transcripts: Transcripts, mode: str, beside: str
) -> None:
    kettle = transcripts.project("kettle")
    write_record(kettle, FIRST, "in the first record")
    turn_file = transcripts.turn_file("deep/pan", user("in the turn file"), id="pan")
    with registry_of(kettle) as registry:
        registry.execute(
            f"PRAGMA journal_mode = {mode}", TABLE, f"INSERT INTO entries VALUES (7, 'session', '{FIRST}')"
        )
        assert (kettle / ".cydonia" / beside).exists() == (mode == "WAL")
        before = state_of(transcripts.folder)
        with following(home, transcripts) as client:
            wait_until_numbered(client, "in the first record", 7)
            assert hits(client, "in the turn file")
            assert state_of(transcripts.folder) == before
            with sleeping(home):
                registry.execute(f"INSERT INTO entries VALUES (8, 'session', '{SECOND}')")
                registry.execute("BEGIN IMMEDIATE", "INSERT INTO entries VALUES (9, 'board', 'not there yet')")
                assert (kettle / ".cydonia" / beside).stat().st_size > 0
                write_record(kettle, FIRST, "in the first record", "and one message more")
                write_record(kettle, SECOND, "in the second record")
                append(turn_file, user("appended to the turn file"))
                changed = state_of(transcripts.folder)
            wait_until_numbered(client, "in the second record", 8)
            wait_until_numbered(client, "one message more", 7)
            wait_for(lambda: hits(client, "appended to the turn file"), "the line that was appended")
            assert client.get("/session_read", params={"session": "kettle#7"}).is_success
            assert client.get("/session_read", params={"session": "kettle#9"}).json()["code"] == "not_found"
            assert state_of(transcripts.folder) == changed
        assert state_of(transcripts.folder) == changed
        registry.execute("COMMIT")


def test_a_registry_that_its_writer_left_in_the_middle_is_read_and_left_as_it_is(
    home: Path, transcripts: Transcripts
) -> None:
    """The journal of a writer that was killed is rolled back by whoever opens the registry next: not by us."""
    kettle = transcripts.project("kettle")
    write_record(kettle, FIRST, "in the first record")
    with registry_of(kettle) as registry:
        registry.execute(TABLE, f"INSERT INTO entries VALUES (7, 'session', '{FIRST}')")
        registry.execute("PRAGMA cache_size = 1", "BEGIN IMMEDIATE", "DELETE FROM entries", MANY_BOARDS)
        registry.kill()
    journal = kettle / ".cydonia" / "state.db-journal"
    assert journal.stat().st_size > 0
    before = state_of(transcripts.folder)
    with following(home, transcripts) as client:
        wait_until_numbered(client, "in the first record", 7)
        assert state_of(transcripts.folder) == before
        with sleeping(home):
            os.utime(journal)
            write_record(kettle, FIRST, "in the first record", "and one message more")
            changed = state_of(transcripts.folder)
        wait_until_numbered(client, "one message more", 7)
        assert state_of(transcripts.folder) == changed
    assert state_of(transcripts.folder) == changed
    with closing(sqlite3.connect(path_of_registry(kettle))) as database:
        assert database.execute("SELECT * FROM entries").fetchall() == [(7, "session", FIRST)]
    assert not journal.exists()


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_writer_that_waits_for_no_lock_is_never_refused(home: Path, transcripts: Transcripts, mode: str) -> None:
    kettle = transcripts.project("kettle")
    write_record(kettle, FIRST, "round 0")
    over, begun = threading.Event(), threading.Event()
    sessions = [(number + 1, str(int(FIRST) + number)) for number in range(ROUNDS)]
    due: list[tuple[int, str]] = []
    commits = 0
    refused: list[str] = []

    def keep_committing() -> None:
        nonlocal commits
        with closing(sqlite3.connect(path_of_registry(kettle), isolation_level=None, timeout=0)) as database:
            database.execute(f"PRAGMA journal_mode = {mode}")
            database.execute(TABLE)
            database.execute("INSERT INTO entries VALUES (1000, 'board', 'the first')")
            database.execute(MANY_BOARDS)
            try:
                while not over.wait(COMMIT_EVERY_SECONDS):
                    database.execute("BEGIN IMMEDIATE")
                    database.execute("INSERT INTO entries (kind, id) VALUES ('board', ?)", (str(commits),))
                    if due:
                        database.execute("INSERT INTO entries VALUES (?, 'session', ?)", due.pop())
                    database.execute("COMMIT")
                    commits += 1
                    begun.set()
            except sqlite3.OperationalError as error:
                refused.append(str(error))

    writing = threading.Thread(target=keep_committing)
    writing.start()
    try:
        assert begun.wait(30)
        with following(home, transcripts) as client:
            for number, session_id in sessions:
                write_record(kettle, session_id, f"round {number}")
                due.append((number, session_id))
                wait_until_numbered(client, f"round {number}", number)
    finally:
        over.set()
        writing.join()
        assert refused == []  # here, as a writer that was refused gives no numbers to wait for
    assert commits > ROUNDS
