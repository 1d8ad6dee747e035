"""Before the disk is full indexing stands still, says so, and goes on when there is room again."""

import shutil
import subprocess
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from indexer.pipeline import Pipeline
from indexer.service import Indexer, index_once
from schemas.errors import Unavailable
from schemas.settings import Settings
from tests.home import home_environment
from tests.indexer.archives import Transcripts, append, found_in, index, line_of, read_heads, user
from tests.served import COMMAND, served
from tests.waiting import wait_for

GB = 1_000_000_000
LONGER_THAN_USUAL_MS = 300
STANDS_STILL = "indexing stands still: 9.0 GB of the disk are free, it stops below 10.0"


class Usage(NamedTuple):
    """What `shutil.disk_usage` answers."""

    total: int
    used: int
    free: int


class Disk:
    """A disk of 100 GB; a tenth of it is its floor."""

    def __init__(self) -> None:
        self.free = 50 * GB

    def usage(self, _path: Path) -> Usage:
        return Usage(100 * GB, 100 * GB - self.free, self.free)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """The disk that the data directory is on; it is looked at before every step."""
    disk = Disk()
    monkeypatch.setattr(shutil, "disk_usage", disk.usage)
    monkeypatch.setattr("indexer.disk.CHECK_SECONDS", 0.0)
    monkeypatch.setattr("indexer.pipeline.RETRY_SECONDS", 0.05)
    monkeypatch.setattr("indexer.service.RETRY_SECONDS", 0.05)
    return disk


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    return Transcripts(tmp_path)


@pytest.fixture
def settings(transcripts: Transcripts) -> Settings:
    return transcripts.settings()


def test_live_changes_wait_for_room_while_what_is_indexed_is_found(
    transcripts: Transcripts, settings: Settings, disk: Disk
) -> None:
    path = transcripts.turn_file("a", user("there before"))
    indexer = Indexer(settings)
    indexer.start()
    try:
        wait_for(lambda: indexer.status().is_ready, "the first scan is done")
        disk.free = 9 * GB
        append(path, user("written without room"))
        wait_for(lambda: indexer.status().notes == [STANDS_STILL], "it is said")
        wait_for(lambda: indexer.status().lag_ms["turn-file"] > LONGER_THAN_USUAL_MS, "the lag grows")
        assert not indexer.status().is_ready
        assert found_in(settings, "there before") == [("a", 1)]
        assert found_in(settings, "written without room") == []
        disk.free = 11 * GB
        wait_for(lambda: found_in(settings, "written without room") == [("a", 2)], "it goes on")
        wait_for(lambda: indexer.status().is_ready and not indexer.status().notes, "it is ready again")
    finally:
        indexer.stop()


def test_a_first_scan_waits_for_room_and_is_not_ready(transcripts: Transcripts, settings: Settings, disk: Disk) -> None:
    transcripts.turn_file("a", user("hello"))
    disk.free = 9 * GB
    indexer = Indexer(settings)
    indexer.start()
    try:
        wait_for(lambda: indexer.status().notes == [STANDS_STILL], "it is said")
        assert not indexer.status().is_ready
        assert found_in(settings, "hello") == []
        disk.free = 50 * GB
        wait_for(lambda: indexer.status().is_ready, "it goes on")
        assert found_in(settings, "hello") == [("a", 1)]
    finally:
        indexer.stop()


