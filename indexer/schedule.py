"""What is to be read when: changes as they come, each file once, and not more often than it may be."""

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from indexer.sources.base import Root, Source


@dataclass(frozen=True, slots=True)
class Unit:
    """A transcript by its place; what it is now is seen when it is read."""

    source: Source
    root: Root
    path: Path


@dataclass(frozen=True, slots=True)
class _Waiting:
    unit: Unit
    due: float
    since: float


class Schedule:
    """The files that wait to be read. Filled by any thread, emptied by one, which sleeps on it."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._waiting: dict[Path, _Waiting] = {}
        self._not_before: dict[Path, float] = {}
        self._has_news = False

    def add(self, units: Iterable[Unit], delay_s: float = 0.0) -> None:
        """Have these read after a delay; one that waits already is read at the earlier time."""
        now = time.monotonic()
        with self._lock:
            for unit in units:
                due = max(now + delay_s, self._not_before.get(unit.path, 0.0))
                known = self._waiting.get(unit.path)
                if known is None:
                    self._waiting[unit.path] = _Waiting(unit, due, now)
                elif due < known.due:
                    self._waiting[unit.path] = replace(known, due=due)
            self._wake()

    def hold(self, path: Path, seconds: float) -> None:
        """Do not have a file read again before this time has passed."""
        now = time.monotonic()
        with self._lock:
            self._not_before = {path: time_ for path, time_ in self._not_before.items() if time_ > now}
            self._not_before[path] = now + seconds

    def pop_due(self) -> list[Unit]:
        """The files that are due, the one that waits longest first."""
        now = time.monotonic()
        with self._lock:
            due = sorted((one for one in self._waiting.values() if one.due <= now), key=lambda one: one.since)
            for one in due:
                del self._waiting[one.unit.path]
        return [one.unit for one in due]

    def next_due(self) -> float | None:
        """When the next file is due, on the monotonic clock; None while none waits."""
        with self._lock:
            return min((one.due for one in self._waiting.values()), default=None)

    def waiting_since(self, source: str) -> float | None:
        """Since when the longest waiting file of a source waits, on the monotonic clock."""
        with self._lock:
            return min((one.since for one in self._waiting.values() if one.unit.source.name == source), default=None)

    def wake(self) -> None:
        """Have `wait` return: there is something else to do."""
        with self._lock:
            self._wake()

    def wait(self, until: float | None) -> None:
        """Sleep until a time on the monotonic clock, or until something is added or wakes it."""
        with self._lock:
            if not self._has_news:
                self._lock.wait(None if until is None else max(0.0, until - time.monotonic()))
            self._has_news = False

    def _wake(self) -> None:
        self._has_news = True
        self._lock.notify_all()
