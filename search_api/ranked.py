"""Ranked turns: a list of those that may match, decided on their text page by page."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from indexer.index import Scope
from indexer.order import Order, TurnKey
from indexer.store.reader import ChunkBody, Session
from schemas.errors import Timeout
from search_api.admitted import Admitted
from search_api.candidates import DEEPER, Candidates
from search_api.cost import Cost
from search_api.left_out import LeftOutTurns
from search_api.ranked_lists import RankedTurns
from search_api.verify import Gaze, Match
from search_api.walk import Tools
from search_api.windows import is_between, start, window
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
    scope: Scope
    """What the index is told of what it lets through."""
    admitted: Admitted
    left_out: LeftOutTurns
    is_late: Callable[[], bool]
    context: int = 0
    """Lines to answer before and after each best one."""
    cost: Cost = field(default_factory=Cost)

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
        for first in range(0, len(keys), BATCH_TURNS):
            if self.is_late():
                raise Timeout("the time limit passed; narrow the query, or name a session or a time")
            some = keys[first : first + BATCH_TURNS]
            admitted = self.admitted.among(some)
            bodies: dict[tuple[int, int], list[ChunkBody]] = {}
            self.cost.candidates += len(admitted)
            with self.cost.timed("load"):
                for body in self.tools.store.bodies_of_turns([key[1:] for key in admitted], self.gaze.layers):
                    bodies.setdefault((body.session, body.turn), []).append(body)
                    self.cost.loaded += 1
            for place, key in enumerate(some, first):
                if key not in admitted:
                    continue
                self.cost.verified += 1
                with self.cost.timed("verify"):
                    match = finder.best_line(bodies.get(key[1:], ()))
                if match is not None and not self.left_out.has(key):
                    self.cost.matched += 1
                    yield place, admitted[key], key, match

    def _windows(self, order: Order, after: TurnKey) -> Iterator[list[TurnKey]]:
        """The turns that may match, window by window along the order."""
        with self.cost.timed("candidates"):
            candidates = Candidates(self.tools, self.facts, self.scope)
            listed, most = candidates.listed_turns(), candidates.most_chunks()
        if listed is not None:
            self.cost.went(f"index: {self.facts}", most, len(listed))
            yield [key for key in listed if is_between(order, after, key, None)]
            return
        store, scope = self.tools.store, self.scope
        after = start(order, after, scope.from_ms, scope.to_ms)
        for size in (*WINDOWS_TURNS, None):
            end = None if size is None else store.turn_at_distance(after, order, size)
            with self.cost.timed("candidates"):
                found = Candidates(self.tools, self.facts, window(scope, order, after, end)).every_turn()
            self.cost.went(f"index: {self.facts}", most, len(found))
            yield [key for key in found if is_between(order, after, key, end)]
            if end is None or not scope.from_ms <= end[0] <= scope.to_ms:
                return
            after = end
