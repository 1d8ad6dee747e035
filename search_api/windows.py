"""Stretches of the order of answers: from one place, which is not part of it, up to another, which is.

A turn is asked of the index by its time alone, so a window of it may name some that are outside the stretch.
"""

from dataclasses import replace

from indexer.index import Scope
from indexer.order import Order, TurnKey


def start(order: Order, after: TurnKey, from_ms: int, to_ms: int) -> TurnKey:
    """The place that a page begins behind, or where the time bounds begin, whichever is later."""
    return min(after, (to_ms + 1, -1, -1)) if order == "newest" else max(after, (from_ms, -1, -1))


def window(within: Scope, order: Order, after: TurnKey, end: TurnKey | None) -> Scope:
    """What of a scope is between the times of two places; None: to the end."""
    first, last = (end, after) if order == "newest" else (after, end)
    return replace(
        within,
        from_ms=within.from_ms if first is None else max(first[0], within.from_ms),
        to_ms=within.to_ms if last is None else min(last[0], within.to_ms),
    )


def is_between(order: Order, after: TurnKey, key: TurnKey, end: TurnKey | None) -> bool:
    """Whether a turn is in a stretch."""
    if order == "newest":
        return key < after and (end is None or key >= end)
    return key > after and (end is None or key <= end)
