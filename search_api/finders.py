"""What is looked for: exactly this text, or what an expression matches (`regex_finder`). Both plan, find and mark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from indexer.query import ChunkQuery
from indexer.vocabulary import VocabularyReader
from schemas.folding import fold
from search_api.plan import Frequency, plan_text
from search_api.prefilter import Prefilter


@dataclass(frozen=True, slots=True)
class Plan:
    """What to ask the index."""

    query: ChunkQuery
    is_complete: bool
    """Whether all is asked that could be; else more words than were allowed fit an end of a text."""

    def __str__(self) -> str:
        return str(self.query)


class Finder(Protocol):
    @property
    def prefilter(self) -> Prefilter:
        """Tells which chunks need not be looked at."""

    def plan(self, vocabulary: VocabularyReader, frequency: Frequency, most_words: int) -> Plan:
        """What every chunk that matches has, completing a text's ends to up to `most_words` words."""

    def may_be_in(self, texts: Sequence[str]) -> bool:
        """Whether any of some items' texts may match: asked once for all of them, as each question has its price."""

    def find(self, text: str) -> int:
        """Where the first match of the first matching line begins in an item's text; -1 without one."""

    def spans(self, line: str) -> Iterator[tuple[int, int]]:
        """All matches in a line, from left to right, `[from, to)` in code points."""


@dataclass(frozen=True, slots=True)
class TextFinder:
    """Finds a text, ignoring case."""

    needle: str
    """Folded."""
    prefilter: Prefilter

    @classmethod
    def of(cls, query: str) -> "TextFinder":
        needle = fold(query)
        return cls(needle, Prefilter([needle]))

    def plan(self, vocabulary: VocabularyReader, frequency: Frequency, most_words: int) -> Plan:
        planned = plan_text(self.needle, vocabulary, frequency, most_words)
        return Plan(planned.query, planned.is_complete)

    def may_be_in(self, texts: Sequence[str]) -> bool:
        return True  # what `prefilter` lets pass mostly matches

    def find(self, text: str) -> int:
        return fold(text).find(self.needle)

    def spans(self, line: str) -> Iterator[tuple[int, int]]:
        folded = fold(line)
        at = folded.find(self.needle)
        while at >= 0:
            end = at + len(self.needle)
            yield at, end
            at = folded.find(self.needle, end)
