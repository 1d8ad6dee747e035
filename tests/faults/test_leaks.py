"""Opened and closed over and over, nothing is left open."""

import os
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from indexer.service import Indexer
from schemas.settings import Settings
from search_api.archive import Archive
from tests.indexer.archives import Transcripts, all_hits, append, index, user, write_record
from tests.waiting import wait_for

CYCLES = 50
FILES = Path("/dev/fd")
TASKS = Path("/proc/self/task")
"""Where Linux lists all threads of this process, those of libraries too."""


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    transcripts = Transcripts(tmp_path)
    transcripts.turn_file("a", user("hello"))
    write_record(transcripts.project("kettle"), "1790000000000", "hello")
    index(transcripts.settings())
    return transcripts


def thread_count() -> int:
    return len(os.listdir(TASKS)) if TASKS.is_dir() else threading.active_count()


def file_count() -> int:
    return len(os.listdir(FILES))


def check_nothing_is_left(cycle: Callable[[int], None]) -> None:
    for n in range(3):
        cycle(n)
    # A library's threads end in their own time; one more may be the watchdog of the tests.
    wait_for(lambda: thread_count() <= threading.active_count() + 1, "only our own threads are left")
    threads, files = thread_count(), file_count()
    for n in range(CYCLES):
        cycle(3 + n)
    wait_for(lambda: thread_count() <= threads, f"no more than {threads} threads are left")
    assert file_count() <= files


def test_an_archive_leaves_nothing_open(transcripts: Transcripts) -> None:
    settings = transcripts.settings()

    def cycle(_: int) -> None:
        with closing(Archive.open(settings)) as archive:
            assert len(all_hits(archive, "hello")) == 2

    check_nothing_is_left(cycle)


def test_an_indexer_leaves_nothing_open(transcripts: Transcripts) -> None:
    settings: Settings = transcripts.settings()

    def cycle(n: int) -> None:
        append(transcripts.turns / "a.turns.jsonl", user(f"message {n}"))
        indexer = Indexer(settings)
        indexer.start()
        try:
            wait_for(lambda: indexer.status().is_ready, "it is ready")
        finally:
            indexer.stop()

    check_nothing_is_left(cycle)
    assert {thread.name for thread in threading.enumerate()} == {"MainThread"}
