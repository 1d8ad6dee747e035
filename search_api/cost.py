"""What a search did to find its answer, for those who ask it to explain."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from schemas.answers import Explanation, Road


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of turns that were looked at by one road."""

    road: str
    at_most_chunks: int | None
    """What word counts promised for all time; None where nothing was asked of the index."""
    turns: int
    """How many it named."""


@dataclass(slots=True)
class Cost:
    """What a search did, filled while it goes on."""

    windows: list[Window] = field(default_factory=list)
    candidates: int = 0
    """Turns that the roads named and the filters let through."""
    loaded: int = 0
    """Chunks taken from the store to verify them."""
    verified: int = 0
    """Turns whose text was looked through."""
    matched: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    """By step: plan, candidates, load, verify."""

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - began

    def explanation(self) -> Explanation:
        return Explanation(
            roads=[Road(window.road, window.at_most_chunks, window.turns) for window in self.windows],
            considered=self.candidates,
            loaded=self.loaded,
            verified=self.verified,
            matched=self.matched,
            step_ms={step: round(seconds * 1000, 3) for step, seconds in self.seconds.items()},
        )
