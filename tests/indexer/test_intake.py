"""Whose session a file is: moves, copies, deletions, numbers, and what could not be read."""

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from indexer.intake import Intake, Outcome
from indexer.lanes import LIVE
from indexer.sources import sources_for
from indexer.sources.base import Checkpoint, Part, Source, Transcript
from indexer.store.writer import StoreWriter
from schemas.errors import TurndexError
from schemas.requests import ReadRequest
from schemas.settings import Settings
from search_api.archive import Archive
from search_api.caller import Caller
from tests.indexer.archives import (
    Transcripts,
    agent,
    append,
    contents,
    found_in,
    hits,
    index,
    session_of,
    sessions_of,
    status_of,
    texts_of,
    user,
    write_record,
)


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    return Transcripts(tmp_path)


@pytest.fixture
def settings(transcripts: Transcripts) -> Settings:
    return transcripts.settings()


def register(project: Path, *rows: tuple[int, str, str | None]) -> None:
    with closing(sqlite3.connect(project / ".cydonia" / "state.db")) as registry, registry:
        registry.execute(
            "CREATE TABLE IF NOT EXISTS entries (number INTEGER PRIMARY KEY AUTOINCREMENT,"
            " kind TEXT NOT NULL, id TEXT, UNIQUE(kind, id))"
        )
        registry.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", rows)


def is_readable(settings: Settings, session: str, project: Path | None = None) -> bool:
    with closing(Archive.open(settings)) as archive:
        try:
            request = ReadRequest(session=session, project=None if project is None else str(project))
            return bool(archive.read(request, Caller()).parts)
        except TurndexError:
            return False


# Moves.


def test_a_turn_file_that_moves_keeps_its_handle_and_its_turns(transcripts: Transcripts, settings: Settings) -> None:
    path = transcripts.turn_file("a", user("before the move"), id="b7c1e0a2")
    index(settings)
    before = contents(settings)
    (transcripts.turns / "deeper").mkdir()
    path = path.rename(transcripts.turns / "deeper" / "b.turns.jsonl")
    index(settings)
    assert contents(settings) == before
    append(path, user("after the move"))
    index(settings)
    assert texts_of(settings, "b7c1e0a2") == [["before the move"], ["after the move"]]
    assert contents(settings).keys() == before.keys()


def test_a_turn_file_that_moves_and_grows_meanwhile_is_one_session(
    transcripts: Transcripts, settings: Settings
) -> None:
    path = transcripts.turn_file("a", user("before the move"), id="b7c1e0a2")
    index(settings)
    handles = sessions_of(settings).keys()
    append(path.rename(transcripts.turns / "b.turns.jsonl"), user("after the move"))
    index(settings)
    assert sessions_of(settings).keys() == handles
    assert texts_of(settings, "b7c1e0a2") == [["before the move"], ["after the move"]]


def test_a_project_that_moves_doubles_nothing_and_keeps_handles(transcripts: Transcripts, settings: Settings) -> None:
    kettle = transcripts.project("kettle")
    for n in range(3):
        write_record(kettle, f"179000000000{n}", f"the boiler {n}", "the whistle")
    register(kettle, (4, "session", "1790000000001"))
    index(settings)
    before = contents(settings)
    pan = kettle.rename(kettle.with_name("pan"))
    transcripts.list_projects([pan])
    index(settings)
    assert contents(settings) == before
    assert found_in(settings, "boiler", project=str(pan)) == [(f"179000000000{n}", 1) for n in (2, 1, 0)]
    assert found_in(settings, "boiler", closed="include") == found_in(settings, "boiler", project=str(pan))
    assert found_in(settings, "boiler", project=str(kettle)) == []
    assert session_of(settings, "1790000000001").number == 4
    write_record(pan, "1790000000001", "the boiler 1", "the whistle", "after the move")
    index(settings)
    assert contents(settings).keys() == before.keys()
    assert found_in(settings, "after the move") == [("1790000000001", 3)]


