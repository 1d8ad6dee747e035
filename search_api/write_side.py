"""The little that the doors ask of the indexer: bring up to date, index once, and index while serving."""

import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from schemas.answers import Indexing, StatusAnswer
from schemas.errors import Unavailable
from schemas.settings import Settings, resolved
from search_api.address import read_address
from search_api.archive import Archive
from search_api.version import VERSION

if TYPE_CHECKING:
    from indexer.commands import Forgotten

BRING_UP_TO_DATE_SECONDS = 1.0
"""How long a search or a read without a server may first look for what is new."""


def bring_up_to_date(settings: Settings) -> str | None:
    """Index what is new if that is quickly done; else a sentence that says how old the index is."""
    from indexer.service import bring_up_to_date

    try:
        return bring_up_to_date(settings, budget_s=BRING_UP_TO_DATE_SECONDS)
    except OSError as error:
        # Reading works all the same, of what is indexed already.
        return _unwritable(settings, error).detail


def index_once(settings: Settings, progress: Callable[[Indexing], None]) -> None:
    """Bring everything up to date, telling now and then how far it is.

    Raises:
        Unavailable: another process writes to the data directory, or it cannot be written.
    """
    from indexer.lock import Held
    from indexer.service import index_once

    try:
        index_once(settings, progress)
    except Held as held:
        raise _held(settings, held.holder) from held
    except OSError as error:
        raise _unwritable(settings, error) from error


def forget(settings: Settings, sessions: Sequence[int], tell: Callable[[str], None]) -> "Forgotten":
    """Forget sessions, given by their keys in the store; the server does, or where there is none this process.

    Raises:
        TurndexError: it was refused, or cannot be done now.
    """
    from indexer.commands import Forget, Order
    from indexer.lock import Held
    from indexer.service import carry_out
    from search_api.control import ask_server

    order = Order(id=uuid.uuid4().hex, command=Forget(sessions=tuple(sessions)))
    answer = ask_server(resolved(settings.data_dir), order, tell)
    if answer is not None:
        return answer
    try:
        return carry_out(settings, order, tell)
    except Held as held:
        raise _held(settings, held.holder) from held
    except (OSError, ValueError, sqlite3.Error) as error:
        raise Unavailable(f"it cannot be finished now: {error}; the next start goes on with what was begun") from error


@contextmanager
def indexing(settings: Settings, *, is_on_demand: bool = False) -> Iterator[Callable[[Archive], StatusAnswer]]:
    """Follow the sources, and take commands at the control socket, until the block ends.

    Yields what tells the status of an archive meanwhile. Unless it is on demand itself, it takes the place of a
    server that was started on demand.

    Raises:
        Unavailable: another process writes to the data directory, or it cannot be written.
    """
    from indexer.lock import Held
    from indexer.service import Indexer
    from search_api.control import listening_for_commands
    from search_api.on_demand import displacing

    indexer = Indexer(settings)
    try:
        if is_on_demand:
            indexer.start()
        else:
            displacing(settings.data_dir, indexer.start)
    except Held as held:
        raise _held(settings, held.holder) from held
    except OSError as error:
        raise _unwritable(settings, error) from error
    started = time.monotonic()

    def status(archive: Archive) -> StatusAnswer:
        live, stored = indexer.status(), archive.status()
        return replace(
            stored,
            version=VERSION,
            uptime_s=round(time.monotonic() - started, 3),
            is_ready=live.is_ready,
            indexing=live.indexing,
            sources=[replace(source, lag_ms=live.lag_ms.get(source.source, 0)) for source in stored.sources],
            notes=live.notes,
        )

    try:
        with listening_for_commands(resolved(settings.data_dir), indexer.submit):
            yield status
    finally:
        indexer.stop()


def _held(settings: Settings, holder: dict[str, object]) -> Unavailable:
    """Who writes to the data directory; a server is named with its URL."""
    pid = holder.get("pid")
    address = read_address(settings.data_dir)
    url = holder.get("url") or (address.url if address is not None and address.pid == pid else None)
    who = f"process {pid}" if url is None else f"the server at {url} (process {pid})"
    return Unavailable(f"{who} already writes to {settings.data_dir}; searching and reading work beside it")


def _unwritable(settings: Settings, error: OSError) -> Unavailable:
    return Unavailable(f"cannot index into {settings.data_dir}: {error.strerror or error}")
