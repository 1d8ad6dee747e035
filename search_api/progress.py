"""How far an indexing run is: a bar on a terminal, lines elsewhere, both on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from schemas.answers import Indexing
from search_api.log import log_to_stderr
from search_api.terminal import write_note

LINE_EVERY_PERCENT = 10


@contextmanager
def shown_progress() -> Iterator[Callable[[Indexing], None]]:
    """Yields what is to be told how far it is; the log goes to standard error as well."""
    if sys.stderr.isatty():
        with _bar() as tell:
            yield tell
    else:
        log_to_stderr("%(message)s")
        yield _Lines().tell


@contextmanager
def _bar() -> Iterator[Callable[[Indexing], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        # From here on standard error is rich's, which keeps the log's lines above the bar.
        log_to_stderr("%(message)s")
        task = progress.add_task("looking for transcripts", total=None)

        def tell(indexing: Indexing) -> None:
            description = f"{indexing.sessions_done:,} of {indexing.sessions_total:,} sessions"
            progress.update(task, description=description, total=indexing.bytes_total, completed=indexing.bytes_done)

        yield tell


class _Lines:
    """A line for every tenth of the bytes."""

    def __init__(self) -> None:
        self._next_percent = LINE_EVERY_PERCENT

    def tell(self, indexing: Indexing) -> None:
        percent = 100 * indexing.bytes_done // indexing.bytes_total if indexing.bytes_total else 100
        if percent >= self._next_percent:
            self._next_percent = percent - percent % LINE_EVERY_PERCENT + LINE_EVERY_PERCENT
            write_note(f"{percent} %: {indexing.sessions_done:,} of {indexing.sessions_total:,} sessions")
