"""What is looked for: what a regular expression matches. Imported by the first search for one."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from indexer.query import Anything, ChunkQuery, all_of, any_of
from indexer.vocabulary import VocabularyReader
from search_api.finders import Plan
from search_api.plan import Frequency, plan_text
from search_api.prefilter import Prefilter
from search_api.regex import CompiledRegex
from search_api.regex_literals import Every, Literal, LiteralTree, NothingKnown, OneOf


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
