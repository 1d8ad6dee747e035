"""Ranked turns: a list of those that may match, decided on their text page by page."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from indexer.index import Scope
from indexer.order import Order, TurnKey
from indexer.store.reader import ChunkBody, Condition, Session
from schemas.errors import Timeout
from schemas.references import Turns
from search_api.candidates import DEEPER, Candidates
from search_api.copies import is_outdated
from search_api.cost import Cost
from search_api.filters import TimeBounds
from search_api.left_out import LeftOutTurns
from search_api.ranked_lists import RankedTurns
from search_api.verify import Gaze, Match
from search_api.walk import Tools
from search_api.words_match import WordsFinder
from search_api.words_query import Facts

MAX_RANKED_TURNS = 1000
"""No more turns are answered in the order of their scores."""

BEST_CHUNKS = 2048
"""The best chunks that a list begins with where no word narrows a query down: twice as many as turns are
answered, as some have a turn in common, or do not match by their text."""

KEPT_CANDIDATES = 65_536
"""Turns that a ranked list keeps. Which of them match is decided page by page."""

SAMPLE_TURNS = 32
"""The best turns of a list that was cut, looked at to see how many of the others are likely to match."""

BATCH_TURNS = 32
"""Turns whose text is loaded at a time."""

WINDOWS_TURNS = (512, 4096, 32_768, 262_144)
"""How far each search of the index reaches in the order of time; the one after these reaches the end."""


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
    left_out: LeftOutTurns
    context: int = 0
    """Lines to answer before and after each best one."""
    cost: Cost = field(default_factory=Cost)
    _admitted: dict[int, Session | None] = field(default_factory=dict)

    def ranked(self) -> RankedTurns:
        """The turns that may match, best first, newest first where they are alike.

        A list need not be whole, but one that is cut must have enough turns that match. How many is judged by
        its best ones, which are looked at; where so few match that this would take too long a list, all are.
        """
        candidates = Candidates(self.tools, self.facts, self.scope)
        depth = BEST_CHUNKS
        while True:
            with self.cost.timed("candidates"):
                keys, is_all = candidates.best(depth)
            self.cost.went(f"index: the best of {self.facts}", candidates.most_chunks(), len(keys))
            kept = keys[:KEPT_CANDIDATES]
            if is_all and len(kept) == len(keys):
                return RankedTurns(kept, False)
            sample = kept[:SAMPLE_TURNS]
            share = sum(1 for _ in self.matches(sample)) / max(1, len(sample))
            if share * len(kept) >= 1.5 * MAX_RANKED_TURNS:
                return RankedTurns(kept, True)
            if is_all or len(keys) > KEPT_CANDIDATES:
                return self._verified(candidates, depth)
            depth *= DEEPER

    def _verified(self, candidates: Candidates, depth: int) -> RankedTurns:
        """The best turns that do match, however many there are that do not."""
        looked_at: set[TurnKey] = set()
        matching: set[TurnKey] = set()
        while True:
            keys, is_all = candidates.best(depth)
            fresh = [key for key in keys if key not in looked_at]
            matching.update(key for _, _, key, _ in islice(self.matches(fresh), MAX_RANKED_TURNS + 1 - len(matching)))
            if is_all or len(matching) > MAX_RANKED_TURNS:
                ordered = [key for key in keys if key in matching]
                return RankedTurns(ordered[:MAX_RANKED_TURNS], len(ordered) > MAX_RANKED_TURNS)
            looked_at.update(fresh)
            depth *= DEEPER

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
        finder = WordsFinder(self.facts, self.gaze, self.context)
        for start in range(0, len(keys), BATCH_TURNS):
            if self.is_late():
                raise Timeout("the time limit passed; narrow the query, or name a session or a time")
            some = [
                (start + i, key) for i, key in enumerate(keys[start : start + BATCH_TURNS]) if self._is_in_range(key)
            ]
            sessions = self._sessions({key[1] for _, key in some})
            some = [
                (place, key)
                for place, key in some
                if key[1] in sessions and not is_outdated(self.tools.store, sessions[key[1]], key[2], key[0])
            ]
            bodies: dict[tuple[int, int], list[ChunkBody]] = {}
            self.cost.candidates += len(some)
            with self.cost.timed("load"):
                for body in self.tools.store.bodies_of_turns([key[1:] for _, key in some], self.gaze.layers):
                    bodies.setdefault((body.session, body.turn), []).append(body)
                    self.cost.loaded += 1
            for place, key in some:
                self.cost.verified += 1
                with self.cost.timed("verify"):
                    match = finder.best_line(bodies.get(key[1:], ()))
                if match is not None and not self.left_out.has(key):
                    self.cost.matched += 1
                    yield place, sessions[key[1]], key, match

    def _is_in_range(self, key: TurnKey) -> bool:
        at_ms, _, turn = key
        is_named = self.turns is None or self.turns.first <= turn <= self.turns.last
        return is_named and self.bounds.from_ms <= at_ms <= self.bounds.to_ms

    def _sessions(self, keys: set[int]) -> dict[int, Session]:
        """Those of some sessions that are let through."""
        fresh = keys - self._admitted.keys()
        if fresh:
            self._admitted.update(dict.fromkeys(fresh))
            self._admitted.update(self.tools.store.sessions_of(fresh, self.condition))
        return {key: session for key in keys if (session := self._admitted[key]) is not None}

    def _windows(self, order: Order, after: TurnKey) -> Iterator[list[TurnKey]]:
        """The turns that may match, window by window along the order."""
        with self.cost.timed("candidates"):
            candidates = Candidates(self.tools, self.facts, self.scope)
            listed, most = candidates.listed_turns(), candidates.most_chunks()
        if listed is not None:
            self.cost.went(f"index: {self.facts}", most, len(listed))
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
            with self.cost.timed("candidates"):
                found = Candidates(self.tools, self.facts, window).every_turn()
            self.cost.went(f"index: {self.facts}", most, len(found))
            yield [key for key in found if _is_between(order, after, key, end)]
            if end is None or not scope.from_ms <= end[0] <= scope.to_ms:
                return
            after = end


def _is_between(order: Order, after: TurnKey, key: TurnKey, end: TurnKey | None) -> bool:
    """Whether a turn is past one place and not past another."""
    if order == "newest":
        return key < after and (end is None or key >= end)
    return key > after and (end is None or key <= end)
