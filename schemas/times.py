"""Times: Unix milliseconds inside, ISO 8601 with milliseconds and `Z` at the edges."""

import re
from datetime import UTC, datetime, timedelta

_AGE = re.compile(r"([0-9]{1,6})([mhdw])")
_AGE_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso_utc(at_ms: int) -> str:
    """`2026-11-30T10:00:00.000Z`."""
    moment = _EPOCH + timedelta(milliseconds=at_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"


def to_ms(moment: datetime) -> int:
    """Unix milliseconds of a moment; one without a zone is in this machine's."""
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)


def parse_iso(text: str) -> int | None:
    """Unix milliseconds of an ISO 8601 time; None where it is none, or out of the calendar."""
    try:
        return to_ms(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None


def parse_bound(text: str, *, is_end: bool, now_ms: int) -> int | None:
    """A `since` or `until` argument as Unix milliseconds, to be included.

    A date is the whole day, an age such as `30m`, `12h`, `7d` or `4w` counts back from `now_ms`; a
    time or date without a zone is in this machine's. None where it is none of these.
    """
    age = _AGE.fullmatch(text)
    if age is not None:
        return now_ms - timedelta(**{_AGE_UNITS[age[2]]: int(age[1])}) // timedelta(milliseconds=1)
    if not _DATE.fullmatch(text):
        return parse_iso(text)
    try:
        day = datetime.fromisoformat(text)
        return to_ms(day + timedelta(days=1)) - 1 if is_end else to_ms(day)
    except (ValueError, OverflowError):
        return None
