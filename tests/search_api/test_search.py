"""What a search tells beside its hits: the lines around them, what it cost, and how far it got."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.answers import SearchAnswer
from schemas.errors import Timeout
from schemas.requests import SearchRequest
from search_api import search as text_search
from search_api.archive import Archive
from search_api.caller import Caller
from tests.indexer.archives import Transcripts, agent, index, user
from tests.search_api.searching_words import NOW_MS, opened

LINES = "one\ntwo\n  three\nthe span\r\nfive\nsix\nseven"


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    return Transcripts(tmp_path)


def answer(transcripts: Transcripts, query: str, **arguments: Any) -> SearchAnswer:
    archive = Archive.open(transcripts.settings())
    try:
        return archive.search(SearchRequest.read({"query": query, **arguments}), Caller())
    finally:
        archive.close()


@pytest.mark.parametrize(("mode", "query"), [("text", "span"), ("regex", "s.an"), ("words", "span")])
@pytest.mark.parametrize(
    ("context", "before", "after"),
    [
        (0, [], []),
        (1, ["  three"], ["five"]),
        (2, ["two", "  three"], ["five", "six"]),
        (5, ["one", "two", "  three"], ["five", "six", "seven"]),
    ],
)
def test_lines_of_the_same_item_around_the_match_are_answered(
    transcripts: Transcripts, mode: str, query: str, context: int, before: list[str], after: list[str]
) -> None:
    transcripts.turn_file("a", user("another item"), agent(LINES), agent("and another"))
    index(transcripts.settings())
    (hit,) = answer(transcripts, query, mode=mode, context=context).hits
    assert (hit.line, hit.before, hit.after) == ("the span", before, after)


@pytest.mark.parametrize("mode", ["text", "regex", "words"])
def test_a_search_that_is_to_explain_itself_says_what_it_did(transcripts: Transcripts, mode: str) -> None:
    transcripts.turn_file("a", user("a span"), user("nothing"), user("the span"), user("else"))
    index(transcripts.settings())
    assert answer(transcripts, "span", mode=mode).explanation is None
    explanation = answer(transcripts, "span", mode=mode, explain=True).explanation
    assert explanation is not None
    assert explanation.matched == 2
    assert 2 <= explanation.verified <= explanation.considered <= 4
    assert explanation.loaded >= 2
    assert "span" in explanation.roads[0].road
    assert explanation.roads[0].at_most_chunks == 2
    assert explanation.step_ms.keys() >= {"load", "verify"}
    assert all(ms >= 0 for ms in explanation.step_ms.values())


class Running:
    """A clock that is late from the so-manieth look on."""

    def __init__(self, looks: int) -> None:
        self._looks = looks

    def is_late(self) -> bool:
        self._looks -= 1
        return self._looks < 0


def page(transcripts: Transcripts, is_late: Callable[[], bool], **arguments: Any) -> SearchAnswer:
    with opened(transcripts.settings()) as tools:
        request = SearchRequest.read(arguments)
        return text_search.search(tools, request, Caller(), now_ms=NOW_MS, is_late=is_late)


@pytest.mark.parametrize("looks", [20, 45, 90])
def test_an_expression_that_is_late_says_how_far_it_got_and_goes_on_from_there(
    transcripts: Transcripts, looks: int
) -> None:
    turns = [user(f"{'span' if n % 40 == 0 else 'text'} {n}", at=f"2026-11-30T10:{n:02}:00Z") for n in range(60)]
    transcripts.turn_file("a", *turns)
    index(transcripts.settings())
    found: list[int] = []
    cursor: str | None = None
    pages = 0
    while pages == 0 or cursor is not None:
        arguments = {"query": "[o-t][o-t][a-f][k-p]", "mode": "regex"} | ({} if cursor is None else {"cursor": cursor})
        answered = page(transcripts, Running(looks).is_late, **arguments)
        assert answered.cursor is None or any("time limit" in note for note in answered.notes)
        found += [hit.turn for hit in answered.hits]
        cursor = answered.cursor
        pages += 1
    assert found == [41, 1]
    assert pages > 1


def test_an_expression_that_takes_too_long_for_one_text_answers_what_it_found_before(
    transcripts: Transcripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("search_api.regex.MAX_STEP_S", -1.0)
    transcripts.turn_file("a", user("ab" * 100_000), *(user(f"text c{n}") for n in range(3)))
    index(transcripts.settings())
    arguments = {"query": "[a-c]+.*[0-9]", "mode": "regex"}
    answered = answer(transcripts, **arguments)
    assert [hit.turn for hit in answered.hits] == [4, 3, 2]
    assert answered.more and "takes too long" in answered.notes[0]
    with pytest.raises(Timeout, match="takes too long"):
        answer(transcripts, **arguments, cursor=answered.cursor)


def test_some_turns_of_a_long_session_are_read_from_the_store(transcripts: Transcripts) -> None:
    transcripts.turn_file("a-session", *(user(f"text {n}") for n in range(300)))
    index(transcripts.settings())
    answered = answer(transcripts, "text", session="a-session:7-9", explain=True)
    assert [hit.turn for hit in answered.hits] == [9, 8, 7]
    assert answered.explanation is not None
    considered, taken = answered.explanation.roads
    assert (considered.road, considered.at_most_chunks, considered.turns) == ("index: term(text)", 300, 0)
    assert (taken.road, taken.at_most_chunks, taken.turns) == ("store: the session's turns", None, 3)


def test_a_text_that_no_word_has_is_explained_too(transcripts: Transcripts) -> None:
    transcripts.turn_file("a", user("a span"))
    index(transcripts.settings())
    explanation = answer(transcripts, "parser", explain=True).explanation
    assert explanation is not None
    assert [(road.road, road.at_most_chunks, road.turns) for road in explanation.roads] == [("index: nothing", 0, 0)]


def test_ranked_words_in_the_order_of_time_say_how_long_the_index_took(transcripts: Transcripts) -> None:
    transcripts.turn_file("a", user("a span"))
    index(transcripts.settings())
    explanation = answer(transcripts, "span", mode="words", order="newest", explain=True).explanation
    assert explanation is not None
    assert "candidates" in explanation.step_ms


def test_where_no_word_is_known_nothing_is_promised(transcripts: Transcripts) -> None:
    transcripts.turn_file("a", user("text 1"))
    transcripts.turn_file("b", *(user(f"text {n}") for n in range(300)))
    index(transcripts.settings())
    explanation = answer(transcripts, "[0-9]", mode="regex", explain=True).explanation
    assert explanation is not None
    roads = [(road.road, road.at_most_chunks) for road in explanation.roads]
    assert roads == [("index: anything", None), ("store: turn by turn", None)]


def test_a_text_that_is_late_is_refused_and_says_how_far_it_got(transcripts: Transcripts) -> None:
    transcripts.turn_file("a", *(user(f"text {n}") for n in range(60)))
    index(transcripts.settings())
    with pytest.raises(Timeout, match="time limit passed"):
        page(transcripts, Running(10).is_late, query="e")


def test_what_was_searched_is_counted_anew_once_the_archive_has_grown(transcripts: Transcripts) -> None:
    transcripts.turn_file("kettle", user("the lid"))
    index(transcripts.settings())
    archive = Archive.open(transcripts.settings())
    try:
        told = [searched(archive), searched(archive)]
        transcripts.turn_file("spout", user("the handle"))
        index(transcripts.settings())
        told.append(searched(archive))
    finally:
        archive.close()
    assert told == ["searched 1 session, 1 turn", "searched 1 session, 1 turn", "searched 2 sessions, 2 turns"]


def searched(archive: Archive) -> str:
    """What a search that finds nothing says of it, without the time."""
    return archive.search(SearchRequest.read({"query": "qxzj"}), Caller()).notes[0].partition(", up to")[0]
