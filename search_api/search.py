"""`session_search`: which turns have the query in a line, newest first, and stop when there are enough.

The index names candidates, window by window along the order of answers, and each is verified on its
text. Where the index has nothing to tell turns apart by, the windows are read from the store instead.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from indexer.index import IndexReader, Scope
from indexer.query import Anything, ChunkQuery, Nothing
from indexer.store.reader import (
    AFTER_ALL,
    BEFORE_ALL,
    ChunkBody,
    Condition,
    Order,
    Session,
    StoreReader,
    TurnKey,
)
from indexer.vocabulary import VocabularyReader
from schemas.answers import Hit, LeftOut, SearchAnswer
from schemas.errors import InvalidArgument, InvalidQuery, NoSuchTurn, Timeout
from schemas.folding import fold
from schemas.references import Turns
from schemas.requests import SearchRequest
from schemas.texts import collapsed, trimmed, without_surrogates
from schemas.times import iso_utc
from search_api.caller import Caller
from search_api.cursor import fingerprint, read_cursor, write_cursor
from search_api.filters import TimeBounds, session_condition, time_bounds
from search_api.naming import Names
from search_api.plan import MANY_WORDS, TextPlan, plan_text
from search_api.resolve import Resolver, scope_of
from search_api.verify import Gaze, Match, first_match

MAX_QUERY_CHARS = 4096

MAX_INDEXED_SESSIONS = 1000
"""A filter that lets so many sessions through at most is part of the index query; a wider one is not."""

STORE_WINDOW_TURNS = 128
"""Turns read from the store at a time where the index cannot tell them apart; doubled up to 16 times this."""

INDEX_WINDOWS_TURNS = (512, 4096, 32_768, 262_144)
"""How far each search of the index reaches; the one after these reaches the end."""

WIDE_WINDOWS_TURNS = (16_384, 131_072)
"""The same for a query that many words fit: to look them all up is what each search of it costs."""

FEW_CHUNKS = 512
"""A query with so few chunks at most is searched for in one window."""

FIRST_LOOK_TURNS = 512
"""How far a query that many words fit is looked for before they are all looked up: mostly hits come at once."""

MAX_TITLE_MATCHES = 3


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


def search(
    tools: Tools, request: SearchRequest, caller: Caller, *, now_ms: int, is_late: Callable[[], bool]
) -> SearchAnswer:
    """Answer a search; `took_ms` and `indexing` are left for the caller to fill.

    Raises:
        TurndexError: the words of the call are off, or `is_late` before there were enough hits.
    """
    query = _checked_query(request)
    store = tools.store
    scope = scope_of(store, request.project, caller.project, with_closed=request.closed == "include")
    names = Names(store, scope.project)
    bounds = time_bounds(request, now_ms)
    session, turns = None, None
    if request.session is not None:
        session, turns = Resolver(store, scope).session(request.session)
        if turns is not None and turns.first > session.turns:
            raise NoSuchTurn(f"{names.of(session)} has {session.turns} turns", session.turns)
    condition = session_condition(request, scope, session.id if session else None)
    bound_to = fingerprint(
        {
            **request.model_dump(exclude={"cursor", "limit"}),
            "query": query,
            "about": scope.project and scope.project.path,
        }
    )
    after = AFTER_ALL if request.order == "newest" else BEFORE_ALL
    if request.cursor is not None:
        *place, from_ms, to_ms = read_cursor(request.cursor, bound_to, 5)
        after, bounds = (place[0], place[1], place[2]), TimeBounds(from_ms, to_ms)
    walk = _Walk(tools, Gaze.of(request.kind, request.full), condition, bounds, session, turns, request.order, is_late)
    found = list(islice(walk.matches(query, after), request.limit + 1))
    more = len(found) > request.limit
    hits = [_hit(names, *one) for one in found[: request.limit]]
    last = found[request.limit - 1][1] if more else after
    notes = [] if hits or request.cursor is not None else _nothing_notes(store, names, condition, query)
    cursor = write_cursor(bound_to, [*last, bounds.from_ms, bounds.to_ms]) if more else None
    left_out: list[LeftOut] = []
    return SearchAnswer(query, hits, more, cursor, notes, left_out, None, 0.0, request.limit)


def _checked_query(request: SearchRequest) -> str:
    if request.mode != "text":
        raise InvalidArgument("mode", f"mode {request.mode} is not there yet; search with mode text")
    query = trimmed(without_surrogates(request.query))
    if not query:
        raise InvalidQuery("the query is blank")
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidQuery(f"the query has {len(query)} characters; at most {MAX_QUERY_CHARS} are searched for")
    if "\n" in query:
        raise InvalidQuery("the query has a line break; a match lies within one line; search for one of them")
    return query


class _Walk:
    """Walks the turns in scope in the order of answers, and verifies those that may match."""

    def __init__(
        self,
        tools: Tools,
        gaze: Gaze,
        condition: Condition,
        bounds: TimeBounds,
        session: Session | None,
        turns: Turns | None,
        order: Order,
        is_late: Callable[[], bool],
    ) -> None:
        self._tools = tools
        self._gaze = gaze
        self._condition = condition
        self._bounds = bounds
        self._session = session
        self._turns = turns
        self._order: Order = order
        self._is_late = is_late
        self._admitted: dict[int, Session | None] = {}

    def matches(self, query: str, after: TurnKey) -> Iterator[tuple[Session, TurnKey, Match]]:
        """Every turn past a place that matches, in order.

        Raises:
            Timeout: it is late; says how far it came.
        """
        if not self._gaze.layers:
            return
        plan = plan_text(query, self._tools.vocabulary)
        for window in self._windows(query, plan, after):
            for start in range(0, len(window.keys), STORE_WINDOW_TURNS):
                keys = window.keys[start : start + STORE_WINDOW_TURNS]
                if self._is_late():
                    raise Timeout(
                        f"the time limit passed when turns up to {iso_utc(keys[0][0])} had been searched;"
                        " narrow the query, or name a session or a time"
                    )
                yield from self._verified([key for key in keys if self._is_wanted(key)], window.chunks, plan.needle)

    def _verified(
        self, keys: Sequence[TurnKey], chunks: dict[TurnKey, list[int]] | None, needle: str
    ) -> Iterator[tuple[Session, TurnKey, Match]]:
        store = self._tools.store
        if chunks is None:
            found = store.bodies_of_turns([key[1:] for key in keys], self._gaze.layers)
        else:
            found = store.bodies([chunk for key in keys for chunk in chunks[key]])
        bodies: dict[tuple[int, int], list[ChunkBody]] = {}
        for body in found:
            bodies.setdefault((body.session, body.turn), []).append(body)
        for key in keys:
            match = first_match(bodies.get(key[1:], ()), needle, self._gaze)
            session = self._session_of(key[1])
            if match is not None and session is not None:
                yield session, key, match

    def _is_wanted(self, key: TurnKey) -> bool:
        at_ms, session, turn = key
        if not self._bounds.from_ms <= at_ms <= self._bounds.to_ms:
            return False
        if self._turns is not None and not self._turns.first <= turn <= self._turns.last:
            return False
        return self._session_of(session) is not None

    def _session_of(self, session: int) -> Session | None:
        if session not in self._admitted:
            self._admitted[session] = self._tools.store.session(session, self._condition)
        return self._admitted[session]

    def _windows(self, query: str, plan: TextPlan, after: TurnKey) -> Iterator[_Turns]:
        """The turns to look at, in order; those between two windows cannot match."""
        if isinstance(plan.query, Nothing):
            return
        session, store = self._session, self._tools.store
        if session is not None and session.turns <= STORE_WINDOW_TURNS:
            yield _Turns(self._of_session(session, after), None)
            return
        sessions = [session.id] if session else store.session_keys(self._condition, MAX_INDEXED_SESSIONS)
        after = self._start(after)
        sizes: Sequence[int]
        if not plan.is_complete:
            end = store.turn_at_distance(after, self._order, FIRST_LOOK_TURNS)
            yield from self._between(plan.query, after, end, sessions)
            if end is None or self._is_past_bounds(end):
                return
            after, plan = end, plan_text(query, self._tools.vocabulary, MANY_WORDS)
            sizes = WIDE_WINDOWS_TURNS
        else:
            sizes = () if self._tools.index.most_chunks(plan.query) <= FEW_CHUNKS else INDEX_WINDOWS_TURNS
        for size in (*sizes, None):
            end = None if size is None else store.turn_at_distance(after, self._order, size)
            yield from self._between(plan.query, after, end, sessions)
            if end is None or self._is_past_bounds(end):
                return
            after = end

    def _between(
        self, query: ChunkQuery, after: TurnKey, end: TurnKey | None, sessions: Sequence[int] | None
    ) -> Iterator[_Turns]:
        """The turns behind one and up to another, from the index, or from the store where that is as good."""
        if isinstance(query, Anything) and sessions is None:
            return self._from_store(after, end)
        return self._from_index(query, after, end, sessions)

    def _start(self, after: TurnKey) -> TurnKey:
        """The place to start from: that of the cursor, or where the time bounds begin, whichever is later."""
        if self._order == "newest":
            return min(after, (self._bounds.to_ms + 1, -1, -1))
        return max(after, (self._bounds.from_ms, -1, -1))

    def _is_past_bounds(self, key: TurnKey) -> bool:
        return key[0] < self._bounds.from_ms if self._order == "newest" else key[0] > self._bounds.to_ms

    def _of_session(self, session: Session, after: TurnKey) -> Sequence[TurnKey]:
        turns = (self._turns.first, self._turns.last) if self._turns else None
        return self._tools.store.turns_past(after, self._order, session.turns, session.id, turns)

    def _from_store(self, after: TurnKey, end: TurnKey | None) -> Iterator[_Turns]:
        size = STORE_WINDOW_TURNS
        while after != end:
            keys = self._tools.store.turns_past(after, self._order, size)
            keys = [key for key in keys if self._is_between(after, key, end)]
            if not keys or self._is_past_bounds(keys[0]):
                return
            yield _Turns(keys, None)
            after = keys[-1]
            size = min(size * 2, 16 * STORE_WINDOW_TURNS)

    def _from_index(
        self, query: ChunkQuery, after: TurnKey, end: TurnKey | None, sessions: Sequence[int] | None
    ) -> Iterator[_Turns]:
        first, last = (end, after) if self._order == "newest" else (after, end)
        scope = Scope(
            self._gaze.layers,
            self._bounds.from_ms if first is None else max(first[0], self._bounds.from_ms),
            self._bounds.to_ms if last is None else min(last[0], self._bounds.to_ms),
            sessions=sessions,
        )
        places = self._tools.store.places_of(self._tools.index.candidates(query, scope))
        within = [key for key in places if self._is_between(after, key, end)]
        yield _Turns(sorted(within, reverse=self._order == "newest"), places)

    def _is_between(self, after: TurnKey, key: TurnKey, end: TurnKey | None) -> bool:
        if self._order == "newest":
            return key < after and (end is None or key >= end)
        return key > after and (end is None or key <= end)


def _hit(names: Names, session: Session, key: TurnKey, match: Match) -> Hit:
    name, link = names.of(session), names.link(session)
    return Hit(
        reference=f"{name}:{key[2]}",
        link=None if link is None else f"{link}:{key[2]}",
        project=session.project.path,
        project_name=session.project.name,
        session=session.number,
        session_id=session.session_id,
        turn=key[2],
        title=session.title,
        line=match.line,
        spans=match.spans,
        kind=match.kind,
        source=session.source,
        agent=session.agent,
        at=iso_utc(key[0]),
        archived=session.is_archived,
        deleted=session.is_deleted,
    )


def _nothing_notes(store: StoreReader, names: Names, condition: Condition, query: str) -> list[str]:
    """What was searched, and sessions whose titles have what no line has."""
    extent = store.extent(condition)
    until = "" if extent.last_ms is None else f", up to {iso_utc(extent.last_ms)}"
    notes = [f"searched {extent.sessions} sessions, {extent.turns} turns{until}"]
    titled = store.sessions(
        Condition("instr(s.title_folded, ?)", (fold(collapsed(query)),)) & condition,
        f"ORDER BY s.last_at DESC, s.id DESC LIMIT {MAX_TITLE_MATCHES}",
    )
    notes += [f"a title has it: {names.of(session)} {session.title}" for session in titled]
    return notes
