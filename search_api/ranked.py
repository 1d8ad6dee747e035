"""Ranking turns by words: which turns may fulfil a query, best first, and the lists that pages are taken from.

The index holds chunks, a query speaks of turns. So the words are looked up one by one, each with its best
chunk in a turn, and put together by turn: a turn has what any of its chunks has, and its score is the sum,
over the sought words, of the BM25 of its best chunk for that word. A phrase counts as its words.

A word that is in few chunks is listed whole. Where no list narrows a query down, its best chunks are those
that hold what it asks for by themselves; only if these are few are the lists of frequent words read.
"""

import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import count, islice

from indexer.index import Scope
from indexer.scores import (
    Beginning,
    ChunkWords,
    EveryWord,
    ScoredWord,
    SomeWord,
    Word,
    best_chunks,
    chunks_of_turns,
    frequency,
    word_scores,
)
from indexer.store.reader import ChunkBody, Condition, Order, Session, StoreReader, TurnKey
from indexer.vocabulary import Fits, VocabularyReader
from indexer.words import WINDOW_CHARS, windows
from schemas.errors import Timeout
from schemas.references import Turns
from search_api.filters import END_OF_TIME_MS, TimeBounds
from search_api.verify import Gaze, Match
from search_api.walk import Tools
from search_api.words_match import best_line
from search_api.words_query import AllOf, AnyOf, Facts, Term, Without, is_selective, sought

MAX_RANKED_TURNS = 1000
"""No more turns are answered in the order of their scores."""

KEPT_CANDIDATES = 2048
"""Turns of a ranked list that are kept: twice as many as are answered, as some will not match by their text."""

LISTED_CHUNKS = 4096
"""A word that is in more chunks is not listed whole, unless there is no other way."""

SAMPLE_TURNS = 32
"""The best turns of a list that was cut, looked at to see whether half of them match: if not, more are needed."""

DEEPER = 8
"""How much further each next attempt reaches."""

BATCH_TURNS = 32
"""Turns whose text is loaded at a time."""

COMPLETED_WORDS = 64
"""A beginning that more words have is no longer weighed word by word: all that have it count the same."""

WINDOWS_TURNS = (512, 4096, 32_768, 262_144)
"""How far each search of the index reaches in the order of time; the one after these reaches the end."""


@dataclass(frozen=True, slots=True)
class RankedTurns:
    """Turns that may match, best first."""

    keys: Sequence[TurnKey]
    is_cut: bool
    """Whether there are more of them."""

    @property
    def id(self) -> int:
        """The same for the same turns in the same order."""
        packed = array("q", [part for key in self.keys for part in key])
        return int.from_bytes(blake2b(packed.tobytes(), digest_size=8, key=b"cut" * self.is_cut).digest()) >> 4


