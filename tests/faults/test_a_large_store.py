"""A store of 70 GB is planned for: its cost is told before it is read, the newest comes first, the disk stays free.

The files are holes behind a few real lines: they have the sizes of such a store and take no disk.
"""

import logging
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bench.claude_corpus import session_uuid
from indexer.pipeline import Pipeline
from indexer.service import Indexer, index_once
from schemas.errors import Unavailable
from schemas.settings import Settings, load_settings
from schemas.times import iso_utc
from tests.faults.test_disk_floor import GB, STANDS_STILL, Disk, turndex
from tests.indexer.archives import found_in, line_of, read_heads, sessions_of
from tests.served import served
from tests.waiting import wait_for

FILES = 300
FILE_BYTES = 240_000_000
START = 1_796_032_800
TOLD = "found 300 transcripts, 72000.0 MB; store and index will take about "


class Store:
    """A folder of Claude Code's: sessions 0, 1, 2 …, each a minute younger than the one before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._project = folder / "projects" / "-home-a-kettle"
        self._project.mkdir(parents=True)
        for number in range(FILES):
            self._write(number)

    def _write(self, number: int) -> None:
        at = START + number * 60
        path = self._project / f"{session_uuid(str(number))}.jsonl"
        common = {
            "cwd": "/home/a/kettle",
            "sessionId": path.stem,
            "timestamp": iso_utc(at * 1000),
            "version": "2.1.150",
        }
        asked = {"type": "user", "uuid": f"u{number}", "message": {"role": "user", "content": f"question {number}."}}
        blocks = [{"type": "text", "text": f"answer {number}."}]
        answered = {"type": "assistant", "uuid": f"a{number}", "message": {"role": "assistant", "content": blocks}}
        path.write_bytes(line_of({**common, **asked}) + line_of({**common, **answered}))
        os.truncate(path, FILE_BYTES)
        os.utime(path, (at, at))

    def disk_bytes(self) -> int:
        return sum(path.stat().st_blocks * 512 for path in self._project.iterdir())


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    store = Store(home / ".claude")
    assert store.disk_bytes() < 10_000_000
    yield store
    shutil.rmtree(store.folder)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(shutil, "disk_usage", disk.usage)
    monkeypatch.setattr("indexer.disk.CHECK_SECONDS", 0.0)
    monkeypatch.setattr("indexer.pipeline.RETRY_SECONDS", 0.05)
    monkeypatch.setattr("indexer.pipeline.SLICE_SECONDS", 0.0)
    monkeypatch.setattr("indexer.service.RETRY_SECONDS", 0.05)
    return disk


@pytest.fixture
def settings(store: Store, tmp_path: Path) -> Settings:
    sources = {"claude_code": {"folders": [str(store.folder)]}}
    return load_settings(flags={"discover": False, "data_dir": str(tmp_path / "data"), "sources": sources})


def read_sessions(settings: Settings) -> list[str]:
    """The sessions whose text is stored, the newest first; the others have their numbers only."""
    stored = [session for session in sessions_of(settings).values() if session.turns]
    return [session.session_id for session in sorted(stored, key=lambda one: one.first_ms or 0, reverse=True)]


def newest(count: int) -> list[str]:
    return [session_uuid(str(number)) for number in range(FILES - 1, FILES - 1 - count, -1)]


def test_its_cost_is_told_before_anything_is_copied(
    settings: Settings, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "indexer")
    with closing(Pipeline(settings)) as pipeline:
        found = pipeline.look()
        assert (found.files, found.bytes) == (FILES, FILES * FILE_BYTES)
        (told,) = [record.getMessage() for record in caplog.records if record.getMessage().startswith("found ")]
        assert told.startswith(TOLD)
        # A fifth of Claude Code's files is text; it takes 1.6 bytes a byte, and a second for 4 MB.
        assert told.removeprefix(TOLD) == "23040.0 MB of disk and 4801 s"
        assert sessions_of(settings) == {}
        read_heads(pipeline)
        assert len(sessions_of(settings)) == FILES
        assert read_sessions(settings) == []


def test_the_newest_come_first_and_what_was_done_before_the_floor_stays_while_it_stands_still(
    settings: Settings, disk: Disk
) -> None:
    with closing(Pipeline(settings)) as pipeline:
        pipeline.look()
        read_heads(pipeline)
        for _ in range(2):
            assert pipeline.step()
        disk.free = 9 * GB
        assert not pipeline.step()
        assert pipeline.stands_still == STANDS_STILL
    assert read_sessions(settings) == newest(2)
    with pytest.raises(Unavailable, match="stands still"):
        index_once(settings, lambda _: None)
    assert read_sessions(settings) == newest(2)


def test_following_it_without_room_says_so_and_goes_on_when_there_is_some(settings: Settings, disk: Disk) -> None:
    disk.free = 9 * GB
    indexer = Indexer(settings)
    indexer.start()
    try:
        wait_for(lambda: indexer.status().notes == [STANDS_STILL], "it is said")
        assert not indexer.status().is_ready
        assert read_sessions(settings) == []
        assert found_in(settings, "question") == []
        disk.free = 50 * GB
        wait_for(lambda: read_sessions(settings), "it goes on")
        disk.free = 9 * GB
        wait_for(lambda: indexer.status().notes == [STANDS_STILL], "it stands still again")
        done = read_sessions(settings)
        assert done == newest(len(done))
    finally:
        indexer.stop()


def test_commands_and_the_server_tell_the_cost_then_stand_still_and_answer(home: Path, store: Store) -> None:
    config = home / ".config" / "turndex" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f"[limits]\nmin_free_bytes = {2**60}\n", encoding="utf-8")
    done: subprocess.CompletedProcess[str] = turndex(home, "index")
    assert (done.returncode, done.stdout) == (2, "")
    assert TOLD in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error (unavailable): indexing stands still: ")
    with served(home, until_ready=False) as client:
        notes = wait_for(lambda: client.get("/status").raise_for_status().json()["notes"], "the server says so")
        assert notes[0].startswith("indexing stands still: ")
        assert client.get("/readyz").status_code == 503
        answer = client.get("/session_search", params={"q": "question", "project": "*"}).raise_for_status()
        assert answer.json()["hits"] == []
    log = (home / "serve.log").read_text(encoding="utf-8")
    assert 0 <= log.find(TOLD) < log.find("indexing stands still")
