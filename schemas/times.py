"""Times: Unix milliseconds inside, ISO 8601 with milliseconds and `Z` at the edges."""

import re
from datetime import UTC, date, datetime, time, timedelta

_AGE = re.compile(r"([0-9]{1,6})([mhdw])")
_AGE_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
DAY_MS = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso_utc(at_ms: int) -> str:
    """`2026-11-30T10:00:00.000Z`."""
    moment = _EPOCH + timedelta(milliseconds=at_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"


def to_ms(moment: datetime) -> int:
    """Unix milliseconds of a moment; one without a zone is in this machine's."""
    return _moment_ms(moment.astimezone(UTC))


def _moment_ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


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
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return parse_iso(text)
    try:
        midnight = datetime.combine(day, time())
        return to_ms(midnight + timedelta(days=1)) - 1 if is_end else to_ms(midnight)
    except (OverflowError, ValueError):
        # The first and the last day of the calendar reach beyond it, in one time zone or another; to tell the zone
        # of a time Python also looks a day around it, and raises ValueError where there is none.
        return _moment_ms(datetime.combine(day, time(), UTC)) + (DAY_MS - 1 if is_end else 0)
