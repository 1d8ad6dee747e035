"""The walk of a search: along the order of answers, from where the last page ended until there is enough.

The index names candidates, window by window, and each is verified on its text. Where the index has
nothing to tell turns apart by, the windows are read from the store instead.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from indexer.index import IndexReader, Scope
from indexer.order import Order, TurnKey
from indexer.query import Anything, ChunkQuery, Nothing
from indexer.store.reader import ChunkBody, Session, StoreReader
from indexer.vocabulary import VocabularyReader
from search_api.copies import is_outdated
from search_api.cost import Cost
from search_api.finders import Finder, Plan
from search_api.left_out import LeftOutTurns
from search_api.plan import FEW_WORDS, MANY_WORDS
from search_api.search_scope import SearchScope
from search_api.verify import Gaze, Match, first_match

FIRST_BATCH_TURNS, BATCH_TURNS = 32, 256
"""Turns whose text is loaded together: few at first, as these mostly suffice, then ever more."""

STORE_WINDOW_TURNS = 128
"""Turns read from the store at a time where the index cannot tell them apart; doubled up to 16 times this."""

FIRST_WINDOW_TURNS = 512
"""How far the first search of the index reaches, and each after it so many times further:"""

STEP = 8
WIDE_STEP = 64
"""where the one before named few turns, or all the words that fit the query are about to be looked up."""

FEW_TURNS = 16
LARGEST_WINDOW_TURNS = 300_000
"""A search that would reach further reaches the end."""

FEW_CHUNKS = 8192
"""A query with so few chunks at most is searched for in one window: each window looks up all its words anew, which
for a phrase with open ends takes longer than to go through its chunks (2026-11-30: a third less time than with 512)."""

FEW_CANDIDATES, MANY_CANDIDATES = 4096, 8192
"""So many chunks of a folder are verified sooner than the words are looked up that would tell some of them apart:
many where enough of those before did match."""

ENOUGH_MATCHES = 1 / 128


@dataclass(frozen=True, slots=True)
class Tools:
    """What a search reads: used by one thread at a time."""

    store: StoreReader
    index: IndexReader
    vocabulary: VocabularyReader


@dataclass(frozen=True, slots=True)
class _Turns:
    """Some turns that follow each other in the order, and of each the chunks to verify; None: all of them."""

    keys: Sequence[TurnKey]
    chunks: dict[TurnKey, list[int]] | None


class OutOfTime(Exception):
    """The time limit passed; everything up to `key` in the order was searched."""

    def __init__(self, key: TurnKey) -> None:
        super().__init__(f"out of time at {key}")
        self.key = key


@dataclass(frozen=True, slots=True)
class Walk:
    """Walks the turns in scope in the order of answers, and verifies those that may match."""

    tools: Tools
    finder: Finder
    gaze: Gaze
    scope: SearchScope
    left_out: LeftOutTurns
    order: Order
    context: int
    """Lines to answer before and after each matching one."""
    is_late: Callable[[], bool]
    is_explained: bool = False
    """Whether `cost` is to say which roads were taken; it is not free."""
    cost: Cost = field(default_factory=Cost)
    _admitted: dict[int, Session | None] = field(default_factory=dict)

    def matches(self, after: TurnKey) -> Iterator[tuple[Session, TurnKey, Match]]:
        """Every turn past a place that matches, in order.

        Raises:
            OutOfTime: it is late.
        """
        if not self.gaze.layers:
            return
        done = after
        size = FIRST_BATCH_TURNS
        for window in self._windows(self._plan(FEW_WORDS), after):
            start = 0
            while start < len(window.keys):
                keys = window.keys[start : start + size]
                self._look_up({key[1] for key in keys})
                for key, match in self._verified([key for key in keys if self._is_wanted(key)], window.chunks):
                    self._check_time(done)
                    session = self._admitted[key[1]]
                    if match is not None and session is not None and not self.left_out.has(key):
                        yield session, key, match
                    done = key
                self._check_time(done)
                done = keys[-1]
                start += size
                size = min(size * 2, BATCH_TURNS)

    def _check_time(self, key: TurnKey) -> None:
        if self.is_late():
            raise OutOfTime(key)

    def _plan(self, most_words: int) -> Plan:
        with self.cost.timed("plan"):
            return self.finder.plan(self.tools.vocabulary, self.tools.index.frequency, most_words)

    def _verified(
        self, keys: Sequence[TurnKey], chunks: dict[TurnKey, list[int]] | None
    ) -> Iterator[tuple[TurnKey, Match | None]]:
        """Each of the turns, with where it matches."""
        store, cost = self.tools.store, self.cost
        bodies: dict[tuple[int, int], list[ChunkBody]] = {}
        with cost.timed("load"):
            if chunks is None:
                found = store.bodies_of_turns([key[1:] for key in keys], self.gaze.layers)
            else:
                found = store.bodies([chunk for key in keys for chunk in chunks[key]])
            for body in found:
                bodies.setdefault((body.session, body.turn), []).append(body)
                cost.loaded += 1
        cost.candidates += len(keys)
        for key in keys:
            cost.verified += 1
            with cost.timed("verify"):
                match = first_match(bodies.get(key[1:], ()), self.finder, self.gaze, self.context)
            cost.matched += match is not None
            yield key, match

    def _is_wanted(self, key: TurnKey) -> bool:
        at_ms, session, turn = key
        if not self.scope.bounds.from_ms <= at_ms <= self.scope.bounds.to_ms:
            return False
        if self.scope.turns is not None and not self.scope.turns.first <= turn <= self.scope.turns.last:
            return False
        admitted = self._admitted[session]
        return admitted is not None and not is_outdated(self.tools.store, admitted, turn, at_ms)

    def _look_up(self, sessions: set[int]) -> None:
        """Learn which of some sessions are let through; all at once, as each question has its price."""
        fresh = sessions - self._admitted.keys()
        if fresh:
            self._admitted.update(dict.fromkeys(fresh))
            self._admitted.update(self.tools.store.sessions_of(fresh, self.scope.condition))

    def _windows(self, plan: Plan, after: TurnKey) -> Iterator[_Turns]:
        """The turns to look at, in order; those between two windows cannot match."""
        if isinstance(plan.query, Nothing):
            return
        session, store = self.scope.session, self.tools.store
        if session is not None and session.turns <= STORE_WINDOW_TURNS:
            turns = self._turns_of(session, after)
            self.cost.went("store: the session's turns", None, len(turns))
            yield _Turns(turns, None)
            return
        within = self.scope.indexed(self.tools.store, self.gaze)
        after = self._start(after)
        whole = plan if plan.is_complete else None
        is_rare = plan.is_complete and self.tools.index.most_chunks(plan.query) <= FEW_CHUNKS
        size = None if is_rare else FIRST_WINDOW_TURNS
        is_first = True
        while True:
            end = None if size is None else store.turn_at_distance(after, self.order, size)
            few = None
            if whole is None and not is_first:
                few = self._few_from_index(plan.query, after, end, within)
                if few is None:
                    whole = self._plan(MANY_WORDS)
            named = 0
            for window in self._between((whole or plan).query, after, end, within) if few is None else [few]:
                named += len(window.keys)
                yield window
            if size is None or end is None or self._is_past_bounds(end):
                return
            is_wide = named < FEW_TURNS or (is_first and whole is None)
            size *= WIDE_STEP if is_wide else STEP
            after, size, is_first = end, size if size <= LARGEST_WINDOW_TURNS else None, False
            self._check_time(after)

    def _few_from_index(self, query: ChunkQuery, after: TurnKey, end: TurnKey | None, within: Scope) -> _Turns | None:
        """The turns that have what a query without all its words needs, where they are few; else None."""
        if isinstance(query, Anything):
            return None
        with self.cost.timed("candidates"):
            is_worth_it = self.cost.matched >= self.cost.verified * ENOUGH_MATCHES
            most = MANY_CANDIDATES if is_worth_it else FEW_CANDIDATES
            places = self.tools.index.few_candidates(query, self._window(after, end, within), most)
        return None if places is None else self._named(query, places, after, end)

    def _between(self, query: ChunkQuery, after: TurnKey, end: TurnKey | None, within: Scope) -> Iterator[_Turns]:
        """The turns behind one and up to another, from the index, or from the store where that is as good."""
        if isinstance(query, Anything) and within.sessions is None and within.projects is None:
            return self._from_store(after, end)
        return self._from_index(query, after, end, within)

    def _start(self, after: TurnKey) -> TurnKey:
        """The place to start from: that of the cursor, or where the time bounds begin, whichever is later."""
        if self.order == "newest":
            return min(after, (self.scope.bounds.to_ms + 1, -1, -1))
        return max(after, (self.scope.bounds.from_ms, -1, -1))

    def _is_past_bounds(self, key: TurnKey) -> bool:
        return key[0] < self.scope.bounds.from_ms if self.order == "newest" else key[0] > self.scope.bounds.to_ms

    def _turns_of(self, session: Session, after: TurnKey) -> Sequence[TurnKey]:
        turns = (self.scope.turns.first, self.scope.turns.last) if self.scope.turns else None
        return self.tools.store.turns_past(after, self.order, session.turns, session.id, turns)

    def _from_store(self, after: TurnKey, end: TurnKey | None) -> Iterator[_Turns]:
        size = STORE_WINDOW_TURNS
        while after != end:
            keys = self.tools.store.turns_past(after, self.order, size)
            keys = [key for key in keys if self._is_between(after, key, end)]
            if not keys or self._is_past_bounds(keys[0]):
                return
            if self.is_explained:
                self.cost.went("store: turn by turn", None, len(keys))
            yield _Turns(keys, None)
            after = keys[-1]
            size = min(size * 2, 16 * STORE_WINDOW_TURNS)

    def _from_index(self, query: ChunkQuery, after: TurnKey, end: TurnKey | None, within: Scope) -> Iterator[_Turns]:
        with self.cost.timed("candidates"):
            places = self.tools.index.candidates(query, self._window(after, end, within))
        yield self._named(query, places, after, end)

    def _window(self, after: TurnKey, end: TurnKey | None, within: Scope) -> Scope:
        """The times between two places."""
        first, last = (end, after) if self.order == "newest" else (after, end)
        return replace(
            within,
            from_ms=within.from_ms if first is None else max(first[0], within.from_ms),
            to_ms=within.to_ms if last is None else min(last[0], within.to_ms),
        )

    def _named(
        self, query: ChunkQuery, places: dict[TurnKey, list[int]], after: TurnKey, end: TurnKey | None
    ) -> _Turns:
        keys = [key for key in places if self._is_between(after, key, end)]
        if self.is_explained:
            self.cost.went(f"index: {query}", self.tools.index.most_chunks(query), len(keys))
        return _Turns(sorted(keys, reverse=self.order == "newest"), places)

    def _is_between(self, after: TurnKey, key: TurnKey, end: TurnKey | None) -> bool:
        if self.order == "newest":
            return key < after and (end is None or key >= end)
        return key > after and (end is None or key <= end)
