"""From the text of a query to what the index is asked: facts that every matching chunk has."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from indexer.query import Anything, AnyWord, ChunkQuery, Nothing, Phrase, Symbol, all_of, any_of
from indexer.vocabulary import Fits, VocabularyReader
from indexer.words import STRIDE_CHARS, WINDOW_CHARS, QueryWord, query_words, symbol_runs, symbols_of_runs, windows
from schemas.folding import fold

FEW_WORDS = 256
"""A fragment that no more words have is quickly completed to all of them, and the plan with it."""

MANY_WORDS = 20_000
"""A fragment that more words have tells chunks apart too little to be worth looking up."""

MAX_PHRASES = 64
"""Phrases with open ends are spelled out up to this many; beyond it their ends are asked for apart."""


@dataclass(frozen=True, slots=True)
class TextPlan:
    """How a text query is answered: what to ask the index, and what to look for in what it names."""

    needle: str
    """The query, folded: a turn matches if a line has it."""
    query: ChunkQuery
    is_complete: bool
    """Whether all is asked that could be; else more words than `FEW_WORDS` fit an end of the query."""

    def __str__(self) -> str:
        return str(self.query)


def plan_text(query: str, vocabulary: VocabularyReader, most_words: int = FEW_WORDS) -> TextPlan:
    """Plan an exact search for a trimmed query, looking up to `most_words` that fit each of its ends."""
    needle = fold(query)
    ends = _Ends(vocabulary, most_words)
    asked = all_of([_words(list(query_words(needle)), ends), _symbols(needle)])
    return TextPlan(needle, asked, ends.is_complete)


class _Ends:
    """Completes the open ends of a query to words of the vocabulary."""

    def __init__(self, vocabulary: VocabularyReader, most_words: int) -> None:
        self._vocabulary = vocabulary
        self._most_words = most_words
        self.is_complete = True

    def of(self, word: QueryWord) -> list[str] | None:
        """The words that a word with open ends may stand for; None: too many."""
        if word.is_open_left and word.is_open_right:
            fragment, fits = word.word[:STRIDE_CHARS], Fits.ANYWHERE
        elif word.is_open_left:
            fragment, fits = word.word[-STRIDE_CHARS:], Fits.AT_END
        else:
            fragment, fits = word.word[:WINDOW_CHARS], Fits.AT_START
        found = self._vocabulary.find(fragment, fits, self._most_words)
        self.is_complete = self.is_complete and found is not None
        return found


def _symbols(needle: str) -> ChunkQuery:
    symbols = symbols_of_runs(symbol_runs(needle))
    # A pair says all that its two symbols would.
    covered = {symbol for pair in symbols if len(pair) == 2 for symbol in pair}
    return all_of([Symbol(symbol) for symbol in sorted(symbols) if symbol not in covered])


def _words(words: Sequence[QueryWord], ends: _Ends) -> ChunkQuery:
    """The words in their order, the first and last completed to the words of the vocabulary that fit."""
    if not words:
        return Anything()
    first, last = words[0], words[-1]
    is_first_open = first.is_open_left or (len(words) == 1 and first.is_open_right)
    is_last_open = len(words) > 1 and last.is_open_right
    closed = words[int(is_first_open) : len(words) - int(is_last_open)]
    middle = tuple(part for word in closed for part in windows(word.word))
    beginnings = ends.of(first) if is_first_open else None
    endings = ends.of(last) if is_last_open else None
    if beginnings == [] or endings == []:
        return Nothing()
    left: list[tuple[str, ...]] = [(word,) for word in beginnings or ()] or [()]
    right: list[tuple[str, ...]] = [(word,) for word in endings or ()] or [()]
    # An end that too many words could complete is left off; the phrase of the others still holds.
    parts: list[ChunkQuery] = []
    if len(left) > MAX_PHRASES or (len(left) * len(right) > MAX_PHRASES and len(left) >= len(right)):
        parts.append(AnyWord(tuple(beginnings or ())))
        left = [()]
    if len(left) * len(right) > MAX_PHRASES:
        parts.append(AnyWord(tuple(endings or ())))
        right = [()]
    phrases = [phrase for start, end in product(left, right) if (phrase := start + middle + end)]
    if phrases:
        parts.append(_any_phrase(phrases))
    return all_of(parts)


def _any_phrase(phrases: Sequence[tuple[str, ...]]) -> ChunkQuery:
    if all(len(phrase) == 1 for phrase in phrases):
        return AnyWord(tuple(phrase[0] for phrase in phrases))
    return any_of([Phrase(phrase) for phrase in phrases])
