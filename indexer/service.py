"""The write side as others use it: index once, bring up to date in a moment, or follow until told to stop."""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from indexer.commands import Done, Forgotten, Order, Progress, Refused, Ticket
from indexer.lock import Held
from indexer.pipeline import RETRY_SECONDS, Pipeline
from schemas.answers import Indexing
from schemas.errors import TurndexError, Unavailable
from schemas.settings import Settings

log = logging.getLogger(__name__)

LOOK_SHARE = 10
"""Events make it look through the folders as often as leaves it nine tenths of the time for other work."""

NOTHING_FOUND = "found no transcripts yet (looked in: %s); to see it at work: turndex serve --demo"

POLL_SECONDS = 1.0
"""How often the folders are looked through where events do not come."""


@dataclass(frozen=True, slots=True)
class LiveStatus:
    """What only the process that writes knows."""

    is_ready: bool
    """Whether the first scan is done, no rebuild is under way, and nothing stands still or fails."""
    indexing: Indexing | None
    lag_ms: dict[str, int]
    """By source: how long the oldest change that is not stored yet has been waiting."""
    notes: list[str]


def index_once(settings: Settings, progress: Callable[[Indexing], None]) -> None:
    """Bring everything up to date, telling about twice a second how far it is.

    Raises:
        Held: another process writes to the data directory.
        TurndexError: store or index cannot be opened, or the disk is full.
    """
    pipeline = Pipeline(settings)
    try:
        pipeline.look()
        _run_dry(pipeline, progress)
        pipeline.note_look_done()
    finally:
        pipeline.close()


def carry_out(settings: Settings, order: Order, tell: Callable[[str], None]) -> Forgotten:
    """Have a command carried out in this process, and whatever was left of earlier ones.

    Raises:
        Held: another process writes to the data directory.
        TurndexError: it was refused, store or index cannot be opened, or the disk is full.
    """
    pipeline = Pipeline(settings)
    try:
        ticket = pipeline.commands.submit(order)
        while True:
            has_moved = pipeline.step_commands()
            for news in ticket.heard():
                if isinstance(news, Done):
                    return news.answer
                if isinstance(news, Refused):
                    raise news.error
                if isinstance(news, Progress):
                    tell(news.says)
            if not has_moved:
                pipeline.schedule.wait(pipeline.next_due())
    finally:
        pipeline.close()


def _run_dry(pipeline: Pipeline, progress: Callable[[Indexing], None], until: float | None = None) -> bool:
    """Do all that there is to do, or stop where that takes to a time on the monotonic clock; whether all is done."""
    told = None
    while True:
        if pipeline.step():
            if pipeline.indexing is not None and pipeline.indexing is not told:
                told = pipeline.indexing
                progress(told)
            if until is not None and time.monotonic() >= until:
                return False
        elif pipeline.is_idle and pipeline.is_ready:
            return True
        elif pipeline.stands_still and not pipeline.is_catching_up:
            raise Unavailable(pipeline.stands_still)
        elif pipeline.forgetting_waits_for:
            raise Unavailable(pipeline.forgetting_waits_for)
        else:
            due = pipeline.next_due()
            if until is not None and due is not None and due >= until:
                return False
            pipeline.schedule.wait(due)


def bring_up_to_date(settings: Settings, budget_s: float) -> str | None:
    """Index what is new if that takes less than a budget; else a sentence that says how old the index is.

    None where everything is up to date, or another process sees to that.
    """
    until = time.monotonic() + budget_s
    try:
        pipeline = Pipeline(settings, is_brief=True)
    except Held:
        return None
    try:
        if pipeline.commands.are_open:
            return f"the index is {pipeline.age}; forgetting was begun and is not finished; run: turndex index"
        found = pipeline.look()
        if found.cost.seconds > budget_s:
            newer = f"{len(found.changed)} transcripts ({found.cost.raw_bytes / 1e6:.1f} MB) are newer"
            return f"the index is {pipeline.age}; {newer}; run: turndex index"
        if not _run_dry(pipeline, lambda _: None, until):
            why = pipeline.stands_still or "what is being written now is not all in it; run: turndex index"
            return f"the index is {pipeline.age}; {why}"
        pipeline.note_look_done()
    except Unavailable as stopped:
        return f"the index is {pipeline.age}; {stopped.detail}"
    finally:
        pipeline.close()
    return None


