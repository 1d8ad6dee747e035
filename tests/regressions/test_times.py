"""Ranges of time: which turns and sessions lie in them, how days are written, and what a search says of them."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.settings import Settings
from tests.indexer.archives import Transcripts, index, user
from tests.regressions.asking import answered

FIRST = "1970-01-02T00:00:00Z"
LAST = "9999-12-31T23:59:59.999Z"


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    return Transcripts(tmp_path)


@pytest.fixture
def settings(transcripts: Transcripts) -> Settings:
    return transcripts.settings()


@pytest.fixture(params=["UTC0", "JST-9", "EST5"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The zone that this machine is in."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


def turns_found(settings: Settings, **words: str) -> list[int]:
    """The turns that have `hello`, in their order."""
    return sorted(hit["turn"] for hit in answered(settings, "/session_search", q="hello", **words)["hits"])


def note_of_nothing(settings: Settings, **words: str) -> str:
    answer = answered(settings, "/session_search", q="not there", **words)
    assert answer["hits"] == []
    return str(answer["notes"][0])


def test_the_note_of_an_empty_search_counts_the_turns_that_were_searched(
    transcripts: Transcripts, settings: Settings
) -> None:
    days = ("2026-11-28", "2026-11-29", "2026-11-30")
    transcripts.turn_file("kettle", *(user("hello", f"{day}T12:00:00Z") for day in days))
    transcripts.turn_file("pan", user("hello", "2026-11-28T12:00:00Z"))
    index(settings)
    assert note_of_nothing(settings) == "searched 2 sessions, 4 turns, up to 2026-11-30T12:00:00.000Z"
    within = {"since": "2026-11-29T00:00:00Z", "until": "2026-11-29T23:00:00Z"}
    assert note_of_nothing(settings, **within) == "searched 1 session, 1 turn, up to 2026-11-29T12:00:00.000Z"
    until = note_of_nothing(settings, until="2026-11-28T12:00:00Z")
    assert until == "searched 2 sessions, 2 turns, up to 2026-11-28T12:00:00.000Z"
    named = note_of_nothing(settings, session="kettle#1:1-2")
    assert named == "searched 1 session, 2 turns, up to 2026-11-29T12:00:00.000Z"
    words = note_of_nothing(settings, session="kettle#1:1-2", since="2026-11-29T00:00:00Z", mode="words")
    assert words == "searched 1 session, 1 turn, up to 2026-11-29T12:00:00.000Z"
    assert note_of_nothing(settings, since="2026-12-01T00:00:00Z") == "searched 0 sessions, 0 turns"


def test_sessions_in_a_range_of_time_are_those_with_a_turn_in_it(transcripts: Transcripts, settings: Settings) -> None:
    around = (user("hello", "2026-11-28T12:00:00Z"), user("hello", "2026-11-30T12:00:00Z"))
    transcripts.turn_file("around", *around)
    transcripts.turn_file("within", *around, user("hello", "2026-11-29T12:00:00Z"))
    index(settings)

    def listed(**words: str) -> list[str]:
        return sorted(one["session_id"] for one in answered(settings, "/sessions", **words)["sessions"])

    assert listed(since="2026-11-29T00:00:00Z", until="2026-11-29T23:00:00Z") == ["within"]
    assert listed(since="2026-11-29T00:00:00Z") == listed(until="2026-11-29T00:00:00Z") == ["around", "within"]


def test_the_first_and_the_last_day_of_the_calendar_are_whole_days(
    transcripts: Transcripts, settings: Settings, zone: str
) -> None:
    transcripts.turn_file("kettle", user("hello", FIRST), user("hello", "2026-11-30T12:00:00Z"), user("hello", LAST))
    index(settings)
    assert turns_found(settings, until="9999-12-31") == [1, 2, 3], zone
    assert turns_found(settings, since="9999-12-31") == [3], zone
    assert turns_found(settings, since="0001-01-01") == [1, 2, 3], zone
    assert turns_found(settings, until="0001-01-01") == [], zone


@pytest.mark.parametrize("day", ["2026-11-30", "20261130", "2026-W49-1", "2026W491"])
def test_a_day_is_whole_however_iso_writes_it(
    transcripts: Transcripts, settings: Settings, zone: str, day: str
) -> None:
    times = ("2026-11-29T23:59:59.999", "2026-11-30T00:00:00", "2026-11-30T23:59:59.999", "2026-12-01T00:00:00")
    transcripts.turn_file("kettle", *(user("hello", at) for at in times))
    index(settings)
    assert turns_found(settings, until=day) == [1, 2, 3], zone
    assert turns_found(settings, since=day) == [2, 3, 4], zone
