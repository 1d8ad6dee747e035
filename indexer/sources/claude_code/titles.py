"""The titles that lines of a file give its session, of which the last of the best kind counts."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from indexer.sources.values import text

MAX_SUMMARIES = 32


@dataclass(slots=True)
class Titles:
    """The latest of each kind, as JSON between two reads."""

    custom: str = ""
    """By the user."""
    generated: str = ""
    summary: str = ""
    agent_name: str = ""
    """Which is better than none."""
    waiting: list[tuple[str, str]] = field(default_factory=list)
    """Summaries whose leaf was not met yet: uuid, text."""

    @property
    def best(self) -> str:
        """The title; empty where the first message has to do."""
        return next((title for title in (self.custom, self.generated, self.summary) if title.strip()), "")

    def take(self, type_: str, line: Mapping[str, Any], has_line: Callable[[str], bool]) -> bool:
        """Take a line; whether it is one of those that give titles. `has_line` knows the uuids of the lines so far."""
        match type_:
            case "custom-title":
                self.custom = _given(line, "customTitle", self.custom)
            case "ai-title":
                self.generated = _given(line, "aiTitle", self.generated)
            case "agent-name":
                self.agent_name = _given(line, "agentName", self.agent_name)
            case "summary":
                leaf, summary = text(line.get("leafUuid")), text(line.get("summary"))
                if leaf is not None and summary:
                    self.waiting = [*self.waiting, (leaf, summary)][-MAX_SUMMARIES:]
                    if has_line(leaf):
                        self.meet(leaf)
            case _:
                return False
        return True

    def meet(self, uuid: str) -> None:
        """Take as title what was written about a line of this file: many summaries are of other sessions."""
        if self.waiting:
            for leaf, summary in self.waiting:
                if leaf == uuid:
                    self.summary = summary
            self.waiting = [one for one in self.waiting if one[0] != uuid]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        titles = cls(**value)
        titles.waiting = [(leaf, summary) for leaf, summary in value["waiting"]]
        return titles


def _given(line: Mapping[str, Any], key: str, before: str) -> str:
    written = text(line.get(key))
    return before if written is None else written
