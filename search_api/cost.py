"""What a search did to find its answer, for those who ask it to explain."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from schemas.answers import Explanation, Road


@dataclass(slots=True)
class Cost:
    """What a search did, filled while it goes on."""

    roads: list[Road] = field(default_factory=list)
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

    def went(self, road: str, at_most_chunks: int | None, turns: int) -> None:
        """Note a window of turns that a road named; of several in a row by the same one the sum is told."""
        last = self.roads[-1] if self.roads else None
        if last is not None and (last.road, last.at_most_chunks) == (road, at_most_chunks):
            self.roads[-1] = replace(last, turns=last.turns + turns)
        else:
            self.roads.append(Road(road, at_most_chunks, turns))

    def explanation(self) -> Explanation:
        return Explanation(
            roads=self.roads,
            considered=self.candidates,
            loaded=self.loaded,
            verified=self.verified,
            matched=self.matched,
            step_ms={step: round(seconds * 1000, 3) for step, seconds in self.seconds.items()},
        )
