"""What a call to forget is about, and how that is told before it is done."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from indexer.store.reader import Condition, Member, Session, StoreReader
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
    """A session that is to be forgotten, with all that it started."""

    reference: str
    title: str
    family: tuple[Member, ...]
    """The session itself, then its subagents, and theirs."""
    twins: tuple[str, ...] = ()
    """Of a record: the transcripts of the same session that stay, and answer for it from then on."""

    @property
    def session(self) -> int:
        return self.family[0].session


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

    Each goes with the subagents that it started, and theirs, wherever these lie and whether they have files or not:
    what was said in a session is all of it. One that goes with another does not stand for itself.

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
    families = {session: store.family(session) for session in found}
    covered: set[int] = set()
    heads: set[int] = set()
    # The larger families first: a parent's holds those of its subagents.
    for key in sorted(families, key=lambda key: -len(families[key])):
        if key not in covered:
            heads.add(key)
            covered.update(member.session for member in families[key])
    doomed = []
    for key, one in found.items():
        if key in heads:
            twins = store.sessions(Condition("s.twin_of = ?", (key,)), "ORDER BY s.id")
            staying = tuple(names.of(twin) for twin in twins if twin.id not in covered)
            doomed.append(Doomed(names.of(one), one.title, tuple(families[key]), staying))
    return doomed


def told_beforehand(doomed: Sequence[Doomed]) -> list[str]:
    """What will be forgotten, in lines."""
    members = {member for one in doomed for member in one.family}
    lines = [f"to be forgotten: {_extent(members, 'session')}"]
    lines += [
        f"  {one.reference} {printable(collapsed(one.title))[:MAX_TITLE_CHARS]} — {_told(one)}"
        for one in doomed[:MAX_LISTED]
    ]
    if len(doomed) > MAX_LISTED:
        lines.append(f"  and {len(doomed) - MAX_LISTED:,} more")
    with_file = sum(member.has_file for member in members)
    if with_file:
        which = "its file is" if len(members) == 1 else f"of {counted(with_file, 'session')} the file is"
        lines.append(f"… {which} still there; it stays where it is, and is not read again")
    lines += [
        f"… what the agent itself wrote of {one.reference} stays and is found, unless it is named too: {twin}"
        for one in doomed[:MAX_LISTED]
        for twin in one.twins
    ]
    return lines


def _told(one: Doomed) -> str:
    turns = counted(one.family[0].turns, "turn")
    return f"{turns}, and {_extent(one.family[1:], 'subagent')}" if len(one.family) > 1 else turns


def _extent(members: Collection[Member], what: str) -> str:
    return f"{counted(len(members), what)} with {counted(sum(member.turns for member in members), 'turn')}"
