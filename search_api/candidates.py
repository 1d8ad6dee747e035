"""Which turns may fulfil a query of words, best first, by what the index has of its words.

The index holds chunks, a query speaks of turns. So the words are looked up one by one, each with its best
chunk in a turn, and put together by turn: a turn has what any of its chunks has, and its score is the sum,
over the sought words, of the BM25 of its best chunk for that word. A phrase counts as its words.

A word that is in few chunks is listed whole. Where no list narrows a query down, its best chunks are those
that hold what it asks for by themselves; only if these are few are the lists of frequent words read.
"""

from collections.abc import Iterable
from itertools import count

from indexer.index import Scope
from indexer.order import TurnKey
from indexer.scores import Beginning, ChunkWords, EveryWord, ScoredWord, SomeWord, Word, WordScores
from indexer.vocabulary import Fits, VocabularyReader
from indexer.words import WINDOW_CHARS, windows
from search_api.filters import END_OF_TIME_MS
from search_api.walk import Tools
from search_api.words_query import AllOf, AnyOf, Facts, Term, Without, is_selective, sought

LISTED_CHUNKS = 4096
"""A word that is in more chunks is not listed whole, unless there is no other way."""

DEEPER = 8
"""How much further each next attempt reaches."""

COMPLETED_WORDS = 64
"""A beginning that more words have is no longer weighed word by word: all that have it count the same."""


