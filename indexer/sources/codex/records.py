"""Records of one sort, by their types: which of them are taken, and what becomes of all others."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from indexer.sources.codex.thread import Thread

Take: TypeAlias = Callable[[Thread, dict[str, Any], int | None], None]
"""Adds what a record says to a thread; the last argument is its time."""


@dataclass(frozen=True, slots=True)
class Records:
    """What is known of a sort of records."""

    name: str
    """As what is unknown of them is told: `event_msg`."""
    takers: Mapping[str, Take]
    ignored: Collection[str]
    """Types that say nothing to a reader."""
    keys: frozenset[str]
    """The fields that any of them may have."""
    ends_of_copies: Collection[str]
    """Types that are looked at even in a copy that is left out, as they tell where it ends."""

    def knows(self, type_: str) -> bool:
        return type_ in self.takers or type_ in self.ignored

    def take(self, thread: Thread, record: dict[str, Any], at_ms: int | None) -> None:
        """Add what a record says to a thread; what of it is unknown is counted."""
        type_ = record.get("type")
        if not isinstance(type_, str) or type_ in self.ignored:
            return
        take = self.takers.get(type_)
        if take is None:
            thread.unknown.type(f"{self.name}/{type_}")
            return
        thread.unknown.fields(record, self.keys, f"{type_}.")
        if not thread.copied.leaves_out or type_ in self.ends_of_copies:
            take(thread, record, at_ms)
