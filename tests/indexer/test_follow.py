"""The index is made anew, repeats and catches up as it must, and a search answers the same all the while."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from indexer.follow import FOLDER_PREFIX
from indexer.index import INDEX_VERSION, IndexReader, IndexWriter
from indexer.intake import Intake
from indexer.lane_writer import WORDS_FOLDER
from indexer.lanes import LANES
from indexer.pipeline import Pipeline
from indexer.sources import sources_for
from indexer.store.schema import STORE_FILE
from indexer.store.writer import StoreWriter
from schemas.answers import Hit
from schemas.errors import Unavailable
from schemas.settings import Settings
from search_api.archive import Archive
from tests.indexer.archives import (
    Transcripts,
    agent,
    all_hits,
    append,
    found_in,
    hits,
    index,
    reading,
    user,
    write_record,
)

QUERIES = ("parser", "arse", "ser r", "=>", "错", "é", "span is off", "-7")


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    """Records and turn files, the newest turns of which were indexed live."""
    transcripts = Transcripts(tmp_path)
    kettle = transcripts.project("kettle")
    for n in range(6):
        write_record(kettle, f"179000000{n}00", f"the parser range {n} => 错误", f"span is off by-{n}")
        transcripts.turn_file(f"t{n}", user(f"the parser of é {n}"), agent("spanning"), user(f"last-{n}"))
    index(transcripts.settings())
    for n in range(3):
        append(transcripts.turns / f"t{n}.turns.jsonl", agent(f"the span is off, parser-{n}"), user(f"more-7{n}"))
        write_record(kettle, f"179000000{n}00", f"the parser range {n} => 错误", f"changed by-7{n} => parser")
    index(transcripts.settings())
    return transcripts


@pytest.fixture
def settings(transcripts: Transcripts) -> Settings:
    return transcripts.settings()


def answers(settings: Settings, **arguments: str) -> dict[str, list[Hit]]:
    found = {query: hits(settings, query, **arguments) for query in QUERIES}
    assert all(found.values())
    return found


def index_folder(settings: Settings) -> Path:
    (folder,) = settings.data_dir.glob(f"{FOLDER_PREFIX}*")
    return folder


def set_meta(settings: Settings, **values: object) -> None:
    with closing(sqlite3.connect(settings.data_dir / STORE_FILE)) as store, store:
        store.executemany("UPDATE meta SET value = ? WHERE key = ?", [(value, key) for key, value in values.items()])


def delete_folder(folder: Path) -> None:
    shutil.rmtree(folder)


def delete_lane(folder: Path) -> None:
    shutil.rmtree(folder / "live")


def delete_words(folder: Path) -> None:
    (folder / WORDS_FOLDER / "live.words").unlink()


def cut_words(folder: Path) -> None:
    words = folder / WORDS_FOLDER / "bulk.joints"
    half = words.read_bytes()[:40]
    words.unlink()
    words.write_bytes(half)


def garble_meta(folder: Path) -> None:
    (folder / "live" / "meta.json").write_bytes(b'{"index_settings": \xff garbage')


def empty_meta(folder: Path) -> None:
    (folder / "bulk" / "meta.json").write_bytes(b"")


def cut_segments(folder: Path) -> None:
    for path in (folder / "bulk").iterdir():
        if path.suffix in (".term", ".idx", ".pos", ".fast"):
            half = path.read_bytes()[: path.stat().st_size // 2]
            path.unlink()  # as a file of its own: a thread that reads the old one would be killed
            path.write_bytes(half)


def delete_segments(folder: Path) -> None:
    for path in (folder / "live").glob("*.term"):
        path.unlink()


@pytest.mark.parametrize(
    "damage",
    [
        delete_folder,
        delete_lane,
        delete_words,
        cut_words,
        garble_meta,
        empty_meta,
        cut_segments,
        delete_segments,
    ],
)
def test_an_index_that_was_damaged_is_made_anew_from_the_store(
    settings: Settings, damage: Callable[[Path], None]
) -> None:
    before = answers(settings)
    damaged = index_folder(settings)
    damage(damaged)
    index(settings)
    assert index_folder(settings) != damaged
    assert answers(settings) == before


@pytest.mark.parametrize("damage", [delete_words, cut_words])
def test_a_vocabulary_that_is_damaged_while_it_is_in_use_answers_nothing_until_it_is_made_anew(
    settings: Settings, damage: Callable[[Path], None]
) -> None:
    before = answers(settings)
    damaged = index_folder(settings)
    with closing(Pipeline(settings)) as pipeline:
        damage(damaged)
        for _ in range(2):
            with pytest.raises(Unavailable), closing(Archive.open(settings)) as archive:
                all_hits(archive, "arse")
        pipeline.look()
        assert pipeline.step()
        while not pipeline.is_idle:
            pipeline.step()
        assert index_folder(settings) != damaged
        assert answers(settings) == before


def test_an_index_of_another_version_is_made_anew_from_the_store(settings: Settings) -> None:
    before = answers(settings)
    old = index_folder(settings)
    set_meta(settings, index_version="0 of another time")
    index(settings)
    assert index_folder(settings) != old
    assert answers(settings) == before
    with reading(settings) as store:
        assert store.meta("index_version") == INDEX_VERSION


def test_an_index_is_made_anew_without_the_sources(transcripts: Transcripts, settings: Settings) -> None:
    before = answers(settings)
    shutil.rmtree(transcripts.turns)
    shutil.rmtree(transcripts.folder / "work")
    delete_folder(index_folder(settings))
    index(settings)
    # A project whose folder is gone is closed.
    after = answers(settings, closed="include")
    assert [(hit.session_id, hit.turn, hit.line) for found in after.values() for hit in found] == [
        (hit.session_id, hit.turn, hit.line) for found in before.values() for hit in found
    ]


def test_a_rebuild_that_is_interrupted_goes_on_where_it_was(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = answers(settings)
    delete_folder(index_folder(settings))
    monkeypatch.setattr("indexer.pipeline.SLICE_BYTES", 100)
    monkeypatch.setattr("indexer.follow.COMMIT_BYTES", 300)
    monkeypatch.setattr("indexer.lane_writer.READ_ROWS", 4)
    starts = 0
    is_ready = False
    while not is_ready:
        starts += 1
        with closing(Pipeline(settings)) as pipeline:
            for _ in range(3):
                pipeline.step()
            is_ready = pipeline.is_ready
        found = {query: hits(settings, query) for query in QUERIES}
        assert all(hit in before[query] for query in QUERIES for hit in found[query])
    assert starts > 2
    index(settings)
    assert answers(settings) == before


def test_searches_go_on_while_the_index_is_made_anew(settings: Settings) -> None:
    before = answers(settings)
    with closing(Archive.open(settings)) as archive:
        assert all_hits(archive, "parser") == before["parser"]
        set_meta(settings, index_version="0 of another time")
        with closing(Pipeline(settings)) as pipeline:
            assert all_hits(archive, "parser") == []
            while not pipeline.is_ready:
                pipeline.step()
            assert {query: all_hits(archive, query) for query in QUERIES} == before


# Crashes between two writes.


def documents(settings: Settings) -> int:
    return IndexReader(index_folder(settings)).documents()


def test_what_the_index_had_before_its_position_was_noted_is_put_again_and_counted_once(settings: Settings) -> None:
    before, count = answers(settings), documents(settings)
    set_meta(settings, bulk_position=0, live_position=0)
    index(settings)
    assert answers(settings) == before
    assert documents(settings) == count


def test_what_only_the_store_has_is_indexed_at_the_next_start(transcripts: Transcripts, settings: Settings) -> None:
    path = transcripts.turns / "t4.turns.jsonl"
    append(path, user("stored, and not yet indexed"))
    with closing(StoreWriter(settings.data_dir)) as store:
        for source in sources_for(settings):
            for root in source.roots():
                for transcript in source.transcripts(root):
                    Intake(store, lambda project: None).take(source, transcript, LANES.index("live"), 0)
    assert found_in(settings, "not yet indexed") == []
    index(settings)
    assert found_in(settings, "not yet indexed") == [("t4", 3)]


def test_chunks_that_were_removed_leave_the_index(transcripts: Transcripts, settings: Settings) -> None:
    before = documents(settings)
    path = transcripts.turns / "t0.turns.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    index(settings)
    assert found_in(settings, "more-70") == []
    assert documents(settings) < before
    append(path, user("and something new"))
    index(settings)
    assert found_in(settings, "something new") == [("t0", 2)]


# Commits that fail.


@pytest.fixture
def broken_commits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ValueError]]:
    """Errors that the next commits fail with."""
    errors: list[ValueError] = []
    commit = IndexWriter.commit

    def failing(writer: IndexWriter) -> None:
        if errors:
            raise errors.pop()
        commit(writer)

    monkeypatch.setattr(IndexWriter, "commit", failing)
    yield errors


def run(pipeline: Pipeline) -> int:
    """Do all there is to do, whatever fails; how often something did."""
    failures = 0
    while not (pipeline.is_idle and pipeline.is_ready):
        try:
            if not pipeline.step():
                pipeline.schedule.wait(pipeline.next_due())
        except ValueError:
            failures += 1
    return failures


def test_a_live_commit_that_fails_is_made_up_for(
    transcripts: Transcripts, settings: Settings, broken_commits: list[ValueError]
) -> None:
    before, count = answers(settings), documents(settings)
    append(transcripts.turns / "t5.turns.jsonl", user("written at a bad moment"))
    broken_commits.extend(ValueError("disk") for _ in range(3))
    with closing(Pipeline(settings)) as pipeline:
        pipeline.look()
        assert run(pipeline) == 3
        broken_commits.clear()
        append(transcripts.turns / "t5.turns.jsonl", user("and a better one"))
        pipeline.look()
        run(pipeline)
    assert found_in(settings, "at a bad moment") == [("t5", 3)]
    assert found_in(settings, "a better one") == [("t5", 4)]
    assert answers(settings) == before
    assert documents(settings) == count + 2


def test_a_bulk_commit_that_fails_is_made_up_for(
    transcripts: Transcripts, broken_commits: list[ValueError], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = answers(transcripts.settings())
    settings = transcripts.settings("other")
    monkeypatch.setattr("indexer.follow.COMMIT_BYTES", 500)
    broken_commits.extend(ValueError("disk") for _ in range(3))
    with closing(Pipeline(settings)) as pipeline:
        pipeline.look()
        assert run(pipeline) >= 1
    found = {query: [hit.line for hit in hits(settings, query)] for query in QUERIES}
    assert {query: sorted(lines) for query, lines in found.items()} == {
        query: sorted(hit.line for hit in hits) for query, hits in before.items()
    }


def test_an_index_folder_that_is_deleted_under_a_running_indexer_is_made_anew(
    transcripts: Transcripts, settings: Settings
) -> None:
    before = answers(settings)
    with closing(Pipeline(settings)) as pipeline:
        pipeline.look()
        run(pipeline)
        delete_folder(index_folder(settings))
        append(transcripts.turns / "t5.turns.jsonl", user("written without an index"))
        pipeline.look()
        run(pipeline)
    assert found_in(settings, "without an index") == [("t5", 3)]
    assert answers(settings) == before


def test_more_than_one_commit_takes_is_indexed_to_its_end(
    transcripts: Transcripts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.pipeline.LIVE_COMMIT_BYTES", 5_000)
    append(transcripts.turns / "t5.turns.jsonl", *(user(f"{n} " + "large " * 500) for n in range(20)))
    index(settings)
    assert len(found_in(settings, "large")) == 20
