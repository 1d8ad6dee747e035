"""Opened and closed over and over, nothing is left open."""

import os
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from indexer.pipeline import Indexer
from schemas.settings import Settings
from search_api.archive import Archive
from tests.indexer.archives import Transcripts, all_hits, append, index, user, write_record
from tests.waiting import wait_for

CYCLES = 50
PROCESS = Path("/proc/self")

pytestmark = pytest.mark.skipif(not PROCESS.is_dir(), reason="counts what the system says of this process")


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    transcripts = Transcripts(tmp_path)
    transcripts.turn_file("a", user("hello"))
    write_record(transcripts.project("kettle"), "1790000000000", "hello")
    index(transcripts.settings())
    return transcripts


def threads_and_files() -> tuple[int, int]:
    """All threads, those of libraries too, and all open files and mapped ones."""
    files = [*(PROCESS / "fd").iterdir()]
    mapped = {line.split(maxsplit=5)[5] for line in (PROCESS / "maps").read_text().splitlines() if line.count("/") > 2}
    return len([*(PROCESS / "task").iterdir()]), len(files) + len(mapped)


def check_nothing_is_left(cycle: Callable[[int], None]) -> None:
    for n in range(3):
        cycle(n)
    # A library's threads end in their own time.
    wait_for(
        lambda: len(os.listdir(PROCESS / "task")) <= threading.active_count() + 1,
        "only our own threads are left",
        seconds=10,
    )
    before = threads_and_files()
    for n in range(CYCLES):
        cycle(3 + n)
    wait_for(lambda: threads_and_files() <= before, f"no more than {before} threads and files are left", seconds=10)


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
