"""What is looked for: exactly this text, or what an expression matches. Both plan, find and mark."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from indexer.query import Anything, ChunkQuery, all_of, any_of
from indexer.vocabulary import VocabularyReader
from schemas.folding import fold
from search_api.plan import Frequency, plan_text
from search_api.prefilter import Prefilter
from search_api.regex import CompiledRegex
from search_api.regex_literals import Every, Literal, LiteralTree, NothingKnown, OneOf


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


@dataclass(frozen=True, slots=True)
class RegexFinder:
    """Finds what a regular expression matches."""

    regex: CompiledRegex
    check_time: Callable[[], None]
    """Raises what shall end the search."""
    prefilter: Prefilter

    @classmethod
    def of(cls, regex: CompiledRegex, check_time: Callable[[], None]) -> "RegexFinder":
        return cls(regex, check_time, Prefilter(_words_of(regex.required)))

    def plan(self, vocabulary: VocabularyReader, frequency: Frequency, most_words: int) -> Plan:
        is_complete = True

        def asked(tree: LiteralTree) -> ChunkQuery:
            nonlocal is_complete
            match tree:
                case NothingKnown():
                    return Anything()
                case Literal(text):
                    planned = plan_text(text, vocabulary, frequency, most_words)
                    is_complete = is_complete and planned.is_complete
                    return planned.query
                case Every(parts):
                    return all_of([asked(part) for part in parts])
                case OneOf(parts):
                    return any_of(list(dict.fromkeys(asked(part) for part in parts)))

        query = asked(self.regex.required)
        return Plan(query, is_complete)

    def may_be_in(self, texts: Sequence[str]) -> bool:
        # A match lies within one line, so texts put together line by line match where one of them does. Only a
        # `\r` at the end of one would be taken for part of a line break then.
        together = "\n".join(texts)
        return "\r\n" in together or self.regex.search(together, self.check_time) is not None

    def find(self, text: str) -> int:
        found = self.regex.search(text, self.check_time)
        return -1 if found is None else found[0]

    def spans(self, line: str) -> Iterator[tuple[int, int]]:
        return self.regex.matches(line, self.check_time)


def _words_of(tree: LiteralTree) -> Iterator[str]:
    """Texts without white space that every match has."""
    match tree:
        case Literal(text):
            yield from text.split()
        case Every(parts):
            for part in parts:
                yield from _words_of(part)
        case NothingKnown() | OneOf():
            return
