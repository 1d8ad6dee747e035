"""Who calls, as far as it matters to an answer; computed in one place for every door."""

import os
from dataclasses import dataclass

from indexer.store.reader import StoreReader
from search_api.naming import sessions_with_id


@dataclass(frozen=True, slots=True)
class Caller:
    """What a call is about when it does not say so itself."""

    project: str | None = None
    """The path of the caller's project, known or not; None: the call is about every open project."""
    session: str | None = None
    """The id of the session that the caller is; None where it did not say."""


def current_turns(store: StoreReader, caller: Caller) -> frozenset[tuple[int, int]]:
    """The turn that the caller is in, as session and number: the last one of the session that it named itself by.

    Empty where it named none, or an id that nobody has, or sessions of several projects and it is of none of them;
    two where its project has the session from two sources.
    """
    if caller.session is None:
        return frozenset()
    fitting = sessions_with_id(store, caller.session)
    if caller.project is not None:
        path = os.path.realpath(caller.project)
        fitting = [session for session in fitting if session.project.path == path] or fitting
    if len({session.project.id for session in fitting}) > 1:
        return frozenset()
    return frozenset((session.id, session.turns) for session in fitting if session.turns)
