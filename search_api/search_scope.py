"""What a search is about: the words of its call, resolved in one state of the store."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from indexer.index import Scope
from indexer.store.reader import Condition, Session, StoreReader
from schemas.answers import LeftOut
from schemas.errors import NoSuchTurn
from schemas.references import Turns
from schemas.requests import SearchRequest
from search_api.caller import Caller, current_turns
from search_api.cursor import fingerprint, read_cursor, write_cursor
from search_api.filters import TimeBounds, left_out, session_condition, time_bounds
from search_api.naming import Names
from search_api.resolve import Resolver, scope_of
from search_api.verify import Gaze

PLACE_LENGTH = 3
"""Numbers of which a place in an answer is made."""

UNBOUND = {"cursor", "limit", "context", "explain"}
"""Arguments that may differ between two pages of one search."""


@dataclass(frozen=True, slots=True)
class SearchScope:
    """Which sessions, turns and times are looked at, and where the page begins."""

    names: Names
    condition: Condition
    """What the sessions must fulfil."""
    project: int | None
    """The project that all of them are in, where there is one."""
    unknown_project: str | None
    """The caller's project, where nothing is known of it: then nothing can be found."""
    session: Session | None
    """The one session, where one is named, and of it just these turns."""
    turns: Turns | None
    bounds: TimeBounds
    leaves_out_copies: bool
    """Whether turns that were copied from others are left out, where those are not."""
    left_out: list[LeftOut]
    """The kinds of sessions that are left out."""
    bound_to: str
    """What the cursors of this search are bound to."""
    current: frozenset[tuple[int, int]]
    """The turn that the caller is in, where it is to be left out."""
    place: tuple[int, int, int] | None
    """Where the cursor of the call says that the page begins; None: at the first one."""

    def indexed(self, store: StoreReader, gaze: Gaze) -> Scope:
        """What of it the index is told: all but the turns, the copies and the caller's own turn."""
        scope = Scope(gaze.layers, self.bounds.from_ms, self.bounds.to_ms, kinds=gaze.selected_kinds)
        if self.session is not None:
            return replace(scope, sessions=[self.session.id])
        if self.project is None:
            choice = store.choice(Condition(), self.condition)
        else:
            scope = replace(scope, projects=[self.project])
            choice = store.choice(Condition("s.project = ?", (self.project,)), self.condition)
        return replace(scope, sessions=choice.only, without=choice.without)

    def cursor(self, place: tuple[int, int, int]) -> str:
        """The cursor of the page that begins at a place; it keeps the times that an age meant at first."""
        return write_cursor(self.bound_to, [*place, self.bounds.from_ms, self.bounds.to_ms])


def search_scope(
    store: StoreReader, request: SearchRequest, caller: Caller, now_ms: int, asked: Mapping[str, Any]
) -> SearchScope:
    """Resolve the words of a call; `asked` is what makes it the search that it is, besides its project.

    Raises:
        TurndexError: they are off, or mean nothing that there is.
    """
    scope = scope_of(store, request.project, caller.project, with_closed=request.closed == "include")
    names = Names(store, scope.project)
    bounds = time_bounds(request, now_ms)
    session, turns = None, None
    if request.session is not None:
        session, turns = Resolver(store, scope, with_closed=request.closed == "include").session(request.session)
        if turns is not None and turns.first > session.turns:
            raise NoSuchTurn(f"{names.of(session)} has {session.turns} turns", session.turns)
    bound_to = fingerprint({**asked, "about": scope.project and scope.project.path})
    place = None
    if request.cursor is not None:
        first, second, third, from_ms, to_ms = read_cursor(request.cursor, bound_to, PLACE_LENGTH + 2)
        place, bounds = (first, second, third), TimeBounds(from_ms, to_ms)
    return SearchScope(
        names=names,
        condition=session_condition(request, scope, session.id if session else None),
        project=scope.project.id if scope.project and session is None else None,
        unknown_project=caller.project if scope.is_unknown and session is None else None,
        session=session,
        turns=turns,
        bounds=bounds,
        leaves_out_copies=session is None and request.copies == "exclude",
        left_out=left_out(store, request, scope) if session is None else [],
        bound_to=bound_to,
        current=current_turns(store, caller) if session is None and request.current == "exclude" else frozenset(),
        place=place,
    )
