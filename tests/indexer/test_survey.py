"""What a look at the folders says of files and folders that are gone, and of folders that cannot be read."""

import os
import shutil
from pathlib import Path

import pytest

from indexer.store.files import Files
from schemas.settings import Settings, load_settings
from tests.indexer.archives import (
    Transcripts,
    append,
    contents,
    found_in,
    index,
    session_of,
    status_of,
    user,
    write_record,
)


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    transcripts = Transcripts(tmp_path)
    for name in ("a", "deep/b", "deep/c"):
        transcripts.turn_file(name, user(f"the words of {name}"), id=name.rpartition("/")[2])
    return transcripts


@pytest.fixture
def settings(transcripts: Transcripts) -> Settings:
    settings = transcripts.settings()
    index(settings)
    return settings


def unavailable(settings: Settings) -> list[str]:
    return [why for source in status_of(settings).sources for why in source.unavailable]


def test_a_root_that_is_missing_changes_nothing_and_comes_back(transcripts: Transcripts, settings: Settings) -> None:
    before = contents(settings)
    aside = transcripts.turns.rename(transcripts.folder / "aside")
    index(settings)
    assert contents(settings) == before
    assert unavailable(settings) == [f"{transcripts.turns}: No such file or directory"]
    append(aside / "a.turns.jsonl", user("written elsewhere"))
    aside.rename(transcripts.turns)
    index(settings)
    assert unavailable(settings) == []
    assert found_in(settings, "written elsewhere") == [("a", 2)]


def test_a_root_that_is_empty_where_it_was_not_changes_nothing_and_comes_back(
    transcripts: Transcripts, settings: Settings
) -> None:
    before = contents(settings)
    aside = transcripts.turns.rename(transcripts.folder / "aside")
    transcripts.turns.mkdir()
    index(settings)
    assert contents(settings) == before
    assert unavailable(settings) == [f"{transcripts.turns}: it is empty where it was not"]
    transcripts.turns.rmdir()
    aside.rename(transcripts.turns)
    (transcripts.turns / "a.turns.jsonl").unlink()
    index(settings)
    assert unavailable(settings) == []
    assert session_of(settings, "a").is_deleted


def test_a_root_that_cannot_be_read_changes_nothing_and_comes_back(
    transcripts: Transcripts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(settings)
    scandir = os.scandir

    def refusing(folder: Path) -> object:
        if Path(folder) == transcripts.turns / "deep":
            raise PermissionError(13, "Permission denied", str(folder))
        return scandir(folder)

    (transcripts.turns / "deep" / "b.turns.jsonl").unlink()
    with monkeypatch.context() as refused:
        refused.setattr("indexer.sources.files.os.scandir", refusing)
        append(transcripts.turns / "a.turns.jsonl", user("written meanwhile"))
        index(settings)
        assert unavailable(settings) == [f"{transcripts.turns}: Permission denied"]
        assert {handle: kept.is_deleted for handle, kept in contents(settings).items()} == dict.fromkeys(before, False)
        assert found_in(settings, "written meanwhile") == [("a", 2)]
    index(settings)
    assert unavailable(settings) == []
    assert [session_of(settings, name).is_deleted for name in "abc"] == [False, True, False]


def test_a_root_on_another_device_changes_nothing_until_what_is_known_is_there_again(
    transcripts: Transcripts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = transcripts.turns.stat().st_dev
    aside = (transcripts.turns / "a.turns.jsonl").rename(transcripts.folder / "aside")
    with monkeypatch.context() as mounted:
        mounted.setattr("indexer.survey._device", lambda root: device + 1)
        index(settings)
        assert not session_of(settings, "a").is_deleted
        assert unavailable(settings) == [f"{transcripts.turns}: it is on another device than before"]
        aside.rename(transcripts.turns / "a.turns.jsonl")
        index(settings)
        assert unavailable(settings) == []
        (transcripts.turns / "a.turns.jsonl").unlink()
        index(settings)
        assert session_of(settings, "a").is_deleted


def test_a_root_that_was_never_there_is_nothing_to_speak_of(tmp_path: Path) -> None:
    transcripts = Transcripts(tmp_path)
    settings = load_settings(flags={"data_dir": str(tmp_path / "data")})
    transcripts.turns.rmdir()
    index(settings)
    assert unavailable(settings) == []


def test_a_root_that_was_named_and_is_not_there_is_told(tmp_path: Path) -> None:
    transcripts = Transcripts(tmp_path)
    transcripts.turns.rmdir()
    index(transcripts.settings())
    assert unavailable(transcripts.settings()) == [f"{transcripts.turns}: No such file or directory"]


def test_a_folder_in_a_root_that_is_removed_deletes_what_was_in_it(
    transcripts: Transcripts, settings: Settings
) -> None:
    shutil.rmtree(transcripts.turns / "deep")
    index(settings)
    assert [session_of(settings, name).is_deleted for name in "abc"] == [False, True, True]
    assert len(found_in(settings, "the words")) == 3


def test_the_sessions_folder_of_a_project_that_is_missing_changes_nothing(
    transcripts: Transcripts, settings: Settings
) -> None:
    kettle = transcripts.project("kettle")
    write_record(kettle, "1790000000000", "the boiler")
    index(settings)
    sessions = kettle / ".cydonia" / "sessions"
    aside = sessions.rename(kettle / "aside")
    index(settings)
    assert found_in(settings, "boiler") == [("1790000000000", 1)]
    assert not session_of(settings, "1790000000000").is_deleted
    assert unavailable(settings) == [f"{sessions}: No such file or directory"]
    aside.rename(sessions)
    index(settings)
    assert unavailable(settings) == []


def test_a_root_that_is_named_no_more_is_not_unavailable(transcripts: Transcripts, settings: Settings) -> None:
    kettle = transcripts.project("kettle")
    write_record(kettle, "1790000000000", "the boiler")
    index(settings)
    shutil.rmtree(kettle / ".cydonia")
    index(settings)
    assert unavailable(settings) != []
    transcripts.list_projects([])
    index(settings)
    assert unavailable(settings) == []


def test_a_root_that_was_unavailable_when_it_was_first_named_is_like_any_other_later(
    transcripts: Transcripts, settings: Settings
) -> None:
    kettle = transcripts.project("kettle")
    for n in range(2):
        write_record(kettle, f"179000000000{n}", f"the boiler {n}")
    index(settings)
    transcripts.list_projects([])
    index(settings)
    sessions = kettle / ".cydonia" / "sessions"
    aside = sessions.rename(kettle / "aside")
    transcripts.list_projects([kettle])
    index(settings)
    assert unavailable(settings) != []
    aside.rename(sessions)
    (sessions / "1790000000000.json").unlink()
    index(settings)
    assert unavailable(settings) == []
    assert session_of(settings, "1790000000000").is_deleted


def test_files_are_counted_with_their_bytes(transcripts: Transcripts, settings: Settings) -> None:
    turn_files = status_of(settings).sources[1]
    sizes = [path.stat().st_size for path in transcripts.turns.rglob("*.turns.jsonl")]
    assert (turn_files.files, turn_files.bytes) == (len(sizes), sum(sizes))


def test_a_look_at_what_did_not_change_reads_nothing(
    transcripts: Transcripts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("something was stored")

    monkeypatch.setattr(Files, "put", refused)
    index(settings)
