"""Reading values whose type and range nobody vouches for."""

from typing import Any

from schemas.times import parse_iso

MAX_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, beyond which a time cannot be written."""


def text(value: Any) -> str | None:
    """The value where it is a text."""
    return value if isinstance(value, str) else None


def in_calendar(at_ms: int | None) -> int | None:
    """The time in Unix milliseconds where it lies in the years 1970 to 9999."""
    return at_ms if at_ms is not None and 0 <= at_ms <= MAX_MS else None


def iso_as_ms(value: Any) -> int | None:
    """An ISO 8601 time as milliseconds, where the value is one in the calendar; without a zone, in the machine's."""
    return in_calendar(parse_iso(value)) if isinstance(value, str) else None


def seconds_as_ms(value: Any) -> int | None:
    """Unix seconds as milliseconds, where the value is an integer in the calendar."""
    return in_calendar(value * 1000) if isinstance(value, int) and not isinstance(value, bool) else None
