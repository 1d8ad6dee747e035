"""The loop that ties the write side together: look, read, store, index.

One thread writes. It takes live changes first, and in between works through what a look at the folders
found, in slices short enough that a live change never waits long. What a first scan or a rebuild finds goes
to the index folder `bulk`, whose commits run beside it; everything else goes to `live`.
"""

import logging
import os
import sqlite3
import time
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path

import orjson

from indexer.backlog import Backlog
from indexer.commands import Commands
from indexer.cost import START_SECONDS, cost_of
from indexer.disk import DiskFloor
from indexer.folders import Folders
from indexer.follow import IndexFollower
from indexer.forget import Forgetting
from indexer.heads import Heads
from indexer.intake import Intake, Outcome, Taken
from indexer.lanes import BULK, LIVE
from indexer.lock import DataLock
from indexer.registries import Registries
from indexer.schedule import Schedule, Unit
from indexer.sources import sources_for
from indexer.sources.base import Root, Source, Transcript
from indexer.store.writer import StoreWriter
from indexer.survey import Survey, survey
from schemas.answers import Indexing
from schemas.errors import Unavailable
from schemas.settings import Settings, default_data_dir, resolved
from schemas.sources import CYDONIA
from schemas.texts import counted
from schemas.times import iso_utc

log = logging.getLogger(__name__)

COMMIT_SECONDS = 0.1
"""Live changes are collected this long at most, so that there are no more than ten commits a second."""

REREAD_SECONDS = 0.2
"""A record that is rewritten whole is read five times a second at most."""

UNSETTLED_SECONDS = 0.02
"""A whole record that was caught in a write is read again after this,"""

SETTLE_SECONDS = 2.1
"""and a torn last line when it has been quiet for as long as a source waits for its end."""

SLICE_SECONDS = 0.1
"""Work that can wait is done in slices of this length."""

SLICE_BYTES = 2_000_000
LIVE_COMMIT_BYTES = 30_000_000
"""Text that one commit of `live` takes at most."""

LIVE_SCAN_BYTES = 8_000_000
"""Changes that a look at the folders finds are live up to this size, and a scan of its own above it."""

RETRY_SECONDS = 5.0
"""What stands still or failed is tried again after this."""

CATCH_UP_SHARE = 0.5
"""While so much of the least that shall be free is free, what is stored is still indexed."""

PROGRESS_SECONDS = 0.5
QUIET_CHECKED = "quiet_checked_at"
"""When it was last looked for transcripts to which nobody writes any more: the next start goes on there."""