class RankedLists:
    """The ranked lists that a server keeps for the pages to come. Safe to use from several threads."""

    MOST_LISTS = 64
    SECONDS = 600.0

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._lists: OrderedDict[tuple[str, int], tuple[float, array[int], bool]] = OrderedDict()

    def keep(self, bound_to: str, ranked: RankedTurns) -> None:
        """Keep a list for the call that it answers."""
        packed = array("q", [part for key in ranked.keys for part in key])
        with self._lock:
            self._forget_old()
            self._lists[bound_to, ranked.id] = (self._clock(), packed, ranked.is_cut)
            self._lists.move_to_end((bound_to, ranked.id))
            while len(self._lists) > self.MOST_LISTS:
                self._lists.popitem(last=False)

    def get(self, bound_to: str, list_id: int) -> RankedTurns | None:
        """The list of that call and id, if it is still kept."""
        with self._lock:
            self._forget_old()
            kept = self._lists.get((bound_to, list_id))
        if kept is None:
            return None
        _, packed, is_cut = kept
        return RankedTurns(list(zip(packed[::3], packed[1::3], packed[2::3], strict=True)), is_cut)

    def _forget_old(self) -> None:
        oldest = self._clock() - self.SECONDS
        while self._lists and next(iter(self._lists.values()))[0] < oldest:
            self._lists.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Search:
    """A search by words: what is asked, and what it lets through."""

    tools: Tools
    facts: Facts
    gaze: Gaze
    condition: Condition
    """What the sessions must fulfil."""
    turns: Turns | None
    """Where turns of one session are named, just these."""
    bounds: TimeBounds
    scope: Scope
    """What of all this the index can tell."""
    is_late: Callable[[], bool]
    _admitted: dict[int, Session | None] = field(default_factory=dict)

    def ranked(self) -> RankedTurns:
        """The turns that may match, best first, newest first where they are alike.

        Mostly most of them match, and they are kept as they are for `matches` to decide. Where few do and
        the list had to be cut, it is decided here, as far as it takes to have enough.
        """
        candidates = Candidates(self.tools, self.facts, self.scope)
        depth = KEPT_CANDIDATES
        keys, is_all = candidates.best(depth)
        if is_all and len(keys) <= KEPT_CANDIDATES:
            return RankedTurns(keys, False)
        sample = keys[:SAMPLE_TURNS]
        if 2 * sum(1 for _ in self.matches(sample)) >= len(sample):
            return RankedTurns(keys[:KEPT_CANDIDATES], True)
        looked_at: set[TurnKey] = set()
        matching: set[TurnKey] = set()
        while True:
            fresh = [key for key in keys if key not in looked_at]
            wanted = MAX_RANKED_TURNS + 1 - len(matching)
            matching.update(key for _, _, key, _ in islice(self.matches(fresh), wanted))
            if is_all or len(matching) > MAX_RANKED_TURNS:
                ordered = [key for key in keys if key in matching]
                return RankedTurns(ordered[:MAX_RANKED_TURNS], len(ordered) > MAX_RANKED_TURNS)
            looked_at.update(fresh)
            depth *= DEEPER
            keys, is_all = candidates.best(depth)

    def in_order(self, order: Order, after: TurnKey) -> Iterator[tuple[Session, TurnKey, Match]]:
        """Every turn past a place in the order of time that matches."""
        for keys in self._windows(order, after):
            for _, session, key, match in self.matches(sorted(keys, reverse=order == "newest")):
                yield session, key, match

    def matches(self, keys: Sequence[TurnKey]) -> Iterator[tuple[int, Session, TurnKey, Match]]:
        """Those of the turns that match, in the order given, each with its place among them.

        Raises:
            Timeout: it is late.
        """
        for start in range(0, len(keys), BATCH_TURNS):
            if self.is_late():
                raise Timeout("the time limit passed; narrow the query, or name a session or a time")
            some = [(start + i, key) for i, key in enumerate(keys[start : start + BATCH_TURNS]) if self._is_wanted(key)]
            bodies: dict[tuple[int, int], list[ChunkBody]] = {}
            for body in self.tools.store.bodies_of_turns([key[1:] for _, key in some], self.gaze.layers):
                bodies.setdefault((body.session, body.turn), []).append(body)
            for place, key in some:
                match = best_line(bodies.get(key[1:], ()), self.facts, self.gaze)
                session = self._session_of(key[1])
                if match is not None and session is not None:
                    yield place, session, key, match

    def _is_wanted(self, key: TurnKey) -> bool:
        at_ms, session, turn = key
        if not self.bounds.from_ms <= at_ms <= self.bounds.to_ms:
            return False
        if self.turns is not None and not self.turns.first <= turn <= self.turns.last:
            return False
        return self._session_of(session) is not None

    def _session_of(self, session: int) -> Session | None:
        if session not in self._admitted:
            self._admitted[session] = self.tools.store.session(session, self.condition)
        return self._admitted[session]

    def _windows(self, order: Order, after: TurnKey) -> Iterator[list[TurnKey]]:
        """The turns that may match, window by window along the order."""
        listed = Candidates(self.tools, self.facts, self.scope).turns(LISTED_CHUNKS)
        if listed is not None:
            yield [key for key in listed if _is_between(order, after, key, None)]
            return
        store, scope = self.tools.store, self.scope
        after = min(after, (scope.to_ms + 1, -1, -1)) if order == "newest" else max(after, (scope.from_ms, -1, -1))
        for size in (*WINDOWS_TURNS, None):
            end = None if size is None else store.turn_at_distance(after, order, size)
            first, last = (end, after) if order == "newest" else (after, end)
            window = replace(
                scope,
                from_ms=scope.from_ms if first is None else max(first[0], scope.from_ms),
                to_ms=scope.to_ms if last is None else min(last[0], scope.to_ms),
            )
            found = Candidates(self.tools, self.facts, window).every_turn()
            yield [key for key in found if _is_between(order, after, key, end)]
            if end is None or not scope.from_ms <= end[0] <= scope.to_ms:
                return
            after = end


