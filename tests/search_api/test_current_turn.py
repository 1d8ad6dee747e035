"""The turn that the caller is in is left out of a search over several sessions, and said so."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from schemas.answers import SearchAnswer
from schemas.requests import SearchRequest
from search_api.archive import Archive
from search_api.caller import Caller
from search_api.render import text_form
from tests.indexer.archives import Transcripts, append, index, user

NOTE = "… left out: matches in the turn that you are in; current=include brings them back"
ME = Caller("/home/a/kettle", "kettle-me")


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    transcripts = Transcripts(tmp_path)
    said = [user("the lid is off", "2026-11-01T10:00:00Z"), user("where is the lid", "2026-11-03T10:00:00Z")]
    transcripts.turn_file("kettle", *said, id="kettle-me")
    transcripts.turn_file("lamp", user("no lid on a lamp", "2026-11-02T10:00:00Z"))
    transcripts.turn_file(
        "shelf", user("the shelf", "2026-11-02T11:00:00Z"), id="kettle-shelf", project="/home/a/kettle"
    )
    index(transcripts.settings())
    return transcripts


@pytest.fixture
def archive(transcripts: Transcripts) -> Iterator[Archive]:
    with closing(Archive.open(transcripts.settings())) as archive:
        yield archive


def search(archive: Archive, caller: Caller = ME, **arguments: Any) -> SearchAnswer:
    return archive.search(SearchRequest.read({"query": "lid", "project": "*", **arguments}), caller)


def turns(answer: SearchAnswer) -> list[tuple[str, int]]:
    return [(hit.session_id, hit.turn) for hit in answer.hits]


@pytest.mark.parametrize("mode", ["text", "regex", "words"])
@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_it_is_left_out_in_every_mode_and_order(archive: Archive, mode: str, order: str) -> None:
    expected = [("lamp", 1), ("kettle-me", 1)]
    answer = search(archive, mode=mode, order=order)
    assert turns(answer) == (expected if order == "newest" else expected[::-1])
    assert text_form(answer).endswith(NOTE)


def test_the_best_are_without_it(archive: Archive) -> None:
    answer = search(archive, mode="words")
    assert sorted(turns(answer)) == [("kettle-me", 1), ("lamp", 1)]
    assert text_form(answer).endswith(NOTE)


def test_it_is_there_when_it_is_asked_for(archive: Archive) -> None:
    answer = search(archive, current="include")
    assert turns(answer) == [("kettle-me", 2), ("lamp", 1), ("kettle-me", 1)]
    assert answer.left_out == []


def test_a_session_that_is_named_is_searched_whatever_it_is(archive: Archive) -> None:
    answer = search(archive, session="kettle-me")
    assert turns(answer) == [("kettle-me", 2), ("kettle-me", 1)]
    assert answer.left_out == []


def test_nothing_is_said_where_it_does_not_match(archive: Archive) -> None:
    answer = search(archive, query="lamp")
    assert (turns(answer), answer.left_out) == ([("lamp", 1)], [])


def test_where_it_alone_matches_the_answer_says_so(archive: Archive) -> None:
    text = text_form(search(archive, query="where is the lid"))
    assert text.startswith("nothing matches where is the lid\n")
    assert text.endswith(NOTE)


def test_the_next_turn_takes_its_place(transcripts: Transcripts, archive: Archive) -> None:
    append(transcripts.turns / "kettle.turns.jsonl", user("found the lid", "2026-11-04T10:00:00Z"))
    index(transcripts.settings())
    assert turns(search(archive)) == [("kettle-me", 2), ("lamp", 1), ("kettle-me", 1)]


def test_pages_leave_it_out_and_only_the_page_that_met_it_says_so(archive: Archive) -> None:
    first = search(archive, limit=1)
    second = search(archive, limit=1, cursor=first.cursor)
    assert (turns(first), turns(second)) == ([("lamp", 1)], [("kettle-me", 1)])
    assert [len(answer.left_out) for answer in (first, second)] == [1, 0]


@pytest.mark.parametrize(
    "caller",
    [Caller(), Caller("/home/a/kettle"), Caller("/home/a/kettle", "nobody"), Caller("/home/a/kettle", "kettle-shelf")],
)
def test_nothing_else_is_left_out(archive: Archive, caller: Caller) -> None:
    assert len(search(archive, caller).hits) == 3


def test_a_caller_without_a_project_is_known_by_its_id(archive: Archive) -> None:
    assert len(search(archive, Caller(None, "KETTLE-ME")).hits) == 2


def test_of_two_sessions_with_one_id_the_one_in_the_callers_project_is_meant(transcripts: Transcripts) -> None:
    said = user("a lid too", "2026-11-05T10:00:00Z")
    transcripts.turn_file("shed/kettle", said, id="kettle-me", project="/home/a/shed")
    index(transcripts.settings())
    with closing(Archive.open(transcripts.settings())) as archive:
        assert ("kettle-me", 1) in turns(search(archive, limit=1))
        assert len(search(archive).hits) == 3
        assert len(search(archive, Caller("/home/a/shed", "kettle-me")).hits) == 3
        assert len(search(archive, Caller(None, "kettle-me")).hits) == 4