class Pipeline:
    """All of the write side, for one thread that calls `look` and then `step` again and again."""

    def __init__(self, settings: Settings, *, is_brief: bool = False) -> None:
        """`is_brief`: whether it is for a moment only, in which nothing is begun to be forgotten.

        Raises:
            Held: another process writes to the data directory.
            Unavailable: store or index cannot be opened.
        """
        self._settings = settings
        self._data_dir = resolved(settings.data_dir)
        self.sources = sources_for(settings)
        self.schedule = Schedule()
        with ExitStack() as opened:
            self._lock = DataLock(self._data_dir)
            opened.callback(self._lock.release)
            if self._data_dir == resolved(default_data_dir()):
                # Ours alone, whoever made it; a directory that was named may hold other things.
                self._data_dir.chmod(0o700)
            self._store = StoreWriter(self._data_dir)
            opened.callback(self._store.close)
            self._follower = IndexFollower(self._data_dir, self._store, self.schedule.wake)
            self.commands = Commands(self._store)
            self._forgetting = Forgetting(
                self._data_dir,
                self._store,
                self.commands,
                self.schedule.wake,
                keeps_deleted=settings.history.keep_deleted,
                is_brief=is_brief,
            )
            opened.pop_all()  # `close` sees to them from here on
        self._registries = Registries(self._store, self._data_dir / "scratch")
        self._intake = Intake(self._store, self._registries.read)
        self._heads = Heads(self._store, self._intake)
        self._backlog = Backlog()
        self._is_first_scan = self._store.meta("scanned_at") is None
        self._last_live_commit = self._last_progress = 0.0
        self._is_live_behind = False
        """Whether more is due for `live` than one commit takes."""
        self._has_looked = False
        """Whether it was looked through folders since it was last asked what forgotten sessions left behind."""
        self._disk = DiskFloor(self._data_dir, settings.limits)
        self._folders = Folders(self.sources)
        self._titles_read: dict[str, list[tuple[int, int, int] | None]] = {}
        """By source, the signatures of its state files when its titles were compared last."""
        self.indexing: Indexing | None = None
        if not self.is_ready:
            # From the beginning on, as nobody shall take what is not looked at yet for all that there is.
            self.indexing = Indexing(0, 0, 0, 0)
            self._write_progress()

    # Looking.

    def look(self, only: Collection[Path] | None = None) -> Survey:
        """Look through the folders, all or those named, and plan what is to be read."""
        if only is None:
            self._follower.check()
        self._has_looked = True
        total = Survey()
        new: list[tuple[Source, Transcript]] = []
        checked_ms = _now_ms()
        before_ms = self._store.meta(QUIET_CHECKED) or checked_ms
        self._refresh_roots()
        for source in self.sources:
            found = survey(self._store, source, self._folders.of(source, only), (before_ms, checked_ms))
            total.files += found.files
            total.bytes += found.bytes
            total.changed += found.changed
            total.cost += found.cost
            new += [(source, transcript) for transcript in found.changed]
            self.schedule.add(Unit(source, one.root, one.path) for one in found.went_quiet)
        if self._is_first_scan or sum(transcript.size for _, transcript in new) > LIVE_SCAN_BYTES:
            self._plan_scan(new)
        else:
            self._heads.add(new, LIVE)
            self.schedule.add(Unit(source, transcript.root, transcript.path) for source, transcript in new)
        with self._store.transaction():
            self._store.part_from_the_gone()
        self._read_retitled()
        if only is None:
            with self._store.transaction():
                self._store.set_meta(QUIET_CHECKED, checked_ms)
        return total

    def _refresh_roots(self) -> None:
        self._folders.refresh()
        with self._store.transaction():
            for source in self.sources:
                self._store.files.forget_roots(source.name, [root.path for root in self._folders.of(source)])
                listed = source.listed_projects()
                if listed is not None:
                    self._store.projects.set_listed(listed)
        for source, root in self.roots:
            if source.name == CYDONIA and root.project is not None:
                self._registries.read(root.project)

    def _plan_scan(self, new: list[tuple[Source, Transcript]]) -> None:
        is_begun = bool(self._backlog)
        new = self._backlog.add(new)
        self._heads.add(new, BULK)
        if not new:
            return
        cost = cost_of(new)
        if cost.raw_bytes > LIVE_SCAN_BYTES:
            self._follower.expect_much()
        if self._is_first_scan and not is_begun:
            log.info(
                "found %s, %.1f MB; store and index will take about %.1f MB of disk and %.0f s",
                *(counted(len(new), "transcript"), cost.raw_bytes / 1e6, cost.disk_bytes / 1e6),
                START_SECONDS + cost.seconds,
            )

    def _read_retitled(self) -> None:
        """Plan to read transcripts whose titles stand beside them and are others now than when they were read."""
        for source in self.sources:
            signature = [_signature(file) for file in source.state_files()]
            if signature == self._titles_read.get(source.name):
                continue
            self._titles_read[source.name] = signature
            titles = source.titles()
            paths = self._store.files.titled_otherwise(source.name, titles) if titles else []
            units = (self._folders.unit_at(Path(os.fsdecode(path))) for path in paths)
            self.schedule.add(unit for unit in units if unit is not None)

    def changed(self, paths: Collection[Path]) -> bool:
        """Plan to read what may have changed; whether it takes a look through the folders to know."""
        units, needs_look = self._folders.units_of(paths)
        self.schedule.add(units)
        return needs_look

    @property
    def roots(self) -> list[tuple[Source, Root]]:
        """The folders of all sources, those included that are not there."""
        return self._folders.roots

    # Reading.

    def step(self) -> bool:
        """Do a slice of what is to be done; whether there was anything.

        Nothing is lost where it fails: what was not stored is read again, what was not indexed is put again.
        """
        has_accepted = self.commands.accept()
        if not self._has_room():
            has_moved = self._step_stored()
            self._note_progress()
            return has_accepted or has_moved
        return (
            has_accepted
            or self._step_live()
            or self._step_heads()
            or self._step_forget()
            or self._step_backlog()
            or self._step_bulk()
        )

    def step_commands(self) -> bool:
        """Do a slice of what commands ask for, and nothing else; whether there was anything.

        Raises:
            Unavailable: there is no room on the disk.
        """
        if self.commands.accept():
            return True
        if not self._has_room():
            raise Unavailable(str(self.stands_still))
        has_moved = self._step_forget()
        if self.forgetting_waits_for is not None:
            raise Unavailable(f"{self.forgetting_waits_for}; the next start goes on with it")
        return has_moved

    @property
    def forgetting_waits_for(self) -> str | None:
        """What it takes to go on forgetting, in words, where that is not only time."""
        return self._forgetting.waits_for

    def _step_forget(self) -> bool:
        if not self._heads.are_due and not self._backlog and self.schedule.next_due() is None:
            if self._forgetting.note_gone():
                return True
            if self._has_looked and not self.commands.are_open:
                self._has_looked = False
                if self._forgetting.note_left_behind():
                    return True
        has_moved, self._follower = self._forgetting.step(self._follower)
        return has_moved

    def _step_live(self) -> bool:
        if time.monotonic() < self._last_live_commit + COMMIT_SECONDS:
            return False
        self._registries.step()
        for unit in self.schedule.pop_due():
            self._read_unit(unit)
        return self._commit_live()

    def _commit_live(self) -> bool:
        handed = self._follower.put_live(LIVE_COMMIT_BYTES)
        self._is_live_behind = handed >= LIVE_COMMIT_BYTES
        if not handed and not self._store.contents.removed_chunks():
            return False
        self._follower.commit_live()
        self._last_live_commit = time.monotonic()
        return True

    def _read_unit(self, unit: Unit) -> None:
        transcript = _transcript(unit)
        if transcript is None:
            return
        if unit.source.is_whole_record:
            self.schedule.hold(unit.path, REREAD_SECONDS)
        taken = self._take(unit.source, transcript, LIVE)
        if taken.outcome is Outcome.UNSETTLED:
            if unit.source.is_whole_record:
                self.schedule.hold(unit.path, UNSETTLED_SECONDS)
            self.schedule.add([unit], UNSETTLED_SECONDS if unit.source.is_whole_record else SETTLE_SECONDS)
        if unit.source.name == CYDONIA and taken.project is not None:
            self._registries.expect(taken.project)

    def _take(self, source: Source, transcript: Transcript, lane: int) -> Taken:
        taken = self._intake.take(source, transcript, lane, _now_ms())
        if taken.outcome is Outcome.READ:
            self._heads.note_read(source, transcript)
        return taken

    def _step_heads(self) -> bool:
        if not self._heads.step(SLICE_SECONDS):
            return False
        self._note_progress()
        return True

    def _step_backlog(self) -> bool:
        if not self._backlog or self._follower.is_bulk_far_behind:
            return False
        until = time.monotonic() + SLICE_SECONDS
        is_over = False
        while self._backlog and not is_over:
            source, transcript = self._backlog.pop()
            taken = self._take(source, transcript, BULK)
            if taken.outcome is Outcome.UNSETTLED:
                self.schedule.add([Unit(source, transcript.root, transcript.path)], UNSETTLED_SECONDS)
            is_over = time.monotonic() >= until
        self._follower.step_bulk(SLICE_BYTES, is_last=not self._backlog)
        self._note_progress()
        return True

    def _step_bulk(self) -> bool:
        if self._follower.step_bulk(SLICE_BYTES, is_last=True):
            self._note_progress()
            return True
        if self._follower.is_bulk_due:
            return False  # the process that does it wakes the loop
        if self._is_first_scan:
            # What was caught in a write may still wait, as it does at any time.
            self._is_first_scan = False
            self._note_scanned()
            self._note_progress()
            return True
        self._note_progress()
        return False

    @property
    def is_catching_up(self) -> bool:
        """Whether reading stands still, and what was stored before is still being made findable.

        That takes little room, as a scan never stores far ahead of the index: some 200 MB at most. An index that
        is made anew may take any amount, and waits.
        """
        has_some_room = self.stands_still is not None and self._disk.free_share >= CATCH_UP_SHARE
        return has_some_room and not self._follower.is_rebuilding and self._follower.is_due

    def _step_stored(self) -> bool:
        """Have what is stored found, and read no more; whether there was anything."""
        if not self.is_catching_up:
            return False
        return self._commit_live() or self._follower.step_bulk(SLICE_BYTES, is_last=True)

    # How it stands.

    @property
    def is_held(self) -> bool:
        """Whether the data directory is still there, and this process the one that writes to it."""
        return self._lock.is_ours()

    @property
    def is_ready(self) -> bool:
        """Whether the first scan is done and no rebuild is under way."""
        return not self._is_first_scan and not self._follower.is_rebuilding

    def waiting_since(self, source: str) -> float | None:
        """Since when the longest waiting transcript of a source waits, on the monotonic clock."""
        times = (self.schedule.waiting_since(source), self._backlog.waiting_since(source))
        return min((time_ for time_ in times if time_ is not None), default=None)

    @property
    def are_heads_due(self) -> bool:
        """Whether heads are to be read, before the content of what a look found is."""
        return self._heads.are_due

    @property
    def is_idle(self) -> bool:
        """Whether all that was found is stored and can be searched."""
        return (
            not self._backlog
            and not self.are_heads_due
            and not self.commands.are_open
            and not self._follower.is_bulk_due
            and not self._is_live_behind
            and self._follower.is_open
            and self.schedule.next_due() is None
        )

    def next_due(self) -> float | None:
        """When `step` has something to do again, on the monotonic clock; None: when something changes."""
        if self.stands_still:
            return time.monotonic() + RETRY_SECONDS
        dues = [self._registries.next_due(), self.schedule.next_due(), self._forgetting.next_due()]
        if self._is_live_behind or not self._follower.is_open:
            dues.append(0.0)
        first = min((due for due in dues if due is not None), default=None)
        return None if first is None else max(first, self._last_live_commit + COMMIT_SECONDS)

    @property
    def age(self) -> str:
        """Of when the index is, in words."""
        if self._follower.is_rebuilding:
            return "being rebuilt"
        scanned_at = self._store.meta("scanned_at")
        return "not complete yet" if scanned_at is None else f"of {iso_utc(scanned_at)}"

    def note_look_done(self) -> None:
        """Everything that a look found is stored: the index is as fresh as that look."""
        if not self._is_first_scan:
            self._note_scanned()

    def _note_scanned(self) -> None:
        with self._store.transaction():
            self._store.set_meta("scanned_at", _now_ms())

    def _note_progress(self) -> None:
        """Tell readers, in this process and others, how far a first scan or rebuild is."""
        now = time.monotonic()
        if self.is_ready:
            if self.indexing is not None or self._store.meta("progress") is not None:
                self.indexing = None
                self._write_progress()
            return
        if now - self._last_progress < PROGRESS_SECONDS:
            return
        self._last_progress = now
        self.indexing = self._backlog.progress()
        self._write_progress()

    def _write_progress(self) -> None:
        with self._store.transaction():
            self._store.set_meta("progress", None if self.indexing is None else orjson.dumps(self.indexing))

    @property
    def stands_still(self) -> str | None:
        """Why nothing new is stored, in words, where there is no room on the disk."""
        return self._disk.stands_still

    def _has_room(self) -> bool:
        if self._disk.is_check_due:
            if not self._lock.is_ours():
                raise Unavailable(f"the data directory {self._data_dir} was removed or replaced; start turndex again")
            self._disk.check()
        return self.stands_still is None

    def close(self) -> None:
        """Commit what is stored, and let go of the data directory."""
        try:
            # What is due for `bulk` may be much: the next start goes on with it.
            self._commit_live()
            self._follower.finish_bulk()
            if self.indexing is not None:
                # Nobody goes on with it now.
                self.indexing = None
                self._write_progress()
        except (ValueError, sqlite3.Error, Unavailable) as error:
            log.error("the index could not be written at the end, the next start goes on: %s", error)
        finally:
            self.commands.close()
            self._forgetting.close()
            self._follower.close()
            self._store.close()
            self._lock.release()


def _transcript(unit: Unit) -> Transcript | None:
    try:
        found = unit.path.stat()
    except OSError:
        return None
    return Transcript(str(unit.path), unit.root, found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev)


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