def test_a_project_that_is_copied_has_sessions_of_its_own(transcripts: Transcripts, settings: Settings) -> None:
    kettle = transcripts.project("kettle")
    write_record(kettle, "1790000000000", "the boiler")
    index(settings)
    before = contents(settings)
    pan = kettle.with_name("pan")
    shutil.copytree(kettle, pan)
    transcripts.list_projects([kettle, pan])
    index(settings)
    assert len(contents(settings)) == 2
    assert contents(settings).items() > before.items()
    assert len(found_in(settings, "boiler")) == 2


def test_a_record_of_the_same_name_and_another_text_is_not_taken_for_one_that_moved(
    transcripts: Transcripts, settings: Settings
) -> None:
    kettle, pan = transcripts.project("kettle"), transcripts.project("pan")
    path = write_record(kettle, "1790000000000", "the boiler")
    index(settings)
    path.unlink()
    write_record(kettle, "1790000000001", "so that the folder is not empty")
    write_record(pan, "1790000000000", "quite another thing")
    index(settings)
    assert len(sessions_of(settings)) == 3
    assert found_in(settings, "boiler") == [("1790000000000", 1)]


# Copies.


def test_a_second_live_file_with_the_same_id_is_another_session(transcripts: Transcripts, settings: Settings) -> None:
    transcripts.turn_file("a", user("the original"), id="same-id-1")
    index(settings)
    before = contents(settings)
    path = transcripts.turn_file("b", user("the copy"), id="same-id-1")
    index(settings)
    append(path, user("and more in the copy"))
    index(settings)
    assert len(contents(settings)) == 2
    assert contents(settings).items() > before.items()
    assert len(found_in(settings, "original")) == len(found_in(settings, "more in the copy")) == 1
    path.unlink()
    index(settings)
    assert [one.is_deleted for one in contents(settings).values()] == [False, True]


# Deletions.


def test_a_deleted_file_leaves_a_session_that_is_marked_and_can_be_searched_and_read(
    transcripts: Transcripts, settings: Settings
) -> None:
    path = transcripts.turn_file("gone", user("the lost words"))
    transcripts.turn_file("kept", user("the kept words"))
    index(settings)
    raw = path.read_bytes()
    path.unlink()
    index(settings)
    assert [(hit.session_id, hit.deleted) for hit in hits(settings, "words")] == [("kept", False), ("gone", True)]
    assert is_readable(settings, "gone#1")
    path.write_bytes(raw)
    index(settings)
    assert [(hit.session_id, hit.deleted) for hit in hits(settings, "words")] == [("kept", False), ("gone", False)]
    assert len(sessions_of(settings)) == 2


def test_a_file_that_comes_back_as_it_was_is_not_deleted_any_more(transcripts: Transcripts, settings: Settings) -> None:
    path = transcripts.turn_file("gone", user("the lost words"))
    transcripts.turn_file("kept", user("the kept words"))
    index(settings)
    aside = path.rename(transcripts.folder / "aside")
    index(settings)
    assert session_of(settings, "gone").is_deleted
    aside.rename(path)
    index(settings)
    assert not session_of(settings, "gone").is_deleted


def test_a_file_that_comes_back_longer_goes_on(transcripts: Transcripts, settings: Settings) -> None:
    path = transcripts.turn_file("gone", user("the lost words"))
    transcripts.turn_file("kept", user("the kept words"))
    index(settings)
    aside = path.rename(transcripts.folder / "aside")
    index(settings)
    append(aside.rename(path), user("found again"))
    index(settings)
    assert not session_of(settings, "gone").is_deleted
    assert texts_of(settings, "gone") == [["the lost words"], ["found again"]]


# Numbers.


def test_sessions_are_numbered_by_their_start_the_oldest_first(transcripts: Transcripts, settings: Settings) -> None:
    for name, at in (("a", "2026-11-03"), ("b", "2026-11-01"), ("c", "2026-11-02")):
        transcripts.turn_file(name, user("hello"), project="/home/a/kettle", at=f"{at}T10:00:00Z")
    index(settings)
    assert [session_of(settings, name).number for name in "abc"] == [3, 1, 2]
    for name, at in (("d", "2026-11-05"), ("e", "2026-11-04")):
        transcripts.turn_file(name, user("hello"), project="/home/a/kettle", at=f"{at}T10:00:00Z")
    index(settings)
    assert [session_of(settings, name).number for name in "abcde"] == [3, 1, 2, 5, 4]


