"""Before the disk is full, indexing stands still, says so, and goes on when there is room."""

from collections import namedtuple
from contextlib import closing
from pathlib import Path

import pytest

from indexer.pipeline import Indexer, Pipeline, index_once
from schemas.errors import Unavailable
from tests.indexer.archives import Transcripts, append, found_in, index, user
from tests.waiting import wait_for

Usage = namedtuple("Usage", "total used free")

GB = 10**9


def test_indexing_stands_still_below_the_floor_and_goes_on_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcripts = Transcripts(tmp_path)
    settings = transcripts.settings(limits={"min_free_bytes": 5 * GB, "min_free_share": 0.1})
    path = transcripts.turn_file("a", user("before"))
    index(settings)
    free = 4 * GB
    monkeypatch.setattr("indexer.pipeline.shutil.disk_usage", lambda _: Usage(20 * GB, 20 * GB - free, free))
    monkeypatch.setattr("indexer.pipeline.RETRY_SECONDS", 0.1)
    monkeypatch.setattr("indexer.pipeline.DISK_CHECK_SECONDS", 0.05)
    append(path, user("written without room"))
    indexer = Indexer(settings)
    indexer.start()
    try:
        said = wait_for(lambda: indexer.status().notes, "it says that it stands still")
        assert said == ["indexing stands still: 4.0 GB of the disk are free, it stops below 5.0"]
        append(path, user("and more"))
        wait_for(lambda: indexer.status().lag_ms["turn-file"] > 300, "the lag shows that it stands still")
        assert found_in(settings, "without room") == []
        assert found_in(settings, "before") == [("a", 1)]
        free = 6 * GB
        wait_for(lambda: found_in(settings, "and more"), "it goes on")
        assert found_in(settings, "without room") == [("a", 2)]
        wait_for(lambda: not indexer.status().notes, "nothing stands still any more")
    finally:
        indexer.stop()


@pytest.mark.parametrize(
    ("free", "floor", "share", "is_enough"),
    [
        (3 * GB, 2 * GB, 0.1, True),
        (1 * GB, 2 * GB, 0.01, False),
        (3 * GB, 2 * GB, 0.2, False),
        (3 * GB, 0, 0.0, True),
    ],
)
def test_the_floor_is_the_higher_one_of_bytes_and_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, floor: int, share: float, is_enough: bool
) -> None:
    transcripts = Transcripts(tmp_path)
    transcripts.turn_file("a", user("hello"))
    settings = transcripts.settings(limits={"min_free_bytes": floor, "min_free_share": share})
    monkeypatch.setattr("indexer.pipeline.shutil.disk_usage", lambda _: Usage(20 * GB, 20 * GB - free, free))
    with closing(Pipeline(settings)) as pipeline:
        pipeline.look()
        pipeline.step()
        assert (pipeline.stands_still is None) == is_enough


def test_indexing_once_fails_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transcripts = Transcripts(tmp_path)
    transcripts.turn_file("a", user("hello"))
    monkeypatch.setattr("indexer.pipeline.shutil.disk_usage", lambda _: Usage(20 * GB, 19 * GB, GB))
    with pytest.raises(Unavailable, match="stands still"):
        index_once(transcripts.settings(), lambda _: None)
