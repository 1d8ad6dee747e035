"""The write side as a whole: what it reads when, and that it stays up to date by itself."""

import os
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import orjson
import pytest

from indexer.lock import Held
from indexer.pipeline import Pipeline
from indexer.service import Indexer, bring_up_to_date, index_once
from indexer.watch import Watcher
from schemas.answers import Indexing
from schemas.errors import Unavailable
from schemas.settings import Settings
from tests.indexer.archives import (
    FIRST_STAMP,
    Transcripts,
    agent,
    append,
    found_in,
    index,
    line_of,
    read_heads,
    reading,
    session_of,
    sessions_of,
    texts_of,
    user,
    write_record,
)
from tests.waiting import wait_for


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    return Transcripts(tmp_path)


@pytest.fixture
def settings(transcripts: Transcripts) -> Settings:
    return transcripts.settings()


@contextmanager
def indexing(settings: Settings) -> Iterator[Indexer]:
    """An indexer that is ready."""
    indexer = Indexer(settings)
    indexer.start()
    try:
        wait_for(lambda: indexer.status().is_ready, "the first scan is done")
        yield indexer
    finally:
        indexer.stop()


def wait_until_found(settings: Settings, query: str, *expected: tuple[str, int]) -> None:
    wait_for(lambda: sorted(found_in(settings, query)) == sorted(expected), f"{query} is found in {expected}")


# Staying up to date.


def test_what_is_written_to_turn_files_is_found(transcripts: Transcripts, settings: Settings) -> None:
    path = transcripts.turn_file("a", user("there before"))
    with indexing(settings):
        assert found_in(settings, "there before") == [("a", 1)]
        append(path, user("appended"))
        wait_until_found(settings, "appended", ("a", 2))
        transcripts.turn_file("b", user("in a new file"))
        wait_until_found(settings, "in a new file", ("b", 1))
        transcripts.turn_file("some/new/folder/c", user("in a new folder"), id="c", project="/home/a/c")
        wait_until_found(settings, "in a new folder", ("c", 1))
        append(transcripts.turns / "some/new/folder/c.turns.jsonl", user("appended there"))
        wait_until_found(settings, "appended there", ("c", 2))
        path.unlink()
        wait_for(lambda: session_of(settings, "a").is_deleted, "the session is marked")
        moved = (transcripts.turns / "b.turns.jsonl").rename(transcripts.turns / "d.turns.jsonl")
        append(moved, user("after a move"))
        wait_until_found(settings, "after a move", ("b", 2))
        assert len(sessions_of(settings)) == 3


def test_what_is_written_to_records_is_found(transcripts: Transcripts, settings: Settings) -> None:
    kettle = transcripts.project("kettle")
    with indexing(settings):
        write_record(kettle, "1790000000000", "a new record")
        wait_until_found(settings, "a new record", ("1790000000000", 1))
        write_record(kettle, "1790000000000", "a new record", "that grew")
        wait_until_found(settings, "that grew", ("1790000000000", 2))
        pan = transcripts.project("pan")
        write_record(pan, "1790000000001", "in a new project")
        wait_until_found(settings, "in a new project", ("1790000000001", 1))
        transcripts.list_projects([pan])
        wait_until_found(settings, "a new record")


def test_folders_that_are_made_later_are_found(transcripts: Transcripts, settings: Settings) -> None:
    transcripts.turns.rmdir()
    transcripts.state_file.unlink()
    with indexing(settings):
        transcripts.turns.mkdir()
        transcripts.turn_file("a", user("in a late folder"))
        wait_until_found(settings, "in a late folder", ("a", 1))
        kettle = transcripts.project("kettle")
        write_record(kettle, "1790000000000", "of a late state file")
        wait_until_found(settings, "of a late state file", ("1790000000000", 1))


