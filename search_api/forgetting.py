"""What a call to forget is about, and how that is told before it is done."""

from collections.abc import Sequence
from dataclasses import dataclass

from indexer.store.reader import Condition, Session, StoreReader
from schemas.errors import InvalidArgument, InvalidReference, quoted
from schemas.texts import collapsed, counted, printable
from schemas.times import parse_bound
from search_api.caller import Caller
from search_api.naming import Names
from search_api.resolve import Resolver, scope_of

MAX_LISTED = 20
MAX_TITLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Doomed:
    """A session that is to be forgotten."""

    session: int
    reference: str
    title: str
    turns: int
    has_file: bool
    """Whether its transcript is still there, and is not to be read again."""


def sessions_to_forget(
    store: StoreReader,
    references: Sequence[str],
    deleted_before: str | None,
    project: str | None,
    caller: Caller,
    *,
    now_ms: int,
) -> list[Doomed]:
    """The sessions that are named, and those of the call's project whose files have been gone for longer.

    Raises:
        TurndexError: a word that names no session, or turns of one; a time that is none.
    """
    scope = scope_of(store, project, caller.project, with_closed=False)
    # Without aliases: what was forgotten by its id must not be another session when it is named once more.
    names, resolver = Names(store, scope.project), Resolver(store, scope, with_aliases=False)
    found: dict[int, Session] = {}
    for reference in references:
        session, turns = resolver.session(reference)
        if turns is not None:
            raise InvalidReference(
                f"{quoted(reference)} names turns; a session is forgotten as a whole: {names.of(session)}"
            )
        found[session.id] = session
    if deleted_before is not None:
        before = parse_bound(deleted_before.strip(), is_end=False, now_ms=now_ms)
        if before is None:
            says = "takes an age (90d, 12h, 4w), a date (2026-11-30) or an ISO time"
            raise InvalidArgument("deleted-before", f"deleted-before {says}, not {quoted(deleted_before)}")
        within = Condition("p.is_open") if scope.project is None else Condition("s.project = ?", (scope.project.id,))
        if scope.is_unknown:
            within = Condition("0")
        gone = Condition("s.id IN (SELECT session FROM deletions WHERE at < ?)", (before,))
        found |= {session.id: session for session in store.sessions(within & gone, "ORDER BY s.id")}
    return [Doomed(one.id, names.of(one), one.title, one.turns, has_file=not one.is_deleted) for one in found.values()]


def told_beforehand(doomed: Sequence[Doomed]) -> list[str]:
    """What will be forgotten, in lines."""
    turns = counted(sum(one.turns for one in doomed), "turn")
    lines = [f"to be forgotten: {counted(len(doomed), 'session')} with {turns}"]
    lines += [
        f"  {one.reference} {printable(collapsed(one.title))[:MAX_TITLE_CHARS]} — {counted(one.turns, 'turn')}"
        for one in doomed[:MAX_LISTED]
    ]
    if len(doomed) > MAX_LISTED:
        lines.append(f"  and {len(doomed) - MAX_LISTED:,} more")
    with_file = sum(one.has_file for one in doomed)
    if with_file:
        which = "its file is" if len(doomed) == 1 else f"of {counted(with_file, 'session')} the file is"
        lines.append(f"… {which} still there; it stays where it is, and is not read again")
    return lines
