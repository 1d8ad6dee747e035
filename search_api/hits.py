"""How a turn that matches is answered, and what is said where none does."""

from indexer.order import TurnKey
from indexer.store.reader import Condition, Session, StoreReader
from schemas.answers import Hit
from schemas.errors import quoted
from schemas.folding import fold
from schemas.texts import collapsed, counted
from schemas.times import iso_utc
from search_api.copies import Copies
from search_api.naming import Names
from search_api.search_scope import SearchScope
from search_api.verify import Match

MAX_TITLE_MATCHES = 3


def hit_of(names: Names, copies: Copies, session: Session, key: TurnKey, match: Match) -> Hit:
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
        copied_from=copies.reference(names, session.id, key[2]),
        before=match.before,
        after=match.after,
    )


def unknown_project_note(project: str) -> str:
    """Why a caller that is bound to a project that nobody knows finds nothing."""
    return f"nothing is known of your project {quoted(project)}; project=* is every open one"


def nothing_notes(store: StoreReader, scope: SearchScope, query: str, *, is_full: bool) -> list[str]:
    """What was searched, and sessions whose titles have what no line has."""
    names, condition, bounds = scope.names, scope.condition, scope.bounds
    if bounds.is_open and scope.turns is None:
        extent = store.extent(condition)
    else:
        turns = (1, 2**62) if scope.turns is None else (scope.turns.first, min(scope.turns.last, 2**62))
        extent = store.extent_of_turns(condition, (bounds.from_ms, bounds.to_ms), turns)
    until = "" if extent.last_ms is None else f", up to {iso_utc(extent.last_ms)}"
    # What is stored is not all indexed yet while a first scan or rebuild runs.
    so_far = "" if store.meta("progress") is None else "what is indexed so far of "
    notes = [f"searched {so_far}{counted(extent.sessions, 'session')}, {counted(extent.turns, 'turn')}{until}"]
    if scope.unknown_project is not None:
        return [*notes, unknown_project_note(scope.unknown_project)]
    if not is_full:
        notes.append("thinking, tool output and process items were not looked through; full=true does")
    titled = store.sessions(
        Condition("instr(s.title_folded, ?)", (fold(collapsed(query)),)) & condition,
        f"ORDER BY s.last_at DESC, s.id DESC LIMIT {MAX_TITLE_MATCHES}",
    )
    notes += [f"a title has it: {names.of(session)} {session.title}" for session in titled]
    return notes