def test_a_number_follows_when_its_row_appears_in_the_registry(transcripts: Transcripts, settings: Settings) -> None:
    kettle = transcripts.project("kettle")
    write_record(kettle, "1790000000000", "the boiler")
    index(settings)
    assert session_of(settings, "1790000000000").number is None
    register(kettle, (12, "session", "1790000000000"))
    index(settings)
    assert session_of(settings, "1790000000000").number == 12
    assert is_readable(settings, "kettle#12")


# Closed projects.


def test_a_project_that_is_listed_no_more_is_closed_and_kept(transcripts: Transcripts, settings: Settings) -> None:
    kettle = transcripts.project("kettle")
    write_record(kettle, "1790000000000", "the boiler")
    register(kettle, (12, "session", "1790000000000"))
    index(settings)
    assert found_in(settings, "boiler") == [("1790000000000", 1)]
    transcripts.list_projects([])
    index(settings)
    assert found_in(settings, "boiler") == []
    assert found_in(settings, "boiler", closed="include") == [("1790000000000", 1)]
    assert found_in(settings, "boiler", project=str(kettle)) == [("1790000000000", 1)]
    assert is_readable(settings, "1790000000000")
    assert is_readable(settings, "#12", kettle)
    assert not is_readable(settings, "kettle#12")
    assert not session_of(settings, "1790000000000").is_deleted
    transcripts.list_projects([kettle])
    index(settings)
    assert found_in(settings, "boiler") == [("1790000000000", 1)]


def test_a_project_that_has_turn_files_too_stays_open(transcripts: Transcripts, settings: Settings) -> None:
    kettle = transcripts.project("kettle")
    write_record(kettle, "1790000000000", "the boiler")
    transcripts.turn_file("t", user("the boiler too"), project=str(kettle))
    index(settings)
    transcripts.list_projects([])
    index(settings)
    assert sorted(found_in(settings, "boiler")) == [("1790000000000", 1), ("t", 1)]


# What cannot be read.


def test_a_broken_record_is_counted_with_its_file_and_reason_and_hides_nothing(
    transcripts: Transcripts, settings: Settings
) -> None:
    kettle = transcripts.project("kettle")
    write_record(kettle, "1790000000000", "the boiler 0")
    broken = write_record(kettle, "1790000000001", "the boiler 1")
    write_record(kettle, "1790000000002", "the boiler 2")
    index(settings)
    broken.write_bytes(broken.read_bytes()[:40])
    os.utime(broken, (1_790_000_000, 1_790_000_000))
    transcripts.turn_file("t", b"no JSON\n", user("the boiler 3"), b'{"type": "user"}\n')
    index(settings)
    assert {session for session, _ in found_in(settings, "boiler")} == {f"179000000000{n}" for n in range(3)} | {"t"}
    cydonia, turn_files = status_of(settings).sources[:2]
    assert [(error.file, error.reason, error.count) for error in cydonia.errors] == [
        (str(broken), "not a JSON object, or cut", 1)
    ]
    assert {(Path(error.file).name, error.line, error.reason) for error in turn_files.errors} == {
        ("t.turns.jsonl", 2, "not JSON"),
        ("t.turns.jsonl", 4, 'no "text"'),
    }
    write_record(kettle, "1790000000001", "the boiler, mended")
    index(settings)
    assert status_of(settings).sources[0].errors == []
    assert found_in(settings, "mended") == [("1790000000001", 1)]


def test_a_record_of_a_kind_that_is_not_known_is_counted_as_often_as_it_stands_there(
    transcripts: Transcripts, settings: Settings
) -> None:
    kettle = transcripts.project("kettle")
    for n in range(3):
        write_record(kettle, "1790000000000", items=[{"User": "hello"}, {"Dream": n}, {"Dream": n}])
        index(settings)
        assert status_of(settings).sources[0].skipped == {'unknown item "Dream"': 2}


