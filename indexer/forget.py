"""Carrying out `Forget`: until no file of the data directory holds the text of the sessions.

    accepted   the command is stored
    removed    rows are deleted, and tombstones written: no question finds them any more
    purged     the database is written anew without them, and its write-ahead log is cut
    replacing  an index and a vocabulary are made from what is left, in a folder of their own
    done       these are in use, and the folder before them is gone

Each step is noted in the transaction that ends it, and the next start goes on from there. Neither Tantivy's segments
nor the vocabulary can be told to drop a text for good, so that the index is made anew, at the cost of indexing all
that is left; searches go on over the old one meanwhile, in which what was removed is a candidate without a text.
"""

import logging
import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from indexer.commands import Commands, Forget, Forgotten, Order, Step
from indexer.follow import IndexFollower, drop_successor, has_successor, other_folders, remove_folder
from indexer.store import forgotten
from indexer.store.schema import STORE_FILE
from indexer.store.writer import StoreWriter
from schemas.texts import counted

log = logging.getLogger(__name__)

GONE_SECONDS = 60.0
"""How long a session must have been without a file to be forgotten where history is not kept."""

LOG_RETRY_SECONDS = 0.2
"""How soon the write-ahead log is cut again that a reader was still using."""

ROOM_RETRY_SECONDS = 5.0
"""How soon it is seen again whether there is room on the disk."""

SLICE_BYTES = 2_000_000

PURGE_SIZES = 2
"""Sizes of the store that writing it anew takes of the disk: in a temporary file, and in the write-ahead log."""


class Forgetting:
    """What is to be forgotten, step by step. For the thread that writes the store."""

    def __init__(
        self,
        data_dir: Path,
        store: StoreWriter,
        commands: Commands,
        wake: Callable[[], None],
        *,
        keeps_deleted: bool,
        is_brief: bool,
    ) -> None:
        """`wake` is called, by another thread, when there is more to do; `is_brief`: nothing is begun by itself."""
        self._data_dir = data_dir
        self._store = store
        self._commands = commands
        self._wake = wake
        self._keeps_deleted = keeps_deleted or is_brief
        self._is_brief = is_brief
        self._rows = forgotten.Forgotten(store)
        self._successor: IndexFollower | None = None
        self._is_written_anew = False
        self._retry_at: float | None = None
        self.waits_for: str | None = None
        """What it takes to go on, in words, where that is not only time."""

    def next_due(self) -> float | None:
        """When `step` has something to do, on the monotonic clock; None: when something changes."""
        if self._commands.are_open:
            return self._retry_at
        earliest = None if self._keeps_deleted else self._rows.earliest_deletion()
        if earliest is None:
            return None
        due_s = earliest / 1000 + GONE_SECONDS - time.time()
        # What is due and was not forgotten has a file again, which is about to be read.
        return time.monotonic() + (due_s if due_s > 0 else GONE_SECONDS)

    def note_gone(self) -> bool:
        """Where history is not kept: have forgotten what has had no file for a minute; whether there was any."""
        if self._keeps_deleted or self._commands.are_open:
            return False
        gone = self._rows.gone_since(int((time.time() - GONE_SECONDS) * 1000))
        if not gone:
            return False
        log.info("forgetting %s whose files are gone", counted(len(gone), "session"))
        self._commands.store(Order(id=uuid.uuid4().hex, command=Forget(sessions=tuple(gone), keeps_away=False)))
        return True

    def note_left_behind(self) -> bool:
        """Have forgotten what a forgotten session had started; whether there was any. See `Forgotten.left_behind`."""
        if self._is_brief or self._commands.are_open:
            return False
        left = self._rows.left_behind()
        if not left:
            return False
        log.info("forgetting %s of forgotten sessions", counted(len(left), "subagent"))
        self._commands.store(Order(id=uuid.uuid4().hex, command=Forget(sessions=tuple(left))))
        return True

    def step(self, index: IndexFollower) -> tuple[bool, IndexFollower]:
        """Go a step further beside the index in use; whether there was anything, and which is in use from now on.

        Raises:
            ValueError, OSError: the index could not be written, or an old one not removed: call again.
            Unavailable: the index can be neither opened nor made anew.
        """
        if not self._commands.are_open or (self._retry_at is not None and time.monotonic() < self._retry_at):
            return False, index
        self._retry_at = None
        self._remove()
        return self._replace(index) if self._purge() else (False, index)

    def _remove(self) -> None:
        for order in self._commands.at(Step.ACCEPTED):
            with self._store.transaction():
                sessions, turns = self._rows.remove(order.command.sessions, keeps_away=order.command.keeps_away)
                self._commands.answer(order, Forgotten(sessions=sessions, turns=turns))
                self._commands.advance([order], Step.REMOVED)
            self._is_written_anew = False
            self._commands.tell("removed; the store is written anew")

    def _purge(self) -> bool:
        """Whether nothing that was removed is in the bytes of the store any more."""
        orders = self._commands.at(Step.REMOVED)
        if not orders:
            return True
        # Copies of registries that a process left behind that was killed: titles of sessions stand in them.
        scratch = self._data_dir / "scratch"
        if scratch.is_dir():
            shutil.rmtree(scratch)
        if not self._is_written_anew:
            if not self._has_room():
                self._retry_at = time.monotonic() + ROOM_RETRY_SECONDS
                return False
            self._store.purge()
            self._is_written_anew = True
        if not self._store.empty_log():
            self._retry_at = time.monotonic() + LOG_RETRY_SECONDS
            return False
        with self._store.transaction():
            self._commands.advance(orders, Step.PURGED)
        return True

    def _has_room(self) -> bool:
        size = (self._data_dir / STORE_FILE).stat().st_size * PURGE_SIZES
        self.waits_for = None
        if shutil.disk_usage(self._data_dir).free < size:
            self.waits_for = f"forgetting waits until {size / 1e9:.1f} GB of the disk are free, to write the store anew"
            self._commands.tell(self.waits_for)
        return self.waits_for is None

    def _replace(self, index: IndexFollower) -> tuple[bool, IndexFollower]:
        is_begun = bool(self._commands.at(Step.REPLACING))
        if is_begun and not has_successor(self._store):
            self._finish()
            return True, index
        if not is_begun:
            drop_successor(self._store)
        if self._successor is None:
            self._successor = IndexFollower(self._data_dir, self._store, self._wake, is_successor=True)
        if not is_begun:
            with self._store.transaction():
                self._commands.advance(self._commands.at(Step.PURGED), Step.REPLACING)
        successor = self._successor
        if not is_begun or successor.step_bulk(SLICE_BYTES, is_last=True):
            self._commands.tell(f"the index is made anew from what is left: {successor.share_rebuilt():.0%}")
            return True, index
        if not successor.has_all_of(index):
            return False, index
        successor.take_over()
        self._successor = None
        index.close()
        return True, successor

    def _finish(self) -> None:
        for folder in other_folders(self._data_dir, self._store):
            remove_folder(folder)
        with self._store.transaction():
            self._commands.advance(self._commands.at(Step.REPLACING), Step.DONE)
        self._commands.tell_done()

    def close(self) -> None:
        """Let go of the index that is being made; the next start goes on with it."""
        if self._successor is not None:
            self._successor.close()
            self._successor = None
