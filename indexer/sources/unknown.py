"""What is not understood is counted, by what it is, and hides nothing: a format that changes is seen on that day."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from indexer.sources.base import Skipped
from schemas.errors import quoted

MAX_REASONS, MAX_TIMES = 64, 500
"""How many things that are not understood are told of in one part by what they are, and how often each."""

MORE = "more that is unknown"
"""What all others are told of by."""


class Unknown:
    """What one part has that is not understood."""

    def __init__(self) -> None:
        self.skipped: list[Skipped] = []
        self.line: int | None = None
        """The number of the line that is read."""
        self._reasons: Counter[str] = Counter()

    def skip(self, reason: str) -> None:
        if reason not in self._reasons and len(self._reasons) >= MAX_REASONS:
            reason = MORE
        self._reasons[reason] += 1
        if self._reasons[reason] <= MAX_TIMES:
            self.skipped.append(Skipped(reason, self.line))

    def tell(self, what: str, value: object) -> None:
        """Count something by what it is, and by its name."""
        self.skip(f"unknown {what}: {quoted(str(value))}")

    def type(self, type_: str) -> None:
        self.tell("type", type_)

    def version(self, version: object) -> None:
        """Count a version of the program by its first two numbers, as there may be one every week."""
        self.tell("version", ".".join(str(version).split(".")[:2]))

    def fields(self, value: Mapping[str, Any], known: frozenset[str], prefix: str = "") -> None:
        if not value.keys() <= known:
            for key in sorted(value.keys() - known):
                self.skip(f"unknown field: {prefix}{quoted(key)}")

    def parts(self, content: Any, known: Collection[str]) -> None:
        """Count the parts of a message's content that are of none of these types."""
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and not (isinstance(type_ := part.get("type"), str) and type_ in known):
                self.tell("block", type_)