def test_a_file_without_a_header_waits_until_it_has_one(transcripts: Transcripts, settings: Settings) -> None:
    path = transcripts.turns / "t.turns.jsonl"
    path.write_bytes(b"")
    index(settings)
    assert sessions_of(settings) == {}
    assert status_of(settings).sources[1].files == 1
    append(path, {"type": "session", "id": "t", "project": "/home/a/t"}, user("at last"))
    index(settings)
    assert found_in(settings, "at last") == [("t", 1)]


def test_a_file_that_may_not_be_read_is_counted_and_read_when_it_may(
    transcripts: Transcripts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = transcripts.turn_file("t", user("behind bars"))
    transcripts.turn_file("u", user("behind no bars"))
    opened = os.open

    def refusing(name: Path, *arguments: int) -> int:
        if name == path:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(name, *arguments)

    with monkeypatch.context() as refused:
        refused.setattr("indexer.files.os.open", refusing)
        index(settings)
        assert [(error.file, error.reason) for error in status_of(settings).sources[1].errors] == [
            (str(path), "cannot be read: Permission denied")
        ]
        assert found_in(settings, "bars") == [("u", 1)]
    index(settings)
    assert sorted(found_in(settings, "bars")) == [("t", 1), ("u", 1)]
    assert status_of(settings).sources[1].errors == []


# Reading that was interrupted.


def take(settings: Settings, path: Path) -> Outcome:
    """Read one transcript into the store, and do nothing after it, as if the process were killed then."""
    with closing(StoreWriter(settings.data_dir)) as store:
        source, transcript = _listed(settings, path)
        return Intake(store, lambda project: None).take(source, transcript, LIVE, 0).outcome


def _listed(settings: Settings, path: Path) -> tuple[Source, Transcript]:
    return next(
        (source, transcript)
        for source in sources_for(settings)
        for root in source.roots()
        for transcript in source.transcripts(root)
        if transcript.path == path
    )


def test_a_last_line_that_was_torn_at_a_kill_is_read_at_the_next_start(
    transcripts: Transcripts, settings: Settings
) -> None:
    path = transcripts.turn_file("t", user("whole"))
    index(settings)
    append(path, user("whole too"), json.dumps(user("without its end")).encode())
    assert take(settings, path) is Outcome.UNSETTLED
    index(settings)
    assert texts_of(settings, "t") == [["whole"], ["whole too"], ["without its end"]]


@pytest.mark.parametrize("kind", ["turn-file", "cydonia"])
def test_a_file_of_many_parts_whose_reading_was_killed_is_read_to_its_end_at_the_next_start(
    transcripts: Transcripts, settings: Settings, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.sources.turn_file.PART_BYTES", 2_000)
    monkeypatch.setattr("indexer.sources.whole.PART_CHARS", 2_000)
    texts = [f"{n} " + "long " * 100 for n in range(20)]
    if kind == "turn-file":
        path = transcripts.turn_file("t", *(user(text) for text in texts), *(agent("a") for _ in range(3)))
    else:
        path = write_record(transcripts.project("kettle"), "1790000000000", *texts)
    index(transcripts.settings("whole"))

    class Killed(BaseException):
        pass

    settings.data_dir.mkdir()
    source, _ = _listed(settings, path)
    read = type(source).read

    def cut_short(self: Source, transcript: Transcript, since: Checkpoint | None) -> Iterator[Part]:
        yield from islice(read(self, transcript, since), 2)
        raise Killed

    with monkeypatch.context() as killed:
        killed.setattr(type(source), "read", cut_short)
        with pytest.raises(Killed):
            take(settings, path)
    assert [0 < session.turns < 20 for session in sessions_of(settings).values()] == [True]
    index(settings)
    assert contents(settings) == contents(transcripts.settings("whole"))


def test_a_session_that_is_handed_from_one_project_to_another_is_found_in_the_other(
    transcripts: Transcripts, settings: Settings
) -> None:
    path = transcripts.turn_file("t", user("the wanderer"), project="/home/a/kettle")
    index(settings)
    append(path, {"type": "session", "project": "/home/a/pan"})
    index(settings)
    assert found_in(settings, "wanderer", project="/home/a/pan") == [("t", 1)]
    assert found_in(settings, "wanderer", project="/home/a/kettle") == []
