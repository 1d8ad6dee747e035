"""A process of its own brings `bulk` up to the store, and the index is the same as without it."""

import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from indexer.bulk import BulkProcess
from indexer.lane_writer import LaneWriter
from indexer.pipeline import Pipeline
from tests.indexer.archives import Transcripts, agent, append, found_in, hits, index, user, write_record
from tests.waiting import wait_for

TURNS = 40


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    transcripts = Transcripts(tmp_path)
    kettle = transcripts.project("kettle")
    for n in range(TURNS):
        write_record(kettle, f"17900000{n:02}00", f"the parser range {n}", f"span is off by-{n}")
        transcripts.turn_file(f"t{n}", user(f"the parser of é {n}"), agent("spanning"))
    return transcripts


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little is due."""
    monkeypatch.setattr("indexer.follow.PROCESS_CHUNKS", 0)


def run(pipeline: Pipeline) -> None:
    while not (pipeline.is_idle and pipeline.is_ready):
        if not pipeline.step():
            pipeline.schedule.wait(pipeline.next_due())


def process_of(pipeline: Pipeline) -> BulkProcess:
    """The process, once there is one."""
    while not isinstance(pipeline._follower._bulk, BulkProcess):
        pipeline.step()
    return pipeline._follower._bulk


@pytest.mark.usefixtures("always")
def test_a_scan_by_two_processes_finds_what_a_scan_by_one_finds(
    transcripts: Transcripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, one = transcripts.settings("both"), transcripts.settings("one")
    with closing(Pipeline(both)) as pipeline:
        pipeline.look()
        process = process_of(pipeline)
        run(pipeline)
        assert process.is_ending
        wait_for(lambda: not pipeline.step() and pipeline._follower._bulk is None, "the process is gone")
    monkeypatch.setattr("indexer.follow.PROCESS_CHUNKS", 10**9)
    index(one)
    for query in ("parser", "arse", "é 7", "by-3", "s o"):
        found = hits(both, query)
        assert found
        assert [hit.line for hit in found] == [hit.line for hit in hits(one, query)]


@pytest.mark.usefixtures("always")
def test_a_process_that_is_killed_is_made_up_for(transcripts: Transcripts) -> None:
    settings = transcripts.settings()
    with closing(Pipeline(settings)) as pipeline:
        pipeline.look()
        os.kill(process_of(pipeline)._process.pid, signal.SIGKILL)
        with pytest.raises(ValueError, match="ended with -9"):
            run(pipeline)
        run(pipeline)
    assert len(hits(settings, "parser")) == 2 * TURNS


@pytest.mark.usefixtures("always")
def test_an_indexer_that_is_closed_amid_a_scan_leaves_no_process_and_goes_on_later(transcripts: Transcripts) -> None:
    settings = transcripts.settings()
    with closing(Pipeline(settings)) as pipeline:
        pipeline.look()
        process = process_of(pipeline)
    assert process._process.returncode == 0
    index(settings)
    assert len(hits(settings, "parser")) == 2 * TURNS


def test_what_comes_for_bulk_later_and_is_little_is_indexed_here(
    transcripts: Transcripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = transcripts.settings()
    with closing(Pipeline(settings)) as pipeline:
        with monkeypatch.context() as always:
            always.setattr("indexer.follow.PROCESS_CHUNKS", 0)
            pipeline.look()
            run(pipeline)
        monkeypatch.setattr("indexer.pipeline.LIVE_SCAN_BYTES", 10)
        monkeypatch.setattr("indexer.follow.IndexFollower.expect_much", lambda _: None)
        append(transcripts.turns / "t1.turns.jsonl", user("some more of it"))
        pipeline.look()
        run(pipeline)
        assert isinstance(pipeline._follower._bulk, LaneWriter)
    assert found_in(settings, "some more of it") == [("t1", 2)]