def test_what_a_scan_had_done_before_the_room_ran_out_stays_done(
    transcripts: Transcripts, settings: Settings, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.pipeline.SLICE_SECONDS", 0.0)
    for number in range(6):
        transcripts.turn_file(f"t{number}", user("hello"))
    with closing(Pipeline(settings)) as pipeline:
        pipeline.look()
        read_heads(pipeline)
        for _ in range(3):
            assert pipeline.step()
        disk.free = 9 * GB
        while pipeline.step():
            assert pipeline.stands_still == STANDS_STILL
        assert len(found_in(settings, "hello")) == 3
        assert not pipeline.is_ready
    assert len(found_in(settings, "hello")) == 3
    with pytest.raises(Unavailable, match="stands still"):
        index_once(settings, lambda _: None)
    assert len(found_in(settings, "hello")) == 3
    disk.free = 50 * GB
    index(settings)
    assert len(found_in(settings, "hello")) == 6


def test_what_is_stored_is_found_though_the_room_runs_out_before_a_process_has_indexed_it(
    transcripts: Transcripts, settings: Settings, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.pipeline.SLICE_SECONDS", 0.0)
    monkeypatch.setattr("indexer.pipeline.LIVE_SCAN_BYTES", 0)
    for number in range(3):
        transcripts.turn_file(f"t{number}", user("hello"))
    with closing(Pipeline(settings)) as pipeline:
        pipeline.look()
        read_heads(pipeline)
        assert pipeline.step()
        disk.free = 9 * GB
    with pytest.raises(Unavailable, match="stands still"):
        index_once(settings, lambda _: None)
    assert len(found_in(settings, "hello")) == 1


def test_with_hardly_any_room_nothing_is_indexed_any_more(
    transcripts: Transcripts, settings: Settings, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.pipeline.SLICE_SECONDS", 0.0)
    for number in range(2):
        transcripts.turn_file(f"t{number}", user("hello"))
    with closing(Pipeline(settings)) as pipeline:
        pipeline.look()
        read_heads(pipeline)
        assert pipeline.step()
        disk.free = 4 * GB
        assert not pipeline.step()
        assert found_in(settings, "hello") == []


@pytest.mark.parametrize(
    ("limits", "free", "stands_still"),
    [
        ({"min_free_bytes": 20 * GB}, 19 * GB, True),
        ({"min_free_bytes": 20 * GB}, 20 * GB, False),
        ({"min_free_share": 0.3}, 29 * GB, True),
        ({"min_free_bytes": 0, "min_free_share": 0.0}, 0, False),
    ],
)
def test_the_floor_is_the_higher_of_the_two_that_are_set(
    transcripts: Transcripts, disk: Disk, limits: dict[str, float], free: int, stands_still: bool
) -> None:
    transcripts.turn_file("a", user("hello"))
    disk.free = free
    with closing(Pipeline(transcripts.settings(limits=limits))) as pipeline:
        pipeline.look()
        assert pipeline.step() is not stands_still


def test_commands_and_the_server_say_so_and_find_what_is_indexed(home: Path) -> None:
    turn_file = home / ".local" / "share" / "turndex" / "turns" / "a.turns.jsonl"
    turn_file.parent.mkdir(parents=True)
    head = {"type": "session", "version": 1, "id": "a", "project": "/home/a/kettle"}
    turn_file.write_bytes(line_of(head) + line_of(user("there before")))
    assert turndex(home, "index").returncode == 0
    config = home / ".config" / "turndex" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f"[limits]\nmin_free_bytes = {2**60}\n", encoding="utf-8")
    append(turn_file, user("written without room"))

    done = turndex(home, "index")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith("Error (unavailable): indexing stands still: ")
    done = turndex(home, "search", "there before")
    assert (done.returncode, done.stdout) == (0, "kettle#1:1 (untitled) — there before\n")
    assert "indexing stands still" in done.stderr
    assert turndex(home, "search", "written without room").returncode == 1
    assert turndex(home, "read", "kettle#1:1").returncode == 0

    with served(home, until_ready=False) as client:
        notes = wait_for(lambda: client.get("/status").raise_for_status().json()["notes"], "the server says so")
        assert notes[0].startswith("indexing stands still: ")
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").is_success
        answer = client.get("/session_search", params={"q": "there before"}).raise_for_status()
        assert [hit["turn"] for hit in answer.json()["hits"]] == [1]


def turndex(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [COMMAND, *words],
        env=home_environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
