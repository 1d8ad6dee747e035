"""Whether a turn fulfils a query of words, and which of its lines says most of it; decided on its text."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from indexer.store import chunks
from indexer.store.reader import ChunkBody
from indexer.words import query_terms
from schemas.folding import fold
from schemas.items import Kind, Layer
from search_api.prefilter import Prefilter
from search_api.verify import Gaze, Match, line_around, lines_beside, shown_line
from search_api.words_query import Facts, Term, holds, shunned, sought

Span = tuple[int, int]

_BETWEEN_WORDS = re.compile(r"(?:[^\w\n]|_)*")


@dataclass(slots=True)
class _BestLine:
    """The line with most words so far."""

    words: int
    kind: Kind
    text: str
    at: int


class WordsFinder:
    """Decides which turns fulfil a query, and finds the best line of each."""

    def __init__(self, facts: Facts, gaze: Gaze, context: int) -> None:
        """`context` is how many lines to answer before and after the best one."""
        self._facts = facts
        self._gaze = gaze
        self._context = context
        self._wanted, self._unwanted = sought(facts), shunned(facts)
        self._prefilters = {term: Prefilter.of_phrase(term.words) for term in self._wanted}

    def best_line(self, bodies: Iterable[ChunkBody]) -> Match | None:
        """The first of the lines that have most of the sought words; None where the turn does not fulfil the query.

        `bodies` are all chunks of the turn in the layers that are looked through, in any order.
        """
        packed = [(body.layer, chunks.json_of(body.body)) for body in bodies]
        perhaps = {
            term for term, prefilter in self._prefilters.items() if any(prefilter.may_hold(json) for _, json in packed)
        }
        if not holds(self._facts, perhaps):
            return None
        most = sum(len(term.words) for term in self._wanted)
        found: set[Term] = set()
        best: _BestLine | None = None
        for kind, text in self._texts(packed):
            folded = fold(text)
            found.update(term for term in self._unwanted if term not in found and _has(folded, term))
            if best is not None and best.words == most:
                continue
            words: dict[int, int] = {}
            for term in perhaps:
                for start in _lines_with(folded, term):
                    found.add(term)
                    words[start] = words.get(start, 0) + len(term.words)
            for start in sorted(words):
                if best is None or words[start] > best.words:
                    best = _BestLine(words[start], kind, text, start)
        if best is None or not holds(self._facts, found):
            return None
        line = line_around(best.text, best.at)
        spans = spans_of(line, self._wanted)
        return Match(best.kind, *shown_line(line, iter(spans)), *lines_beside(best.text, best.at, self._context))

    def _texts(self, packed: Iterable[tuple[Layer, bytes]]) -> Iterator[tuple[Kind, str]]:
        """The texts that are looked through, in the order of reading."""
        rows = [
            (row[0], layer, row)
            for layer, json in packed
            for row in chunks.rows_of(json)
            if row[1] in self._gaze.kinds[layer]
        ]
        for _, layer, row in sorted(rows, key=lambda place: place[:2]):
            for text in chunks.texts_of(row, layer):
                yield Kind(row[1]), text


def spans_of(line: str, terms: Iterable[Term]) -> list[Span]:
    """Where the terms stand in a line, in order."""
    folded = fold(line)
    spans: list[Span] = []
    for start, end in sorted(span for term in terms for span in _matches(folded, term, 0)):
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def _lines_with(folded: str, term: Term) -> Iterator[int]:
    """The offsets at which the lines begin that have a term."""
    at = 0 if all(word in folded for word in term.words) else -1
    while at >= 0 and (span := next(_matches(folded, term, at), None)) is not None:
        yield folded.rfind("\n", 0, span[0]) + 1
        at = folded.find("\n", span[1])


def _has(folded: str, term: Term) -> bool:
    return next(_lines_with(folded, term), None) is not None


def _matches(folded: str, term: Term, at: int) -> Iterator[Span]:
    """Where a term stands at or behind an offset: no two overlap."""
    first = term.words[0]
    while (at := folded.find(first, at)) >= 0:
        end = _end_of_match(folded, term, at)
        if end is None:
            at += 1
        else:
            yield at, end
            at = end


def _end_of_match(folded: str, term: Term, start: int) -> int | None:
    """Where the term ends whose first word seems to stand here; None where it does not."""
    if start > 0 and _joins(folded[start - 1]) and _joins(folded[start]):
        return None
    end = start
    for place, word in enumerate(term.words):
        at = end if place == 0 else _end_of(_BETWEEN_WORDS, folded, end)
        if not folded.startswith(word, at):
            return None
        end = at + len(word)
        if end < len(folded) and _joins(word[-1]) and _joins(folded[end]):
            if not term.is_prefix or place < len(term.words) - 1:
                return None
            while end < len(folded) and _joins(folded[end]):
                end += 1
    return end


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return at if match is None else match.end()


@lru_cache(maxsize=10_000)
def _joins(char: str) -> bool:
    """Whether a character makes one word with its neighbours, unlike signs and scripts that write no spaces."""
    return char.isalnum() and len(list(query_terms(char * 2))) == 1
