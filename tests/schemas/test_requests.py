from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import InvalidArgument
from schemas.items import Kind
from schemas.requests import ReadRequest, SearchRequest, SessionsRequest


def test_a_search_has_its_defaults() -> None:
    request = SearchRequest.read({"query": "span"})
    assert request.model_dump() == {
        "query": "span",
        "session": None,
        "project": None,
        "mode": "text",
        "full": False,
        "kind": [],
        "agent": [],
        "source": [],
        "title": None,
        "since": None,
        "until": None,
        "archived": "include",
        "subagents": "exclude",
        "copies": "exclude",
        "closed": "exclude",
        "current": "exclude",
        "order": None,
        "limit": 20,
        "cursor": None,
        "context": 0,
        "explain": False,
    }


def test_words_become_the_declared_types() -> None:
    words = {"query": ["5"], "full": ["1"], "kind": ["user,agent", "tool"], "limit": ["3"], "agent": ["codex"]}
    request = SearchRequest.from_strings(words)
    assert request == SearchRequest(
        query="5", full=True, kind=[Kind.USER, Kind.AGENT, Kind.TOOL], limit=3, agent=["codex"]
    )


def test_one_word_is_as_good_as_a_list_of_it() -> None:
    assert SearchRequest.read({"query": "x", "kind": "agent"}).kind == [Kind.AGENT]
    assert SearchRequest.read({"query": "x", "source": "cydonia,turn-file"}).source == ["cydonia", "turn-file"]


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({}, "query"),
        ({"query": 5}, "query"),
        ({"query": None}, "query"),
        ({"query": "x", "colour": "red"}, "colour"),
        ({"query": "x", "limit": 0}, "limit"),
        ({"query": "x", "limit": 21}, "limit"),
        ({"query": "x", "limit": "3"}, "limit"),
        ({"query": "x", "limit": True}, "limit"),
        ({"query": "x", "limit": 2.5}, "limit"),
        ({"query": "x", "full": "true"}, "full"),
        ({"query": "x", "full": 1}, "full"),
        ({"query": "x", "mode": "fuzzy"}, "mode"),
        ({"query": "x", "order": "NEWEST"}, "order"),
        ({"query": "x", "archived": "yes"}, "archived"),
        ({"query": "x", "kind": ["users"]}, "kind"),
        ({"query": "x", "kind": [["user"]]}, "kind"),
        ({"query": "x", "session": 43}, "session"),
        ({"query": "x", "project": "p" * 5000}, "project"),
        ({"query": "x", "": "y"}, ""),
    ],
)
def test_the_argument_that_is_off_is_named(arguments: dict[str, Any], argument: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        SearchRequest.read(arguments)
    assert refused.value.argument == argument
    assert argument in refused.value.detail


@pytest.mark.parametrize(
    "words",
    [
        {"query": ["x", "y"]},
        {"query": ["x"], "limit": ["3", "3"]},
        {"query": ["x"], "limit": ["three"]},
        {"query": ["x"], "limit": ["٣"]},
        {"query": ["x"], "limit": ["3.0"]},
        {"query": ["x"], "limit": ["-"]},
        {"query": ["x"], "limit": [""]},
        {"query": ["x"], "limit": ["9" * 30]},
        {"query": ["x"], "full": ["yes"]},
        {"query": ["x"], "kind": [""]},
    ],
)
def test_words_that_are_no_such_value_are_refused(words: dict[str, list[str]]) -> None:
    with pytest.raises(InvalidArgument):
        SearchRequest.from_strings(words)


def test_an_unknown_argument_lists_those_there_are() -> None:
    with pytest.raises(InvalidArgument) as refused:
        ReadRequest.read({"session": "#43", "turn": "5"})
    assert refused.value.candidates == ("session", "turns", "project", "full", "max_chars", "cursor")


@pytest.mark.parametrize("body", [None, 5, "query", [], [["query", "x"]]])
def test_a_body_that_is_no_object_is_refused(body: Any) -> None:
    with pytest.raises(InvalidArgument):
        SearchRequest.read(body)


def test_words_that_are_no_utf_8_become_replacement_characters() -> None:
    request = SearchRequest.from_strings({"query": ["a\udcff"], "title": ["\ud800b"], "agent": ["\udfff"]})
    assert (request.query, request.title, request.agent) == ("a\ufffd", "\ufffdb", ["\ufffd"])


def test_limits_of_the_other_calls() -> None:
    assert SessionsRequest.read({"limit": 200}).limit == 200
    assert ReadRequest.read({"session": "#1", "max_chars": 1000}).max_chars == 1000
    assert ReadRequest.read({"session": "#1", "max_chars": 10**12}).max_chars == 10**12
    with pytest.raises(InvalidArgument):
        ReadRequest.read({"session": "#1", "max_chars": 999})
    with pytest.raises(InvalidArgument):
        SessionsRequest.read({"limit": 201})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(SearchRequest.argument_names()) | st.text(max_size=5), JSON, max_size=4))
def test_any_arguments_are_a_request_or_an_invalid_argument(arguments: dict[str, Any]) -> None:
    try:
        SearchRequest.read(arguments)
    except InvalidArgument as refused:
        assert len(refused.detail) < 2000
