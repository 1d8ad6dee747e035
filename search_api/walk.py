"""The walk of a search: along the order of answers, from where the last page ended until there is enough.

The index names candidates, window by window, and each is verified on its text. Where the index has
nothing to tell turns apart by, the windows are read from the store instead.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field

from indexer.index import IndexReader, Scope
from indexer.order import Order, TurnKey
from indexer.query import Anything, ChunkQuery, Nothing
from indexer.store.reader import ChunkBody, Session, StoreReader
from indexer.vocabulary import VocabularyReader
from search_api.admitted import Admitted
from search_api.cost import Cost
from search_api.finders import Finder, Plan
from search_api.left_out import LeftOutTurns
from search_api.plan import FEW_WORDS, MANY_WORDS
from search_api.search_scope import SearchScope
from search_api.verify import Gaze, Match, first_match
from search_api.windows import is_between, start, window

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

RARE_CHUNKS = 50_000
"""Of a query with so few chunks at most the index finds the first in order sooner than those of a window, as it
has to look at all of them for either."""

FIRST_CANDIDATES = 2048
"""So many of them are asked for at first, and then ever more;"""

FIRST_DOUBTFUL = 512
"""so many where it is seen by them whether to look up all words that fit the query."""

FEW_CANDIDATES, MANY_CANDIDATES = 1024, 4096
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
    admitted: Admitted
    left_out: LeftOutTurns
    order: Order
    context: int
    """Lines to answer before and after each matching one."""
    is_late: Callable[[], bool]
    is_explained: bool = False
    """Whether `cost` is to say which roads were taken; it is not free."""
    cost: Cost = field(default_factory=Cost)

    def matches(self, after: TurnKey) -> Iterator[tuple[Session, TurnKey, Match]]:
        """Every turn past a place that matches, in order.

        Raises:
            OutOfTime: it is late.
        """
        if not self.gaze.layers:
            return
        done = after
        size = FIRST_BATCH_TURNS
        for turns in self._windows(self._plan(FEW_WORDS), after):
            first = 0
            while first < len(turns.keys):
                keys = turns.keys[first : first + size]
                admitted = self.admitted.among(keys)
                for key, match in self._verified(list(admitted), turns.chunks):
                    self._check_time(done)
                    if match is not None and not self.left_out.has(key):
                        yield admitted[key], key, match
                    done = key
                self._check_time(done)
                done = keys[-1]
                first += size
                size = min(size * 2, BATCH_TURNS)

    def _check_time(self, key: TurnKey) -> None:
        if self.is_late():
            raise OutOfTime(key)

    def _plan(self, most_words: int) -> Plan:
        with self.cost.timed("plan"):
            plan = self.finder.plan(self.tools.vocabulary, self.tools.index.frequency, most_words)
        self._note_road(plan.query, 0)
        return plan

    def _note_road(self, query: ChunkQuery, turns: int) -> None:
        """Tell of asking the index this, with none of the turns that it named as long as it is but considered."""
        if self.is_explained:
            most = None if isinstance(query, Anything) else self.tools.index.most_chunks(query)
            self.cost.went(f"index: {query}", most, turns)

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

    def _windows(self, plan: Plan, after: TurnKey) -> Iterator[_Turns]:
        """The turns to look at, in order; those between two windows cannot match."""
        if isinstance(plan.query, Nothing):
            return
        session, store = self.scope.session, self.tools.store
        if session is not None and self._turns_asked_for(session) <= STORE_WINDOW_TURNS:
            keys = self._turns_of(session, after)
            self.cost.went("store: the session's turns", None, len(keys))
            yield _Turns(keys, None)
            return
        within = self.scope.indexed(self.tools.store, self.gaze)
        after = start(self.order, after, self.scope.bounds.from_ms, self.scope.bounds.to_ms)
        size: int | None = FIRST_WINDOW_TURNS
        is_first, is_final = True, plan.is_complete
        while True:
            if self.tools.index.most_chunks(plan.query) <= RARE_CHUNKS:
                left_at = yield from self._in_order(plan.query, is_final, after, within)
                if left_at is None:
                    return
                plan, is_final, after = self._plan(MANY_WORDS), True, left_at
                continue
            end = None if size is None else store.turn_at_distance(after, self.order, size)
            few = None
            if not is_final and not is_first:
                few = self._few_from_index(plan.query, after, end, within)
                if few is None:
                    plan, is_final = self._plan(MANY_WORDS), True
                    continue
            named = 0
            for turns in self._between(plan.query, after, end, within) if few is None else [few]:
                named += len(turns.keys)
                yield turns
            if size is None or end is None or self._is_past_bounds(end):
                return
            is_wide = named < FEW_TURNS or (is_first and not is_final)
            size *= WIDE_STEP if is_wide else STEP
            after, size, is_first = end, size if size <= LARGEST_WINDOW_TURNS else None, False
            self._check_time(after)

    def _in_order(
        self, query: ChunkQuery, is_final: bool, after: TurnKey, within: Scope
    ) -> Generator[_Turns, None, TurnKey | None]:
        """The turns past a place, ever more at a time; from where on to ask for all words, or None at the end."""
        least = FIRST_CANDIDATES if is_final else FIRST_DOUBTFUL
        while True:
            with self.cost.timed("candidates"):
                places, cut = self.tools.index.first_candidates(
                    query, window(within, self.order, after, None), self.order, least
                )
            yield self._named(query, places, after, None)
            if cut is None:
                return None
            after = (cut + 1, -1, -1) if self.order == "newest" else (cut, -1, -1)
            self._check_time(after)
            if not is_final and not self._is_worth_it():
                return after
            least *= STEP

    def _is_worth_it(self) -> bool:
        """Whether enough of what was verified did match to go on like that."""
        return self.cost.matched >= self.cost.verified * ENOUGH_MATCHES

    def _few_from_index(self, query: ChunkQuery, after: TurnKey, end: TurnKey | None, within: Scope) -> _Turns | None:
        """The turns that have what a query without all its words needs, where they are few; else None."""
        if isinstance(query, Anything):
            return None
        with self.cost.timed("candidates"):
            most = MANY_CANDIDATES if self._is_worth_it() else FEW_CANDIDATES
            places = self.tools.index.few_candidates(query, window(within, self.order, after, end), most)
        return None if places is None else self._named(query, places, after, end)

    def _between(self, query: ChunkQuery, after: TurnKey, end: TurnKey | None, within: Scope) -> Iterator[_Turns]:
        """The turns behind one and up to another, from the index, or from the store where that is as good."""
        if isinstance(query, Anything) and within.sessions is None and within.projects is None:
            return self._from_store(after, end)
        return self._from_index(query, after, end, within)

    def _is_past_bounds(self, key: TurnKey) -> bool:
        return key[0] < self.scope.bounds.from_ms if self.order == "newest" else key[0] > self.scope.bounds.to_ms

    def _turns_asked_for(self, session: Session) -> int:
        turns = self.scope.turns
        return session.turns if turns is None else min(turns.last, session.turns) - turns.first + 1

    def _turns_of(self, session: Session, after: TurnKey) -> Sequence[TurnKey]:
        turns = (self.scope.turns.first, self.scope.turns.last) if self.scope.turns else None
        return self.tools.store.turns_past(after, self.order, session.turns, session.id, turns)

    def _from_store(self, after: TurnKey, end: TurnKey | None) -> Iterator[_Turns]:
        size = STORE_WINDOW_TURNS
        while after != end:
            keys = self.tools.store.turns_past(after, self.order, size)
            keys = [key for key in keys if is_between(self.order, after, key, end)]
            if not keys or self._is_past_bounds(keys[0]):
                return
            if self.is_explained:
                self.cost.went("store: turn by turn", None, len(keys))
            yield _Turns(keys, None)
            after = keys[-1]
            size = min(size * 2, 16 * STORE_WINDOW_TURNS)

    def _from_index(self, query: ChunkQuery, after: TurnKey, end: TurnKey | None, within: Scope) -> Iterator[_Turns]:
        with self.cost.timed("candidates"):
            places = self.tools.index.candidates(query, window(within, self.order, after, end))
        yield self._named(query, places, after, end)

    def _named(
        self, query: ChunkQuery, places: dict[TurnKey, list[int]], after: TurnKey, end: TurnKey | None
    ) -> _Turns:
        keys = [key for key in places if is_between(self.order, after, key, end)]
        self._note_road(query, len(keys))
        return _Turns(sorted(keys, reverse=self.order == "newest"), places)