class Candidates:
    """Which turns in a scope may fulfil a query, by what the index has of its words: never too few."""

    def __init__(self, tools: Tools, facts: Facts, scope: Scope) -> None:
        self._tools = tools
        self._facts = facts
        self._scope = scope
        self._lists: dict[ScoredWord, dict[int, float]] = {}
        """The chunks, with their scores, of the words that were listed."""
        self._places: dict[int, TurnKey] = {}
        self._words_of = {term: _indexed(term, tools.vocabulary) for term in sought(facts)}
        self._words = list(dict.fromkeys(word for words in self._words_of.values() for word in words))

    def best(self, depth: int) -> tuple[list[TurnKey], bool]:
        """All of them, or where they are many those of the `depth` best chunks, best first; and whether it is all."""
        for power in count():
            turns = self.turns(LISTED_CHUNKS * DEEPER**power)
            if turns is not None:
                return _best_first(self._scores(turns, {})), True
            chunks, is_all = best_chunks(
                self._tools.index, self._required(self._facts), self._words, self._scope, depth
            )
            if not is_all:
                return _best_first(self._scores(self._turns_of(chunks), chunks)), False
        raise AssertionError  # a list is at its end somewhere

    def every_turn(self) -> set[TurnKey]:
        """All of them, however many."""
        limit = LISTED_CHUNKS
        while (turns := self.turns(limit)) is None:
            limit *= DEEPER
        return turns

    def turns(self, limit: int) -> set[TurnKey] | None:
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
            is_wide = self._scope.sessions is None and self._scope.projects is None and _is_all_time(self._scope)
            chunks = frequency(self._tools.index, word) if is_wide else None
            if chunks is not None and chunks > limit:
                return None
            found = word_scores(self._tools.index, word, self._scope, limit)
            if found is None:
                return None
            self._lists[word] = found
        return self._lists[word]

    def _turns_of(self, chunks: Iterable[int]) -> set[TurnKey]:
        chunks = set(chunks)
        for key, some in self._tools.store.places_of(chunks - self._places.keys()).items():
            self._places.update(dict.fromkeys(some, key))
        return {self._places[chunk] for chunk in chunks if chunk in self._places}

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

    def _scores(self, turns: set[TurnKey], chunk_scores: dict[int, float]) -> dict[TurnKey, float]:
        """The score of each turn; `chunk_scores` are the sums over all words for some chunks."""
        turn_of = chunks_of_turns(self._tools.store, list(turns), self._scope.layers)
        chunks_in: dict[TurnKey, list[int]] = {}
        for chunk, key in turn_of.items():
            chunks_in.setdefault(key, []).append(chunk)
        # The score of a turn that is one chunk is that chunk's.
        scores = {
            key: chunk_scores[chunks[0]]
            for key, chunks in chunks_in.items()
            if len(chunks) == 1 and chunks[0] in chunk_scores
        }
        rest = {chunk: key for chunk, key in turn_of.items() if key not in scores}
        scores.update(dict.fromkeys(rest.values(), 0.0))
        for word in self._words if rest else ():
            best: dict[TurnKey, float] = {}
            for chunk, score in self._scores_among(word, rest).items():
                key = rest[chunk]
                best[key] = max(score, best.get(key, 0.0))
            for key, score in best.items():
                scores[key] += score
        return scores

    def _scores_among(self, word: ScoredWord, chunks: dict[int, TurnKey]) -> dict[int, float]:
        listed = self._lists.get(word)
        if listed is None:
            found = word_scores(self._tools.index, word, self._scope, len(chunks), chunks)
            return found or {}
        return {chunk: score for chunk, score in listed.items() if chunk in chunks}


def indexed_scope(
    store: StoreReader, gaze: Gaze, bounds: TimeBounds, condition: Condition, project: int | None, most_sessions: int
) -> Scope:
    """What of a search's scope the index can tell; a filter that lets more than `most_sessions` through is not."""
    scope = Scope(gaze.layers, bounds.from_ms, bounds.to_ms)
    sessions = store.session_keys(condition, most_sessions)
    if sessions is not None:
        return replace(scope, sessions=sessions)
    return scope if project is None else replace(scope, projects=[project])


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


def _is_all_time(scope: Scope) -> bool:
    return scope.from_ms <= 0 and scope.to_ms >= END_OF_TIME_MS


def _is_between(order: Order, after: TurnKey, key: TurnKey, end: TurnKey | None) -> bool:
    """Whether a turn is past one place and not past another."""
    if order == "newest":
        return key < after and (end is None or key >= end)
    return key > after and (end is None or key <= end)
