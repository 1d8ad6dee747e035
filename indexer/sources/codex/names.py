"""What the name of a rollout file says: its thread, its generation, when it began, and its form."""

import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from schemas.times import to_ms

SESSIONS = "sessions"
ARCHIVED = "archived_sessions"
FOLDERS = (SESSIONS, ARCHIVED)

_NAME = re.compile(
    r"rollout-(?:(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})(?:T(?P<hour>[0-9]{2}-[0-9]{2}-[0-9]{2}))?-)?"
    r"(?P<thread>[^_]*)(?:_(?P<rollout>.*))?\.(?P<form>jsonl|jsonl\.zst|json)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class RolloutName:
    """`rollout-2026-11-30T10-00-00-<thread>[_<rollout>].jsonl[.zst]`, or `.json` in early 2025."""

    thread: str
    """The id of the thread, as far as the name tells."""
    rollout: str
    """The id of this file among those of its thread; the thread's own for the first of them."""
    stamp: str
    """When the file was begun, in local time, to be compared; empty where the name does not say."""
    is_compressed: bool
    is_document: bool
    """Whether the file is one JSON document instead of lines."""

    @property
    def started_ms(self) -> int | None:
        if "T" not in self.stamp:
            return None
        try:
            # Names are in local time, whose offset nobody wrote down: that of this machine is as near as it gets.
            return to_ms(datetime.strptime(self.stamp, "%Y-%m-%dT%H-%M-%S"))  # noqa: DTZ007  as said above
        except (ValueError, OverflowError):
            return None


@lru_cache(maxsize=1 << 15)
def rollout_name(name: str) -> RolloutName | None:
    """What the name of a file says; None where it is not that of a rollout."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    is_document = found["form"] == "json"
    if is_document and found["day"] is None:
        return None  # other programs' JSON may lie there, too
    stamp = (found["day"] or "") + (f"T{found['hour']}" if found["hour"] else "")
    thread = found["thread"]
    return RolloutName(
        thread,
        rollout=found["rollout"] or thread,
        stamp=stamp,
        is_compressed=found["form"].endswith(".zst"),
        is_document=is_document,
    )


def is_rollout(name: str) -> bool:
    return name.startswith("rollout-") and rollout_name(name) is not None


def is_archived(path: Path, home: Path) -> bool:
    return path.is_relative_to(home / ARCHIVED)
