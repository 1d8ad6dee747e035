"""What is not understood is counted, by what it is, and hides nothing."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from indexer.sources.base import Skipped
from schemas.errors import quoted

MAX_REASONS, MAX_TIMES = 64, 500
"""How many things that are not understood are told of in one part, and how often each."""


class Unknown:
    """What one part has that is not understood."""

    def __init__(self) -> None:
        self.skipped: list[Skipped] = []
        self.line: int | None = None
        """The number of the line that is read."""
        self._reasons: Counter[str] = Counter()

    def skip(self, reason: str) -> None:
        self._reasons[reason] += 1
        if self._reasons[reason] <= MAX_TIMES and len(self._reasons) <= MAX_REASONS:
            self.skipped.append(Skipped(reason, self.line))

    def type(self, type_: str) -> None:
        self.skip(f"unknown type: {quoted(type_)}")

    def fields(self, value: Mapping[str, Any], known: frozenset[str], prefix: str) -> None:
        if not value.keys() <= known:
            for key in value.keys() - known:
                self.skip(f"unknown field: {prefix}{quoted(key)}")
