"""Numbers stay what they were, and keep out of the way of those that a project's own registry gives."""

from pathlib import Path

import pytest

from indexer.service import Indexer
from schemas.settings import Settings
from tests.indexer.archives import Transcripts, append, found_in, index, session_of, user, write_record
from tests.regressions.asking import answered, session_named, write_registry
from tests.waiting import wait_for

SESSION = "1790000000000"


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    return Transcripts(tmp_path)


@pytest.fixture
def settings(transcripts: Transcripts) -> Settings:
    return transcripts.settings()


@pytest.fixture
def kettle(transcripts: Transcripts) -> Path:
    """A listed project, with a session that its registry calls #2."""
    project = transcripts.project("kettle")
    write_record(project, SESSION, "hello")
    write_registry(project, (2, "session", SESSION))
    return project


def test_numbers_of_ours_keep_out_of_the_way_of_a_registry_in_a_project_that_is_not_listed(
    transcripts: Transcripts, settings: Settings
) -> None:
    project = transcripts.folder / "pan"
    write_registry(project, (1, "session", "1790000000000"))
    transcripts.turn_file("a", user("hello"), project=str(project))
    index(settings)
    assert session_of(settings, "a").number == 100_001


def test_a_number_of_ours_that_was_given_before_a_registry_came_is_followed_by_100001(
    transcripts: Transcripts, settings: Settings
) -> None:
    project = transcripts.folder / "pan"
    transcripts.turn_file("a", user("hello"), project=str(project))
    index(settings)
    write_registry(project, (1, "board", "b"))
    transcripts.turn_file("b", user("hello"), project=str(project))
    index(settings)
    assert [session_of(settings, name).number for name in ("a", "b")] == [1, 100_001]


def test_a_session_that_moves_to_a_project_gets_a_number_beside_the_registry_that_came_there_meanwhile(
    transcripts: Transcripts, settings: Settings
) -> None:
    project = transcripts.folder / "pan"
    transcripts.turn_file("a", user("hello"), project=str(project))
    moving = transcripts.turn_file("b", user("hello"), project="/home/a/kettle")
    indexer = Indexer(settings)
    indexer.start()
    try:
        wait_for(lambda: indexer.status().is_ready, "the first scan is done")
        write_registry(project, (1, "board", "b"))
        append(moving, {"type": "session", "project": str(project)}, user("moved"))
        wait_for(lambda: found_in(settings, "moved") == [("b", 2)], "it is read")
    finally:
        indexer.stop()
    assert [session_of(settings, name).number for name in ("a", "b")] == [1, 100_001]


@pytest.mark.parametrize("entries", [[(2, "session", None)], []], ids=["tombstone", "no row"])
def test_a_number_that_the_registry_has_no_more_names_its_session_and_is_no_link(
    settings: Settings, kettle: Path, entries: list[tuple[int, str, str | None]]
) -> None:
    index(settings)
    (before,) = answered(settings, "/session_search", q="hello")["hits"]
    assert (before["reference"], before["link"]) == ("kettle#2:1", "cydonia://kettle#2:1")
    write_registry(kettle, *entries)
    index(settings)
    read = answered(settings, "/session_read", session="kettle#2")
    assert (read["session_id"], read["link"]) == (SESSION, None)
    (hit,) = answered(settings, "/session_search", q="hello")["hits"]
    assert (hit["reference"], hit["link"]) == ("kettle#2:1", None)
    (listed,) = answered(settings, "/sessions")["sessions"]
    assert (listed["reference"], listed["link"]) == ("kettle#2", None)


def test_a_number_that_a_session_had_still_names_it_after_it_got_another(settings: Settings, kettle: Path) -> None:
    index(settings)
    write_registry(kettle, (2, "session", None), (7, "session", SESSION))
    index(settings)
    assert session_named(settings, "kettle#2") == session_named(settings, "kettle#7") == SESSION
    assert answered(settings, "/session_read", session="kettle#2")["reference"] == "kettle#7"


def test_a_number_that_was_given_to_another_session_names_that_one(settings: Settings, kettle: Path) -> None:
    index(settings)
    other = write_record(kettle, "1790000000001", "hello again").stem
    write_registry(kettle, (2, "session", other), (7, "session", SESSION))
    index(settings)
    assert (session_named(settings, "kettle#2"), session_named(settings, "kettle#7")) == (other, SESSION)