class Indexer:
    """Follows the sources in the background, until it is stopped."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._is_stopping = False
        self._needs_look = True
        self._failure: str | None = None

    def start(self) -> None:
        """
        Raises:
            Held: another process writes to the data directory.
            Unavailable: store or index cannot be opened.
        """
        from indexer.watch import Watcher  # with asyncio, which a command that only looks once does without

        self._pipeline = Pipeline(self._settings)
        self._watcher: Watcher = Watcher(self._on_change, self._on_restart)
        self._thread = threading.Thread(target=self._run, name="turndex-indexer")
        self._thread.start()

    def stop(self) -> None:
        """Commit what is stored and let go of the data directory."""
        self._is_stopping = True
        self._pipeline.schedule.wake()
        self._thread.join()

    def submit(self, order: Order) -> Ticket:
        """Have a command carried out; the ticket tells how that goes."""
        ticket = self._pipeline.commands.submit(order)
        self._pipeline.schedule.wake()
        return ticket

    def status(self) -> LiveStatus:
        pipeline, now = self._pipeline, time.monotonic()
        lag_ms = {}
        for source in pipeline.sources:
            since = pipeline.waiting_since(source.name)
            lag_ms[source.name] = 0 if since is None else int((now - since) * 1000)
        notes = [
            note
            for note in (
                pipeline.stands_still,
                pipeline.forgetting_waits_for,
                self._failure,
                self._watcher.failure
                and f"folders are looked through every second, watching failed: {self._watcher.failure}",
            )
            if note
        ]
        is_ready = pipeline.is_ready and pipeline.stands_still is None and self._failure is None
        return LiveStatus(is_ready, pipeline.indexing, lag_ms, notes)

    def _on_change(self, paths: Collection[Path]) -> None:
        if self._pipeline.changed(paths):
            self._on_restart()

    def _on_restart(self) -> None:
        self._needs_look = True
        self._pipeline.schedule.wake()

    def _run(self) -> None:
        pipeline = self._pipeline
        next_look = earliest_look = paused_until = 0.0
        has_looked = False
        is_first = True
        try:
            while not self._is_stopping:
                if not pipeline.is_held:
                    self._failure = "the data directory was removed or replaced; restart the server"
                    log.error(self._failure)
                    return
                began = time.monotonic()
                if began < paused_until:
                    pipeline.schedule.wait(paused_until)
                    continue
                try:
                    if self._needs_look and next_look > earliest_look:
                        next_look = earliest_look
                    if began >= next_look:
                        self._needs_look = has_looked = False
                        watched = self._folders()
                        self._watch(*watched)
                        found = pipeline.look()
                        if self._folders() != watched:
                            self._needs_look = True  # a folder was made meanwhile, of which no event told
                        if is_first and not found.files:
                            log.warning(NOTHING_FOUND, ", ".join(str(root.path) for _, root in pipeline.roots))
                        is_first = False
                        took = time.monotonic() - began
                        next_look = began + self._rescan_seconds()
                        earliest_look = began + took * LOOK_SHARE
                    if pipeline.step():
                        continue
                    if not has_looked and pipeline.is_idle:
                        has_looked = True
                        pipeline.note_look_done()
                    self._failure = None
                except (OSError, ValueError, sqlite3.Error, TurndexError) as error:
                    # A full disk, a folder that went, an index that could not be written: all is done again later.
                    log.exception("indexing failed, it is tried again in %.0f s", RETRY_SECONDS)
                    self._failure = f"indexing failed, it is tried again: {error}"
                    self._needs_look = True
                    paused_until = time.monotonic() + RETRY_SECONDS
                    continue
                due = pipeline.next_due()
                pipeline.schedule.wait(next_look if due is None else min(due, next_look))
        finally:
            if not self._is_stopping and pipeline.is_held:
                self._failure = "indexing has ended by a fault of ours, described in the log; restart the server"
            self._watcher.stop()
            pipeline.close()

    def _rescan_seconds(self) -> float:
        indexing = self._settings.indexing
        return POLL_SECONDS if self._watcher.failure or indexing.force_polling else indexing.rescan_seconds

    def _watch(self, deep: set[Path], flat: set[Path]) -> None:
        """Watch what the sources name now: before the look, so that nothing falls between the two."""
        if not self._settings.indexing.force_polling:
            self._watcher.watch(deep, flat)

    def _folders(self) -> tuple[set[Path], set[Path]]:
        """The folders that hold what the sources name now: with all below them, and by themselves."""
        pipeline = self._pipeline
        deep, flat = set[Path](), set[Path]()
        for source in pipeline.sources:
            for file in source.state_files():
                flat.add(_nearest_folder(file.parent))
            for root in source.roots():
                if os.path.isdir(root.path):
                    (deep if root.is_recursive else flat).add(root.path)
                else:
                    flat.add(_nearest_folder(root.path))
        return deep, flat


def _nearest_folder(path: Path) -> Path:
    """The folder itself, or the nearest one above it that exists: where it will show up once it is made."""
    while not os.path.isdir(path):
        path = path.parent
    return path
