"""A search in words mode: from a call to its answer, page by page."""

from collections.abc import Callable
from itertools import islice
from typing import Literal

from indexer.order import AFTER_ALL, BEFORE_ALL
from schemas.answers import Hit, SearchAnswer
from schemas.errors import InvalidArgument, InvalidQuery, StaleCursor
from schemas.requests import SearchRequest
from schemas.texts import trimmed, without_surrogates
from search_api.admitted import Admitted
from search_api.caller import Caller
from search_api.copies import Copies
from search_api.cost import Cost
from search_api.hits import hit_of, nothing_notes
from search_api.left_out import LeftOutTurns
from search_api.ranked import MAX_RANKED_TURNS, Search
from search_api.ranked_lists import RankedLists, RankedTurns
from search_api.search_scope import UNBOUND, search_scope
from search_api.verify import Gaze
from search_api.walk import Tools
from search_api.words_query import Parsed, parse

MAX_QUERY_CHARS = 4096

WordsOrder = Literal["best", "newest", "oldest"]


def search_words(
    tools: Tools,
    request: SearchRequest,
    caller: Caller,
    *,
    order: WordsOrder,
    now_ms: int,
    is_late: Callable[[], bool],
    lists: RankedLists,
) -> SearchAnswer:
    """Answer a search by words; `took_ms` and `indexing` are left for the caller to fill.

    Raises:
        StaleCursor: the list that the next page is taken from is no longer there, and cannot be made again.
        TurndexError: the words of the call are off, or `is_late` before there were enough hits.
    """
    query = _checked_query(request.query)
    parsed = parse(query)
    asked = {**request.model_dump(exclude=UNBOUND), "query": query, "order": order}
    request = with_filters(request, parsed)
    scope = search_scope(tools.store, request, caller, now_ms, asked)
    names, place = scope.names, scope.place
    gaze = Gaze.of(request.kind, request.full)
    notes = [] if parsed.trouble is None else [f"{parsed.trouble}, so plain words were searched for: {parsed.facts}"]
    copies = Copies(tools.store)
    left_out = LeftOutTurns(scope, copies)
    cost = Cost()
    hits: list[Hit] = []
    next_place: tuple[int, int, int] | None = None
    if parsed.facts is None:
        notes = ["the query has no words; mode=text finds signs"]
    elif gaze.layers:
        wanted = Search(
            tools=tools,
            facts=parsed.facts,
            gaze=gaze,
            scope=scope.indexed(tools.store, gaze),
            admitted=Admitted(tools.store, scope),
            left_out=left_out,
            is_late=is_late,
            context=request.context,
            cost=cost,
        )
        if order == "best":
            ranked, start, answered = _ranked_list(wanted, lists, scope.bound_to, place)
            most = min(request.limit, MAX_RANKED_TURNS - answered)
            found = list(islice(wanted.matches(ranked.keys[start:]), most + 1))
            hits = [hit_of(names, copies, session, key, match) for _, session, key, match in found[:most]]
            is_last = len(found) <= most or answered + most == MAX_RANKED_TURNS
            if not is_last:
                next_place = (ranked.id, start + found[most][0], answered + most)
                lists.keep(scope.bound_to, ranked)
            is_more = ranked.is_cut or (is_last and len(found) > most)
            if is_more and (is_last or not place):
                notes.append(
                    f"only the best {min(len(ranked.keys), MAX_RANKED_TURNS)} turns are ranked and more may match;"
                    " narrow the query, or order by newest"
                )
        else:
            after = place or (AFTER_ALL if order == "newest" else BEFORE_ALL)
            ordered = list(islice(wanted.in_order(order, after), request.limit + 1))
            hits = [hit_of(names, copies, *one) for one in ordered[: request.limit]]
            next_place = ordered[request.limit - 1][1] if len(ordered) > request.limit else None
    if not hits and request.cursor is None:
        notes += nothing_notes(tools.store, scope, query, is_full=request.full)
    cursor = None if next_place is None else scope.cursor(next_place)
    explanation = cost.explanation() if request.explain else None
    return SearchAnswer(
        query, hits, cursor is not None, cursor, notes, left_out.named(), None, 0.0, request.limit, explanation
    )


def _ranked_list(
    wanted: Search, lists: RankedLists, bound_to: str, place: tuple[int, int, int] | None
) -> tuple[RankedTurns, int, int]:
    """The list to take a page from, where in it the page starts, and how many turns were answered before."""
    if not place:
        return wanted.ranked(), 0, 0
    list_id, start, answered = place
    ranked = lists.get(bound_to, list_id) or wanted.ranked()
    if ranked.id != list_id or not 0 < answered < MAX_RANKED_TURNS or not 0 <= start < len(ranked.keys):
        raise StaleCursor("the ranking that this cursor continues is no longer kept; run the search again")
    return ranked, start, answered


def with_filters(request: SearchRequest, parsed: Parsed) -> SearchRequest:
    """The call with the filters that were written in its query.

    Raises:
        InvalidArgument: a value that its filter does not take, or a filter that the call has already.
    """
    if not parsed.filters:
        return request
    for name in parsed.filters:
        if getattr(request, name) != SearchRequest.model_fields[name].default:
            raise InvalidArgument(name, f"{name} is given in the query and beside it; give it once")
    try:
        read = SearchRequest.from_strings({"query": ["-"], **parsed.filters})
    except InvalidArgument as error:
        raise InvalidArgument(
            error.argument, f"{error.detail}; to find it as text, write it in quotes", error.candidates
        ) from error
    return request.model_copy(update={name: getattr(read, name) for name in parsed.filters})


def _checked_query(query: str) -> str:
    query = trimmed(without_surrogates(query))
    if not query:
        raise InvalidQuery("the query is blank")
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidQuery(f"the query has {len(query)} characters; at most {MAX_QUERY_CHARS} are searched for")
    return query
