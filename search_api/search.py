"""`session_search`: from a call to its answer. Which turns match is `walk`'s to find."""

from collections.abc import Callable
from itertools import islice

from indexer.store.reader import AFTER_ALL, BEFORE_ALL, Condition, Session, StoreReader, TurnKey
from schemas.answers import Hit, LeftOut, SearchAnswer
from schemas.errors import InvalidArgument, InvalidQuery, NoSuchTurn
from schemas.folding import fold
from schemas.requests import SearchRequest
from schemas.texts import collapsed, trimmed, without_surrogates
from schemas.times import iso_utc
from search_api.caller import Caller
from search_api.cursor import fingerprint, read_cursor, write_cursor
from search_api.filters import TimeBounds, session_condition, time_bounds
from search_api.naming import Names
from search_api.resolve import Resolver, scope_of
from search_api.verify import Gaze, Match
from search_api.walk import Tools, Walk

MAX_QUERY_CHARS = 4096

MAX_TITLE_MATCHES = 3


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
    walk = Walk(
        tools=tools,
        gaze=Gaze.of(request.kind, request.full),
        condition=condition,
        project=scope.project.id if scope.project and session is None else None,
        session=session,
        turns=turns,
        bounds=bounds,
        order=request.order,
        is_late=is_late,
    )
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