class Candidates:
    """Which turns in a scope may fulfil a query, by what the index has of its words: never too few."""

    def __init__(self, tools: Tools, facts: Facts, scope: Scope) -> None:
        self._facts = facts
        self._scope = scope
        self._lists: dict[ScoredWord, dict[int, float]] = {}
        """The chunks, with their scores, of the words that were listed."""
        self._scores = WordScores(tools.index, tools.store)
        self._words_of = {term: _indexed(term, tools.vocabulary) for term in sought(facts)}
        self._words = list(dict.fromkeys(word for words in self._words_of.values() for word in words))

    def best(self, depth: int) -> tuple[list[TurnKey], bool]:
        """All of them, or where they are many those of the `depth` best chunks, best first; and whether it is all."""
        for power in count():
            turns = self._turns(LISTED_CHUNKS * DEEPER**power)
            if turns is not None:
                return _best_first(self._turn_scores(turns, {})), True
            chunks, is_all = self._scores.best(self._required(self._facts), self._words, self._scope, depth)
            if not is_all:
                return _best_first(self._turn_scores(self._turns_of(chunks), chunks)), False
        raise AssertionError  # a list is at its end somewhere

    def most_chunks(self) -> int | None:
        """How many chunks can have what has to be there of a query, by how many have its words; None: not known."""
        return self._most(self._required(self._facts))

    def _most(self, required: ChunkWords) -> int | None:
        match required:
            case EveryWord(parts):
                known = [most for part in parts if (most := self._most(part)) is not None]
                return min(known, default=None)
            case SomeWord(parts):
                counts = [self._most(part) for part in parts]
                return None if None in counts else sum(count for count in counts if count is not None)
            case _:
                return self._scores.frequency(required)

    def listed_turns(self) -> set[TurnKey] | None:
        """All of them, where words that are in few chunks narrow the query down."""
        return self._turns(LISTED_CHUNKS)

    def every_turn(self) -> set[TurnKey]:
        """All of them, however many."""
        limit = LISTED_CHUNKS
        while (turns := self._turns(limit)) is None:
            limit *= DEEPER
        return turns

    def _turns(self, limit: int) -> set[TurnKey] | None:
        """All of them, by words that are in up to `limit` chunks each; None where these words do not say enough."""
        return self._turns_with(self._facts, limit)

    def _turns_with(self, facts: Facts, limit: int) -> set[TurnKey] | None:
        known: list[set[TurnKey]] = []
        match facts:
            case Term():
                return self._turns_with_term(facts, limit)
            case Without():
                return None
            case AllOf(parts):
                known = [turns for part in parts if (turns := self._turns_with(part, limit)) is not None]
                return set.intersection(*known) if known else None
            case AnyOf(parts):
                for part in parts:
                    turns = self._turns_with(part, limit)
                    if turns is None:
                        return None
                    known.append(turns)
                return set.union(*known)

    def _turns_with_term(self, term: Term, limit: int) -> set[TurnKey] | None:
        """All its words lie in one item, so in one chunk."""
        lists = [listed for word in self._words_of[term] if (listed := self._listed(word, limit)) is not None]
        if not lists:
            return None
        return self._turns_of(set.intersection(*(set(listed) for listed in lists)))

    def _listed(self, word: ScoredWord, limit: int) -> dict[int, float] | None:
        if word not in self._lists:
            chunks = self._scores.frequency(word) if _is_everywhere(self._scope) else None
            if chunks is not None and chunks > limit:
                return None
            found = self._scores.of(word, self._scope, limit)
            if found is None:
                return None
            self._lists[word] = found
        return self._lists[word]

    def _turns_of(self, chunks: Iterable[int]) -> set[TurnKey]:
        return {self._scores.turn_of[chunk] for chunk in chunks}

    def _required(self, facts: Facts) -> ChunkWords:
        """What a chunk has that fulfils the query by itself, but for what must not be there."""
        match facts:
            case Term():
                words = self._words_of[facts]
                return words[0] if len(words) == 1 else EveryWord(tuple(dict.fromkeys(words)))
            case AllOf(parts):
                required = [self._required(part) for part in parts if is_selective(part)]
                flat = [one for part in required for one in (part.parts if isinstance(part, EveryWord) else (part,))]
                return flat[0] if len(flat) == 1 else EveryWord(tuple(dict.fromkeys(flat)))
            case AnyOf(parts):
                return SomeWord(tuple(self._required(part) for part in parts))
            case Without():
                raise AssertionError  # it is not selective

    def _turn_scores(self, turns: set[TurnKey], chunk_scores: dict[int, float]) -> dict[TurnKey, float]:
        """The score of each turn; `chunk_scores` are the sums over all words for some chunks."""
        if chunk_scores and len(self._words) == 1:
            return self._best_of_turns(chunk_scores)
        if all(word in self._lists for word in self._words):
            all_chunks: Iterable[int] = (chunk for chunk, key in self._scores.turn_of.items() if key in turns)
        else:
            all_chunks = self._scores.chunks_of(turns, self._scope.layers)
        chunks_in: dict[TurnKey, list[int]] = {}
        for chunk in all_chunks:
            chunks_in.setdefault(self._scores.turn_of[chunk], []).append(chunk)
        # The score of a turn that is one chunk is that chunk's.
        scores = {
            key: chunk_scores[chunks[0]]
            for key, chunks in chunks_in.items()
            if len(chunks) == 1 and chunks[0] in chunk_scores and chunks[0] not in self._scores.in_pieces
        }
        rest = {key: chunks for key, chunks in chunks_in.items() if key not in scores}
        scores.update(dict.fromkeys(rest, 0.0))
        among = {chunk for chunks in rest.values() for chunk in chunks}
        for word in self._words if among else ():
            for key, score in self._best_of_turns(self._scores_among(word, among)).items():
                scores[key] += score
        return scores

    def _best_of_turns(self, chunk_scores: dict[int, float]) -> dict[TurnKey, float]:
        best: dict[TurnKey, float] = {}
        for chunk, score in chunk_scores.items():
            key = self._scores.turn_of[chunk]
            best[key] = max(score, best.get(key, 0.0))
        return best

    def _scores_among(self, word: ScoredWord, chunks: set[int]) -> dict[int, float]:
        listed = self._lists.get(word)
        if listed is None:
            return self._scores.of(word, self._scope, len(chunks), chunks) or {}
        return {chunk: score for chunk, score in listed.items() if chunk in chunks}


def _indexed(term: Term, vocabulary: VocabularyReader) -> list[ScoredWord]:
    """The words of the index that a chunk with this term has."""
    *whole, last = term.words
    words: list[ScoredWord] = [Word((window,)) for word in whole for window in windows(word)]
    if not term.is_prefix:
        return words + [Word((window,)) for window in windows(last)]
    if len(last) >= WINDOW_CHARS:
        return [*words, Word((last[:WINDOW_CHARS],))]
    completed = vocabulary.find(last, Fits.AT_START, COMPLETED_WORDS)
    return [*words, Beginning(last) if completed is None else Word(tuple(completed))]


def _best_first(scores: dict[TurnKey, float]) -> list[TurnKey]:
    """Rounded, as sums of the same numbers differ in their last digits by the order of adding them."""
    return sorted(scores, key=lambda key: (round(scores[key], 4), key), reverse=True)


def _is_everywhere(scope: Scope) -> bool:
    is_all_time = scope.from_ms <= 0 and scope.to_ms >= END_OF_TIME_MS
    is_all = scope.sessions is None and scope.projects is None and scope.kinds is None and not scope.without
    return is_all and is_all_time
