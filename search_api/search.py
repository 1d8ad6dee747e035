"""`session_search`: from a call to its answer. Which turns match is `walk`'s to find."""

import time
from collections.abc import Callable
from itertools import islice

from indexer.order import AFTER_ALL, BEFORE_ALL, Order, TurnKey
from indexer.store.reader import Session
from schemas.answers import SearchAnswer
from schemas.errors import InvalidArgument, InvalidQuery, Timeout
from schemas.requests import SearchRequest
from schemas.texts import trimmed, without_surrogates
from schemas.times import iso_utc
from search_api.admitted import Admitted
from search_api.caller import Caller
from search_api.copies import Copies
from search_api.filters import END_OF_TIME_MS
from search_api.finders import Finder, TextFinder
from search_api.hits import hit_of, nothing_notes
from search_api.left_out import LeftOutTurns
from search_api.search_scope import UNBOUND, search_scope
from search_api.verify import Gaze, Match
from search_api.walk import OutOfTime, Tools, Walk

MAX_QUERY_CHARS = 4096

GRACE_SECONDS = 1.0
"""How much longer than its time limit a search may take to end the text that it is in, and to say how far it got."""


def search(
    tools: Tools, request: SearchRequest, caller: Caller, *, now_ms: int, is_late: Callable[[], bool]
) -> SearchAnswer:
    """Answer a search; `took_ms` and `indexing` are left for the caller to fill.

    Raises:
        TurndexError: the words of the call are off, or `is_late` before there were enough hits.
    """
    query = _checked_query(request)
    order = _order(request)
    asked = {**request.model_dump(exclude=UNBOUND), "query": query, "order": order}
    scope = search_scope(tools.store, request, caller, now_ms, asked)
    after = scope.place or (AFTER_ALL if order == "newest" else BEFORE_ALL)
    copies = Copies(tools.store)
    left_out = LeftOutTurns(scope, copies)
    walk = Walk(
        tools=tools,
        finder=_finder(request, query, is_late),
        gaze=Gaze.of(request.kind, request.full),
        scope=scope,
        admitted=Admitted(tools.store, scope),
        left_out=left_out,
        order=order,
        context=request.context,
        is_late=is_late,
        is_explained=request.explain,
    )
    found: list[tuple[Session, TurnKey, Match]] = []
    stopped_at: TurnKey | None = None
    within: Timeout | None = None
    try:
        for one in islice(walk.matches(after), request.limit + 1):
            found.append(one)
    except OutOfTime as late:
        stopped_at = late.key
    except Timeout as late:
        # In one long text. What was found before it is answered; the page after that begins there, and says so.
        if not found:
            raise
        stopped_at, within = found[-1][1], late
    hits = [hit_of(scope.names, copies, *one) for one in found[: request.limit]]
    notes: list[str] = []
    next_place: TurnKey | None = None
    if len(found) > request.limit:
        next_place = found[request.limit - 1][1]
    elif stopped_at is not None:
        notes.append(_how_far(stopped_at) if within is None else f"{within.detail}; these were found before it")
        if request.mode == "text" or stopped_at == after:
            raise Timeout(f"{notes[0]}; narrow the query, or name a session or a time")
        next_place = stopped_at
    elif not hits and request.cursor is None:
        notes = nothing_notes(tools.store, scope, query, is_full=request.full)
    cursor = None if next_place is None else scope.cursor(next_place)
    explanation = walk.cost.explanation() if request.explain else None
    return SearchAnswer(
        query, hits, cursor is not None, cursor, notes, left_out.named(), None, 0.0, request.limit, explanation
    )


def _order(request: SearchRequest) -> Order:
    if request.order == "best":
        raise InvalidArgument("order", "order best ranks words: pass mode=words, or order newest or oldest")
    return request.order or "newest"


def _finder(request: SearchRequest, query: str, is_late: Callable[[], bool]) -> Finder:
    if request.mode == "text":
        return TextFinder.of(query)
    # RE2 and what it is read with take as long to import as many a search to answer.
    from search_api.regex import compile_regex
    from search_api.regex_finder import RegexFinder

    late_since: float | None = None

    def check_time() -> None:
        nonlocal late_since
        if not is_late():
            return
        late_since = late_since or time.monotonic()
        if time.monotonic() - late_since > GRACE_SECONDS:
            raise Timeout("the time limit passed within one long text; narrow the expression, or name a session")

    return RegexFinder.of(compile_regex(query), check_time)


def _how_far(key: TurnKey) -> str:
    is_in_time = 0 <= key[0] < END_OF_TIME_MS
    return "the time limit passed" + (f" when turns up to {iso_utc(key[0])} had been searched" if is_in_time else "")


def _checked_query(request: SearchRequest) -> str:
    """The query as it is searched for: trimmed, but for an expression, in which white space has its meaning."""
    query = without_surrogates(request.query)
    if not trimmed(query):
        raise InvalidQuery("the query is blank")
    if request.mode == "regex":
        return query
    query = trimmed(query)
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidQuery(f"the query has {len(query)} characters; at most {MAX_QUERY_CHARS} are searched for")
    if "\n" in query:
        raise InvalidQuery("the query has a line break; a match lies within one line; search for one of them")
    return query
