from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.times import iso_utc, parse_bound, parse_iso, to_ms

NOON = to_ms(datetime(2026, 11, 30, 12, tzinfo=UTC))
LAST_MS = to_ms(datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC))
MINUTE = 60_000


def test_a_time_is_written_in_utc_with_milliseconds() -> None:
    assert iso_utc(NOON) == "2026-11-30T12:00:00.000Z"
    assert iso_utc(NOON + 7) == "2026-11-30T12:00:00.007Z"
    assert iso_utc(0) == "1970-01-01T00:00:00.000Z"
    assert iso_utc(-1) == "1969-12-31T23:59:59.999Z"


@given(st.integers(-LAST_MS // 10, LAST_MS))
def test_writing_and_parsing_a_time_are_inverse(at_ms: int) -> None:
    assert parse_iso(iso_utc(at_ms)) == at_ms


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_none(text: str) -> None:
    assert isinstance(parse_iso(text), int | None)
    assert isinstance(parse_bound(text, is_end=True, now_ms=NOON), int | None)


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("2026-11-30T12:00:00Z", NOON),
        ("2026-11-30T14:00:00+02:00", NOON),
        ("2026-11-30T06:30:00-05:30", NOON),
        ("2026-11-30T12:00:00.250Z", NOON + 250),
        ("0m", NOON),
        ("30m", NOON - 30 * MINUTE),
        ("12h", NOON - 12 * 60 * MINUTE),
        ("7d", NOON - 7 * 24 * 60 * MINUTE),
        ("4w", NOON - 4 * 7 * 24 * 60 * MINUTE),
        ("", None),
        ("yesterday", None),
        ("5", None),
        ("-5m", None),
        ("5y", None),
        ("2026-13-01", None),
        ("2026-02-30", None),
        ("0001-01-01T00:00:00+23:59", None),
        ("٣d", None),
    ],
)
def test_a_bound_is_a_time_or_an_age(text: str, at_ms: int | None) -> None:
    assert parse_bound(text, is_end=False, now_ms=NOON) == at_ms


def test_a_date_is_its_whole_day() -> None:
    first = parse_bound("2026-11-30", is_end=False, now_ms=NOON)
    last = parse_bound("2026-11-30", is_end=True, now_ms=NOON)
    assert first == to_ms(datetime(2026, 11, 30).astimezone())
    assert last == to_ms(datetime(2026, 12, 1).astimezone()) - 1


def test_a_time_is_included_to_its_millisecond_at_both_ends() -> None:
    assert parse_bound("2026-11-30T12:00:00Z", is_end=True, now_ms=0) == NOON
    assert parse_bound("2026-11-30T12:00:00Z", is_end=False, now_ms=0) == NOON
