"""How turns are ranked by words, and how a ranking is answered page by page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from schemas.answers import SearchAnswer
from schemas.errors import InvalidArgument, InvalidQuery, StaleCursor, Timeout
from schemas.requests import SearchRequest
from search_api.caller import Caller
from search_api.cursor import write_cursor
from search_api.ranked_lists import RankedLists, RankedTurns
from search_api.words_search import search_words
from tests.indexer.archives import Transcripts, agent, append, index, user
from tests.search_api.searching_words import NOW_MS, opened, pages, search


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    return Transcripts(tmp_path)


def indexed(transcripts: Transcripts, *turns: Sequence[dict[str, Any]]) -> None:
    """An archive of one session, with these turns a second apart."""
    lines = [
        line
        if place or line["type"] != "user"
        else {**line, "at": f"2026-11-30T10:{number // 60:02}:{number % 60:02}Z"}
        for number, turn in enumerate(turns)
        for place, line in enumerate(turn)
    ]
    transcripts.turn_file("a", *lines)
    index(transcripts.settings())


def found(transcripts: Transcripts, query: str, **arguments: Any) -> list[int]:
    """The turns that are answered, in order."""
    with opened(transcripts.settings()) as tools:
        return [hit.turn for page in pages(tools, {"query": query, **arguments}) for hit in page.hits]


def answer(transcripts: Transcripts, query: str, **arguments: Any) -> SearchAnswer:
    with opened(transcripts.settings()) as tools:
        return search(tools, {"query": query, **arguments})


def test_rare_words_and_short_texts_come_first_and_the_newest_of_equals(transcripts: Transcripts) -> None:
    indexed(
        transcripts,
        [user("span")],
        [user("span and much more that is said about it")],
        [user("span")],
        [user("span parser")],
    )
    assert found(transcripts, "span") == [3, 1, 4, 2]
    assert found(transcripts, "span OR parser") == [4, 3, 1, 2]
    assert found(transcripts, "span", order="newest") == [4, 3, 2, 1]
    assert found(transcripts, "span", order="oldest", limit=3) == [1, 2, 3, 4]


def test_words_hold_for_a_turn_and_phrases_for_a_line(transcripts: Transcripts) -> None:
    indexed(
        transcripts,
        [user("off by"), agent("one")],
        [user("off\nby one")],
        [user("it is off -- by: one!")],
        [user("off-by-ones")],
    )
    assert sorted(found(transcripts, "one off by")) == [1, 2, 3]
    assert found(transcripts, '"off by one"') == [3]
    assert sorted(found(transcripts, '"off by on"*')) == [3, 4]
    assert sorted(found(transcripts, "off -ones -one")) == []
    assert sorted(found(transcripts, "off -ones")) == [1, 2, 3]


def test_words_of_a_turn_may_lie_in_chunks_of_their_own(transcripts: Transcripts) -> None:
    filler = "\n".join(f"line {number} of what was printed" for number in range(1500))
    indexed(
        transcripts,
        [user("alpha"), agent(filler), agent("omega")],
        [user("alpha")],
        [user("omega"), agent(filler), agent("draft")],
    )
    assert found(transcripts, "alpha omega") == [1]
    assert found(transcripts, "omega -draft") == [1]


def test_what_is_not_looked_through_neither_matches_nor_excludes(transcripts: Transcripts) -> None:
    indexed(transcripts, [user("span"), {"type": "thinking", "text": "a draft of the parser"}], [user("span draft")])
    assert found(transcripts, "span parser") == []
    assert found(transcripts, "span parser", full=True) == [1]
    assert found(transcripts, "span -draft") == [1]
    assert found(transcripts, "span -draft", full=True) == []
    assert found(transcripts, "span kind:agent") == []


def test_the_best_line_has_most_of_the_words(transcripts: Transcripts) -> None:
    long_line = "x" * 300 + " the Span's parser, " + "y" * 300
    indexed(transcripts, [user("the span\n" + long_line + "\nspan parser again")])
    (hit,) = answer(transcripts, "span parser").hits
    assert hit.line == "…" + long_line[265:425] + "…"
    assert [hit.line[start:end] for start, end in hit.spans] == ["Span", "parser"]
    (hit,) = answer(transcripts, '"parser again" span').hits
    assert (hit.line, hit.spans) == ("span parser again", [(0, 4), (5, 17)])


def test_a_word_weighs_the_same_in_both_folders_of_the_index(transcripts: Transcripts) -> None:
    transcripts.turn_file("old", *[user(f"other {number}") for number in range(50)], user("span here"))
    index(transcripts.settings())
    transcripts.turn_file("new", user("span here"), user("span here", at="2026-11-30T10:00:00Z"))
    index(transcripts.settings())
    with opened(transcripts.settings()) as tools:
        assert tools.index.documents() == 53
        hits = search(tools, {"query": "span"}).hits
    assert [hit.at for hit in hits] == sorted([hit.at for hit in hits], reverse=True)
    assert [hit.session_id for hit in hits].count("new") == 2


def test_no_more_than_a_thousand_turns_are_ranked(transcripts: Transcripts) -> None:
    indexed(transcripts, *[[user(f"span {number}")] for number in range(1100)])
    with opened(transcripts.settings()) as tools:
        answers = list(pages(tools, {"query": "span"}, RankedLists()))
    assert len({hit.turn for page in answers for hit in page.hits}) == 1000
    assert not answers[-1].more
    assert [page.notes for page in answers] == [[]] * 49 + [
        ["only the best 1000 turns are ranked and more may match; narrow the query, or order by newest"]
    ]
    assert len(found(transcripts, "span", order="newest")) == 1100


def test_turns_are_found_where_few_that_have_a_frequent_word_match(transcripts: Transcripts) -> None:
    # The others are better by what the index knows: it has their words, and not who said them.
    few, many = [user("span"), agent("other")], [user("other"), agent("span span")]
    indexed(transcripts, *[few if number % 100 == 0 else many for number in range(5000)])
    assert sorted(found(transcripts, "span kind:user")) == list(range(1, 5001, 100))
    assert found(transcripts, "span kind:user order", order="newest") == []


def test_frequent_words_that_share_no_chunk_are_brought_together(transcripts: Transcripts) -> None:
    filler = "\n".join(f"line {number} of what was printed" for number in range(1500))
    said = [[user("alpha")], [user("omega")]] * 2100
    indexed(transcripts, *said, *[[user("alpha"), agent(filler), agent("omega")]] * 2)
    assert found(transcripts, "alpha omega") == [4202, 4201]


def test_pages_come_from_one_ranking_while_the_archive_grows(transcripts: Transcripts) -> None:
    indexed(transcripts, *[[user(f"span {number}")] for number in range(5)])
    lists = RankedLists()
    with opened(transcripts.settings()) as tools:
        first = search(tools, {"query": "span", "limit": 2}, lists)
    append(transcripts.turns / "a.turns.jsonl", user("span", at="2026-11-30T11:00:00Z"))
    index(transcripts.settings())
    with opened(transcripts.settings()) as tools:
        second = search(tools, {"query": "span", "limit": 20, "cursor": first.cursor}, lists)
        with pytest.raises(StaleCursor, match="run the search again"):
            search(tools, {"query": "span", "limit": 2, "cursor": first.cursor}, RankedLists())
    assert [hit.turn for hit in first.hits + second.hits] == [5, 4, 3, 2, 1]


def test_a_ranking_that_is_not_kept_is_made_again_where_nothing_has_changed(transcripts: Transcripts) -> None:
    indexed(transcripts, *[[user(f"span {number}")] for number in range(5)])
    assert found(transcripts, "span", limit=2) == [5, 4, 3, 2, 1]


def test_rankings_are_kept_for_a_time_and_up_to_a_number() -> None:
    now = [0.0]
    lists = RankedLists(clock=lambda: now[0])
    kept = [RankedTurns([(number, 2, 3), (4, 5, 6)], is_cut=False) for number in range(65)]
    for one in kept:
        lists.keep("a call", one)
    assert lists.get("a call", kept[0].id) is None
    assert lists.get("a call", kept[1].id) == kept[1]
    assert lists.get("another call", kept[1].id) is None
    now[0] = 601.0
    assert lists.get("a call", kept[1].id) is None


def test_the_same_turns_in_another_order_or_cut_are_another_ranking() -> None:
    keys = [(1, 2, 3), (4, 5, 6)]
    ids = {RankedTurns(keys, False).id, RankedTurns(keys[::-1], False).id, RankedTurns(keys, True).id}
    assert len(ids) == 3
    assert all(0 <= one < 2**62 for one in ids)


def test_a_cursor_with_another_place_is_refused(transcripts: Transcripts) -> None:
    indexed(transcripts, [user("span")], [user("span")])
    first = answer(transcripts, "span", limit=1)
    with pytest.raises(InvalidArgument, match="belongs to another call"):
        answer(transcripts, "span parser", cursor=first.cursor)
    with pytest.raises(InvalidArgument, match="not one that an answer gave"):
        answer(transcripts, "span", cursor=write_cursor("", [1, 2]))


@pytest.mark.parametrize(
    ("query", "arguments", "argument", "says"),
    [
        ("span kind:bogus", {}, "kind", "write it in quotes"),
        ("span archived:yes", {}, "archived", "write it in quotes"),
        ("span title:a title:b", {}, "title", "given 2 times"),
        ("span source:nope", {}, "source", "no source nope"),
        ("span since:tomorrow", {}, "since", "since takes a date"),
        ("span agent:codex", {"agent": ["claude"]}, "agent", "give it once"),
    ],
)
def test_a_value_that_a_filter_does_not_take_is_refused(
    transcripts: Transcripts, query: str, arguments: dict[str, Any], argument: str, says: str
) -> None:
    indexed(transcripts, [user("span")])
    with pytest.raises(InvalidArgument, match=says) as refused:
        answer(transcripts, query, **arguments)
    assert refused.value.argument == argument


def test_filters_in_the_query_are_those_of_the_call(transcripts: Transcripts) -> None:
    transcripts.turn_file(
        "a", user("span"), user("span", at="2020-02-29T10:00:00Z"), agent="Codex CLI", title="One day"
    )
    transcripts.turn_file("b", user("span"), agent="Claude", title="Two")
    index(transcripts.settings())

    def sessions(query: str) -> list[tuple[str, int]]:
        return sorted((hit.session_id, hit.turn) for hit in answer(transcripts, query).hits)

    assert sessions("span") == [("a", 1), ("a", 2), ("b", 1)]
    assert sessions('span agent:"codex cli"') == [("a", 1), ("a", 2)]
    assert sessions("span title:two") == [("b", 1)]
    assert sessions("span session:a:2") == sessions("span since:2020-02-29 until:2020-02-29") == [("a", 2)]
    assert sessions("span source:cydonia") == []
    assert sessions("span project:/home/a/b") == [("b", 1)]


def test_what_was_not_understood_is_said(transcripts: Transcripts) -> None:
    indexed(transcripts, [user("span parser")])
    misread = answer(transcripts, '"span parser')
    assert [hit.turn for hit in misread.hits] == [1]
    assert misread.notes == ["a quote is not closed, so plain words were searched for: span parser"]
    signs = answer(transcripts, "=> {}")
    assert signs.hits == []
    assert signs.notes[0] == "the query has no words; mode=text finds signs"
    with pytest.raises(InvalidQuery):
        answer(transcripts, " \n ")
    with pytest.raises(InvalidQuery):
        answer(transcripts, "span " * 1000)


def test_a_search_that_takes_too_long_is_ended(transcripts: Transcripts) -> None:
    indexed(transcripts, [user("span")])
    with opened(transcripts.settings()) as tools, pytest.raises(Timeout):
        search_words(
            tools,
            SearchRequest.read({"query": "span", "mode": "words"}),
            Caller(),
            order="best",
            now_ms=NOW_MS,
            is_late=lambda: True,
            lists=RankedLists(),
        )