def test_a_folder_that_is_made_while_the_others_begin_to_be_watched_is_followed(
    transcripts: Transcripts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcripts.turns.rmdir()
    watch = Watcher.watch

    def watch_a_little_late(watcher: Watcher, *folders: Collection[Path]) -> None:
        transcripts.turns.mkdir(exist_ok=True)
        watch(watcher, *folders)

    monkeypatch.setattr(Watcher, "watch", watch_a_little_late)
    with indexing(settings):
        transcripts.turn_file("a", user("hello there"))
        wait_until_found(settings, "hello", ("a", 1))


def test_a_folder_that_is_removed_and_made_again_is_followed_again(
    transcripts: Transcripts, settings: Settings
) -> None:
    path = transcripts.turn_file("a", user("the first words"))
    with indexing(settings):
        path.unlink()
        transcripts.turns.rmdir()
        transcripts.turns.mkdir()
        transcripts.turn_file("b", user("the second words"))
        wait_until_found(settings, "second words", ("b", 1))
        append(transcripts.turns / "b.turns.jsonl", user("the third words"))
        wait_until_found(settings, "third words", ("b", 2))


def test_polling_finds_what_events_would_tell_of(transcripts: Transcripts) -> None:
    settings = transcripts.settings(indexing={"force_polling": True})
    path = transcripts.turn_file("a", user("there before"))
    with indexing(settings):
        append(path, user("appended"))
        wait_until_found(settings, "appended", ("a", 2))


def test_a_number_follows_a_row_that_comes_a_little_later(transcripts: Transcripts, settings: Settings) -> None:
    kettle = transcripts.project("kettle")
    with indexing(settings):
        write_record(kettle, "1790000000000", "a new record")
        wait_until_found(settings, "a new record", ("1790000000000", 1))
        with closing(sqlite3.connect(kettle / ".cydonia" / "state.db")) as registry, registry:
            registry.execute("CREATE TABLE entries (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT)")
            registry.execute("INSERT INTO entries VALUES (7, 'session', '1790000000000')")
        wait_for(lambda: session_of(settings, "1790000000000").number == 7, "the session has its number")


def test_a_link_to_a_transcript_doubles_nothing(transcripts: Transcripts, settings: Settings) -> None:
    path = transcripts.turn_file("deep/a", user("said once"), id="a")
    with indexing(settings):
        (transcripts.turns / "b.turns.jsonl").symlink_to(path)
        (transcripts.turns / "linked").symlink_to(path.parent)
        append(path, user("and once more"))
        wait_until_found(settings, "once more", ("a", 2))
        transcripts.turn_file("c", user("after the links"))
        wait_until_found(settings, "after the links", ("c", 1))
        append(path, user("and a last time"))
        wait_until_found(settings, "a last time", ("a", 3))
        assert len(sessions_of(settings)) == 2


def test_an_indexer_that_fails_says_so_and_tries_again(
    transcripts: Transcripts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcripts.turn_file("a", user("found in the end"))
    look = Pipeline.look
    failures = [OSError("a bad moment"), sqlite3.OperationalError("database or disk is full")]

    def failing(pipeline: Pipeline) -> object:
        if failures:
            raise failures.pop()
        return look(pipeline)

    monkeypatch.setattr(Pipeline, "look", failing)
    monkeypatch.setattr("indexer.service.RETRY_SECONDS", 0.3)
    indexer = Indexer(settings)
    indexer.start()
    try:
        wait_for(lambda: "tried again: a bad moment" in " ".join(indexer.status().notes), "the failure is told")
        wait_for(lambda: indexer.status().is_ready and not indexer.status().notes, "it is got over")
        wait_until_found(settings, "found in the end", ("a", 1))
    finally:
        indexer.stop()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_indexer_that_ended_by_a_fault_says_so_and_lets_go_of_the_data_directory(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(_: Pipeline) -> bool:
        raise KeyError("a fault")

    with monkeypatch.context() as broken:
        broken.setattr(Pipeline, "step", faulty)
        indexer = Indexer(settings)
        indexer.start()
        wait_for(lambda: "ended by a fault" in " ".join(indexer.status().notes), "it says so")
        indexer.stop()
    index(settings)


# What takes a look through the folders.


@pytest.fixture
def pipeline(transcripts: Transcripts, settings: Settings) -> Iterator[Pipeline]:
    transcripts.turn_file("deep/a", user("hello"), id="a")
    write_record(transcripts.project("kettle"), "1790000000000", "hello")
    with closing(Pipeline(settings)) as pipeline:
        pipeline.look()
        yield pipeline


def test_transcripts_that_changed_are_read_without_a_look(transcripts: Transcripts, pipeline: Pipeline) -> None:
    pipeline.schedule.pop_due()
    turn_file = transcripts.turns / "deep" / "a.turns.jsonl"
    record = transcripts.folder / "work" / "kettle" / ".cydonia" / "sessions" / "1790000000000.json"
    assert not pipeline.changed([turn_file, record])
    assert {unit.path for unit in pipeline.schedule.pop_due()} == {turn_file, record}


@pytest.mark.parametrize(
    ("path", "needs_look"),
    [
        ("state.toml", True),
        ("turns", True),
        ("turns/deep", False),
        ("turns/gone", True),
        ("turns/gone.turns.jsonl", True),
        ("work/kettle/.cydonia/sessions/gone.json", True),
        ("work/kettle/.cydonia", True),
        ("turns/notes.txt", False),
        ("work/kettle/.cydonia/state.db", False),
        ("work/kettle/.cydonia/state.db-wal", False),
        ("work/kettle/.cydonia/worktrees", False),
        ("data", False),
        ("data/store.sqlite-wal", False),
        ("elsewhere", False),
    ],
)
def test_only_what_may_change_which_transcripts_there_are_takes_a_look(
    transcripts: Transcripts, pipeline: Pipeline, path: str, needs_look: bool
) -> None:
    for folder in ("work/kettle/.cydonia/worktrees", "elsewhere"):
        (transcripts.folder / folder).mkdir()
    for name in ("turns/notes.txt", "work/kettle/.cydonia/state.db"):
        (transcripts.folder / name).touch()
    assert pipeline.changed([transcripts.folder / path]) == needs_look


def test_the_transcripts_in_a_folder_that_showed_up_are_read_without_a_look(
    transcripts: Transcripts, pipeline: Pipeline
) -> None:
    new = [transcripts.turn_file(name, user("hello")) for name in ("new/a", "new/b/c")]
    (transcripts.turns / "new" / "notes.txt").touch()
    pipeline.schedule.pop_due()
    assert not pipeline.changed([transcripts.turns / "new"])
    assert {unit.path for unit in pipeline.schedule.pop_due()} == set(new)


def test_a_folder_that_holds_links_takes_a_look(transcripts: Transcripts, pipeline: Pipeline) -> None:
    linked = transcripts.turn_file("new/a", user("hello"))
    (transcripts.turns / "new" / "again.turns.jsonl").symlink_to(linked)
    assert pipeline.changed([transcripts.turns / "new"])


def test_a_folder_with_very_much_in_it_takes_a_look(
    transcripts: Transcripts, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.folders.FOLDER_ENTRIES", 2)
    for name in "abc":
        transcripts.turn_file(f"new/{name}", user("hello"))
    assert pipeline.changed([transcripts.turns / "new"])


def test_a_project_that_may_not_be_entered_hides_no_other(
    transcripts: Transcripts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    kettle, pan = transcripts.project("kettle"), transcripts.project("pan")
    for project in (kettle, pan):
        write_record(project, "1790000000000", f"hello {project.name}")
    stat = os.stat

    def refusing(path: os.PathLike[str], **options: object) -> os.stat_result:
        if os.fspath(path) == str(pan):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(os, "stat", refusing)
    index(settings)
    monkeypatch.undo()
    assert found_in(settings, "hello") == [("1790000000000", 1)]


# First scans.


def test_a_first_scan_reads_the_newest_session_first_and_says_how_far_it_is(
    transcripts: Transcripts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.pipeline.SLICE_SECONDS", 0.0)
    monkeypatch.setattr("indexer.pipeline.PROGRESS_SECONDS", 0.0)
    for n in (3, 1, 4, 0, 2):
        path = transcripts.turn_file(f"t{n}", user("a session"))
        os.utime(path, (1_790_000_000 + n, 1_790_000_000 + n))
    order: list[str] = []
    told: list[Indexing] = []
    with closing(Pipeline(settings)) as pipeline:
        assert pipeline.look().files == 5
        while not pipeline.is_ready:
            pipeline.step()
            read = [session.session_id for session in sessions_of(settings).values() if session.turns]
            order += [session_id for session_id in read if session_id not in order]
            with reading(settings) as store:
                noted = store.meta("progress")
            told += [Indexing(**orjson.loads(noted))] if noted else []
    assert order == ["t4", "t3", "t2", "t1", "t0"]
    assert {one.sessions_total for one in told} == {5}
    assert {one.sessions_done for one in told} >= {1, 2, 3, 4}
    with reading(settings) as store:
        assert store.meta("progress") is None


def test_a_live_change_is_found_before_a_first_scan_ends(
    transcripts: Transcripts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.pipeline.SLICE_SECONDS", 0.0)
    for n in range(5):
        transcripts.turn_file(f"t{n}", user("a session"))
    with closing(Pipeline(settings)) as pipeline:
        pipeline.look()
        pipeline.changed([transcripts.turn_file("live", user("written meanwhile"))])
        pipeline.step()
        assert found_in(settings, "written meanwhile") == [("live", 1)]
        assert not pipeline.is_ready
        assert found_in(settings, "a session") == []


def test_a_first_scan_ends_though_a_line_is_still_being_written(transcripts: Transcripts, settings: Settings) -> None:
    path = transcripts.turn_file("a", user("whole"), b'{"type": "user", "te')
    with closing(Pipeline(settings)) as pipeline:
        pipeline.look()
        while not pipeline.is_ready:
            append(path, b"x")
            if not pipeline.step():
                pipeline.schedule.wait(pipeline.next_due())
        assert found_in(settings, "whole") == [("a", 1)]


def test_what_a_scan_that_stopped_had_done_stays_done(
    transcripts: Transcripts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.pipeline.SLICE_SECONDS", 0.0)
    for n in range(6):
        transcripts.turn_file(f"t{n}", user("a session"))
    with closing(Pipeline(settings)) as pipeline:
        pipeline.look()
        read_heads(pipeline)
        for _ in range(3):
            pipeline.step()
    assert len(found_in(settings, "a session")) == 3
    with closing(Pipeline(settings)) as pipeline:
        assert len(pipeline.look().changed) == 3


def test_index_once_tells_how_far_it_is(
    transcripts: Transcripts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.pipeline.PROGRESS_SECONDS", 0.0)
    sizes = [transcripts.turn_file(f"t{n}", user("x" * 3_000_000)).stat().st_size for n in range(3)]
    told: list[Indexing] = []
    index_once(settings, told.append)
    assert told
    assert {(one.sessions_total, one.bytes_total) for one in told} == {(3, sum(sizes))}
    assert [one.bytes_done for one in told] == sorted(one.bytes_done for one in told)
    assert told[-1].sessions_done == 3


def test_only_one_writes(settings: Settings) -> None:
    with closing(Pipeline(settings)), pytest.raises(Held):
        index(settings)
    index(settings)


def test_a_store_that_cannot_be_opened_leaves_the_data_directory_free(settings: Settings) -> None:
    index(settings)
    store = settings.data_dir / "store.sqlite"
    raw = store.read_bytes()
    store.write_bytes(b"no database at all" * 100)
    for _ in range(2):
        with pytest.raises(Unavailable, match="cannot be opened"):
            index(settings)
    store.write_bytes(raw)
    index(settings)


# Before a search without a server.


def test_a_little_that_is_new_is_indexed_before_a_search(transcripts: Transcripts, settings: Settings) -> None:
    path = transcripts.turn_file("a", user("hello"))
    assert bring_up_to_date(settings, 30) is None
    append(path, user("and more"))
    assert bring_up_to_date(settings, 30) is None
    assert texts_of(settings, "a") == [["hello"], ["and more"]]


def test_a_lot_that_is_new_is_left_and_told(transcripts: Transcripts, settings: Settings) -> None:
    transcripts.turn_file("a", user("x" * 1000))
    says = bring_up_to_date(settings, 0.0001)
    assert says == "the index is not complete yet; 1 transcripts (0.0 MB) are newer; run: turndex index"
    index(settings)
    transcripts.turn_file("b", user("x" * 1000))
    says = bring_up_to_date(settings, 0.0001)
    assert says is not None
    assert says.startswith("the index is of 20")


def test_another_process_that_writes_sees_to_what_is_new(settings: Settings) -> None:
    with closing(Pipeline(settings)):
        assert bring_up_to_date(settings, 30) is None


def test_a_line_that_is_being_written_holds_no_search_up_and_is_read_later(
    transcripts: Transcripts, settings: Settings
) -> None:
    index(settings)
    path = transcripts.turn_file("a", user("hello"), line_of(user("and more")).rstrip())
    says = bring_up_to_date(settings, 1.0)
    assert says is not None
    assert "what is being written now is not all in it" in says
    assert texts_of(settings, "a") == [["hello"]]
    os.utime(path, (1_790_000_000, 1_790_000_000))
    assert bring_up_to_date(settings, 30) is None
    assert texts_of(settings, "a") == [["hello"], ["and more"]]


def test_a_record_that_is_rewritten_all_the_time_holds_no_search_up(
    transcripts: Transcripts, settings: Settings
) -> None:
    index(settings)
    path = write_record(transcripts.project("kettle"), "1790000000000", "hello")
    path.write_text("", encoding="utf-8")
    says = bring_up_to_date(settings, 0.1)
    assert says is not None
    assert "run: turndex index" in says


def test_a_full_disk_holds_no_search_up(
    transcripts: Transcripts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcripts.turn_file("a", user("hello"))
    index(settings)
    transcripts.turn_file("b", user("hello"))
    full = transcripts.settings(limits={"min_free_bytes": 2**60})
    says = bring_up_to_date(full, 30)
    assert says is not None
    assert "indexing stands still" in says
    assert found_in(settings, "hello") == [("a", 1)]


# Live commits.


def test_live_changes_are_committed_ten_times_a_second_at_most(
    transcripts: Transcripts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = transcripts.turn_file("a", user("hello"))
    index(settings)
    now = 1000.0
    commits: list[float] = []
    with monkeypatch.context() as still, closing(Pipeline(settings)) as pipeline:
        still.setattr("indexer.pipeline.time.monotonic", lambda: now)
        commit: Callable[[], None] = pipeline._follower.commit_live

        def noting() -> None:
            commits.append(now)
            commit()

        still.setattr(pipeline._follower, "commit_live", noting)
        pipeline.look()
        for n in range(60):
            append(path, agent(f"line {n}"))
            pipeline.changed([path])
            pipeline.step()
            now += 1 / 60
    assert all(later - earlier >= 0.1 for earlier, later in pairwise(commits))
    assert 8 <= len(commits) <= 10
    index(settings)
    assert len(texts_of(settings, "a")[0]) == 61


def test_a_record_is_read_five_times_a_second_at_most(
    transcripts: Transcripts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    kettle = transcripts.project("kettle")
    index(settings)
    now = 1000.0
    monkeypatch.setattr("indexer.pipeline.time.monotonic", lambda: now)
    reads = 0
    with closing(Pipeline(settings)) as pipeline:
        pipeline.look()
        for n in range(60):
            pipeline.changed([write_record(kettle, f"{FIRST_STAMP}", f"text {n}")])
            for unit in pipeline.schedule.pop_due():
                pipeline._read_unit(unit)
                reads += 1
            now += 1 / 60
    assert 4 <= reads <= 6
