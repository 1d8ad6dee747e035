"""Which sessions and turns a call lets through, as conditions on the store and bounds in time."""

from dataclasses import dataclass

from indexer.store.reader import Condition, StoreReader
from schemas.answers import LeftOut
from schemas.errors import InvalidArgument, quoted
from schemas.folding import fold
from schemas.requests import Filters
from schemas.sources import AGENTS_OWN, SOURCES
from schemas.texts import collapsed
from schemas.times import parse_bound
from search_api.resolve import CallScope

END_OF_TIME_MS = 2**53

SUBAGENTS = Condition("s.parent_id IS NOT NULL")
_RECORD = "SELECT 1 FROM visible_sessions r JOIN visible_projects q ON q.id = r.project WHERE r.id = s.twin_of"
TWINS = Condition(f"s.twin_of IS NOT NULL AND EXISTS ({_RECORD} AND q.is_open)")
"""Transcripts of which the record that answers for them can be seen, too, and is in no closed project:"""
TWINS_WITH_CLOSED = Condition(f"s.twin_of IS NOT NULL AND EXISTS ({_RECORD})")
"""unless these are asked for."""


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """Turn times, both included."""

    from_ms: int = 0
    to_ms: int = END_OF_TIME_MS

    @property
    def is_open(self) -> bool:
        return self == TimeBounds()


def time_bounds(request: Filters, now_ms: int) -> TimeBounds:
    """`since` and `until` of a call.

    Raises:
        InvalidArgument: neither a date, an ISO time nor an age.
    """
    bounds = []
    for name, text, is_end, default in (
        ("since", request.since, False, 0),
        ("until", request.until, True, END_OF_TIME_MS),
    ):
        bound = default if text is None else parse_bound(text.strip(), is_end=is_end, now_ms=now_ms)
        if bound is None:
            raise InvalidArgument(
                name,
                f"{name} takes a date (2026-11-30), an ISO time (2026-11-30T10:00:00Z) or an age (30m, 12h, 7d, 4w),"
                f" not {quoted(text or '')}",
            )
        bounds.append(min(max(bound, 0), END_OF_TIME_MS))
    return TimeBounds(*bounds)


def session_condition(request: Filters, scope: CallScope, session: int | None = None) -> Condition:
    """What the filters of a call ask of a session and its project; one that is named may lie outside the scope.

    Raises:
        InvalidArgument: a source that there is not.
    """
    condition = _asked_for(request, scope, session)
    for left in _left_out(request).values() if session is None else ():
        condition &= Condition(f"NOT ({left.sql})")
    return condition


def _asked_for(request: Filters, scope: CallScope, session: int | None = None) -> Condition:
    """The same, whatever is left out though nobody asked for that."""
    everything = within(scope, with_closed=request.closed == "include")
    parts = [everything if session is None else Condition("s.id = ?", (session,))]
    sources = [source.strip().lower() for source in request.source]
    for source in sources:
        if source not in SOURCES:
            raise InvalidArgument(
                "source", f"there is no source {quoted(source)}; there are {', '.join(SOURCES)}", SOURCES
            )
    parts.append(_one_of("s.source", sources))
    agents = [fold(agent.strip()) for agent in request.agent]
    if agents:
        marks = ", ".join("?" * len(agents))
        parts.append(Condition(f"(fold(s.agent) IN ({marks}) OR fold(s.agent_id) IN ({marks}))", (*agents, *agents)))
    if request.title is not None:
        parts.append(Condition("instr(s.title_folded, ?)", (fold(collapsed(request.title)),)))
    if request.archived != "include":
        parts.append(Condition("s.is_archived = ?", (int(request.archived == "only"),)))
    if session is None and request.subagents == "only":
        parts.append(SUBAGENTS)
    condition = parts[0]
    for part in parts[1:]:
        condition &= part
    return condition


def left_out(store: StoreReader, request: Filters, scope: CallScope) -> list[LeftOut]:
    """What the filters of a call that names no session leave out though nobody asked for that, where there is any."""
    found = []
    asked_for = _asked_for(request, scope)
    for what, kind in _left_out(request).items():
        if what == "subagents" and store.any_session(kind & asked_for):
            found.append(LeftOut(what, "subagents=include"))
        elif what == "twins":
            # The plus keeps SQLite from going through all sessions of the source.
            of_source = {source: Condition("+s.source = ?", (source,)) for source in AGENTS_OWN}
            sources = [source for source, its in of_source.items() if store.any_session(kind & its & asked_for)]
            found += [LeftOut(what, f"source={','.join(sources)}")] if sources else []
    return found


def _left_out(request: Filters) -> dict[str, Condition]:
    """Kinds of sessions that are left out of all calls that name no session, unless one asks for them."""
    kinds = {"subagents": SUBAGENTS} if request.subagents == "exclude" else {}
    if not request.source:
        kinds["twins"] = TWINS if request.closed == "exclude" else TWINS_WITH_CLOSED
    return kinds


def within(scope: CallScope, *, with_closed: bool) -> Condition:
    """What the project that a call is about asks of a session."""
    if scope.is_unknown:
        return Condition("0")
    if scope.project is not None:
        # A project that is named counts, whether it is open or not: it can be reached by path.
        return Condition("s.project = ?", (scope.project.id,))
    return Condition() if with_closed else Condition("p.is_open")


def _one_of(column: str, values: list[str]) -> Condition:
    return Condition(f"{column} IN ({', '.join('?' * len(values))})", tuple(values)) if values else Condition()
