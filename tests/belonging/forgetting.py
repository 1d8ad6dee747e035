"""Forgetting as the command does it: what is announced, what is reported."""

import uuid
from contextlib import closing

from indexer.commands import Forget, Order
from indexer.service import carry_out
from search_api.archive import Archive
from search_api.caller import Caller
from search_api.forgetting import told_beforehand
from tests.belonging.mixed import Mixed


def forget(mixed: Mixed, *named: str, deleted_before: str | None = None) -> tuple[list[str], tuple[int, int]]:
    """The lines that are shown beforehand, and how many sessions and turns were forgotten then."""
    with closing(Archive.open(mixed.settings())) as archive:
        doomed = archive.sessions_to_forget(named, deleted_before, None, Caller())
    command = Forget(sessions=tuple(one.session for one in doomed))
    done = carry_out(mixed.settings(), Order(id=uuid.uuid4().hex, command=command), lambda _: None)
    return told_beforehand(doomed), (done.sessions, done.turns)
