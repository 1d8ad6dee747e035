"""The pass over the heads of new transcripts, of all sources, before their content is read.

It makes their sessions known and gives them their numbers: in each project the oldest start first, whichever source a
session is of. It is done in slices, as reading ten thousand heads takes seconds, and what is written meanwhile shall
be found. What is read meanwhile gets its number with all others of its project.
"""

import os
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from indexer.intake import Head, Intake
from indexer.sources.base import SessionFacts, Source, Transcript
from indexer.store.writer import StoreWriter

SOURCE_SECONDS = 30.0
"""The heads of one source are read for this long at most, so that no slow disk keeps all others from being read.

Sessions whose heads were not read get their numbers when their content is read.
"""

BATCH = 500
"""So many sessions are made known in one transaction."""


class Heads:
    """The heads that are to be read. For the thread that writes the store."""

    def __init__(self, store: StoreWriter, intake: Intake) -> None:
        self._store = store
        self._intake = intake
        self._waiting: list[tuple[Source, Transcript, int]] = []
        self._spent_s: dict[str, float] = {}
        """How long reading heads has taken in this pass, by source."""
        self._recorded: dict[tuple[str, Path], str] = {}
        """The agents' own sessions that records are about, by source and path of those that are not read yet."""
        self._expected: Counter[str] = Counter()
        """How many records of a session are not read yet; the store has this very one, to ask."""
        self._found: list[Head] = []
        """What was read, in no order."""
        self._batches: list[list[Head]] = []
        """What was read of each project, in the order in which it is stored: from the end."""
        self._projects: list[int] = []
        """The projects in which sessions are still to be numbered."""

    @property
    def are_due(self) -> bool:
        """Whether a pass is under way, in which sessions get no numbers one by one."""
        return not self._store.projects.mints_at_once

    def add(self, found: Iterable[tuple[Source, Transcript]], lane: int) -> None:
        """Have the heads of these read; `lane` is that of what will be read of them."""
        self._waiting += [(source, transcript, lane) for source, transcript in found]
        self._store.projects.mints_at_once = False

    def step(self, slice_s: float) -> bool:
        """Do a slice of what is to be done; whether there was anything."""
        if not self.are_due:
            return False
        until = time.monotonic() + slice_s
        while self.are_due:
            if self._waiting:
                self._read(*self._waiting.pop())
            elif self._found:
                self._put_in_order()
            elif self._batches:
                self._intake.announce(self._batches.pop())
            elif not self._number_project():
                self._store.projects.mints_at_once = True
                self._spent_s.clear()
            if time.monotonic() >= until:
                break
        return True

    def _read(self, source: Source, transcript: Transcript, lane: int) -> None:
        began = time.monotonic()
        spent_s = self._spent_s.setdefault(source.name, 0.0)
        if spent_s >= SOURCE_SECONDS:
            return
        facts = self._facts(source, transcript)
        self._spent_s[source.name] = spent_s + time.monotonic() - began
        if facts is not None:
            self._found.append(Head(source, transcript, facts, lane))

    def _facts(self, source: Source, transcript: Transcript) -> SessionFacts | None:
        try:
            recorded = source.recorded_session(transcript)
            if recorded is not None:
                self._recorded[source.name, transcript.path] = recorded
            return None if self._intake.is_known(source, transcript) else source.facts(transcript)
        except OSError:
            return None  # reading its content will tell

    def _put_in_order(self) -> None:
        """The order in which folders list their files shall not decide which session is called the first."""
        self._found.sort(key=Head.order)
        by_project: dict[Path, list[Head]] = {}
        for head in self._found:
            by_project.setdefault(head.facts.project, []).append(head)
        for heads in reversed(by_project.values()):
            starts = range(0, len(heads), BATCH)
            self._batches += [heads[start : start + BATCH] for start in reversed(starts)]
        self._found = []

    def _number_project(self) -> bool:
        """Give numbers in the next project that has sessions without one; whether there was one."""
        if not self._projects:
            self._expect_records()
            self._projects = self._store.projects.with_unnumbered()
        if not self._projects:
            return False
        with self._store.transaction():
            self._store.projects.mint_missing(self._projects.pop())
        return True

    def _expect_records(self) -> None:
        """What a record is about that is not read yet will be a twin, and takes no number."""
        self._recorded = {
            source_and_path: recorded
            for source_and_path, recorded in self._recorded.items()
            if os.path.lexists(source_and_path[1]) and not self._store.files.is_read(*source_and_path)
        }
        self._expected = Counter(self._recorded.values())
        self._store.projects.expect_records(self._expected)

    def note_read(self, source: Source, transcript: Transcript) -> None:
        """A transcript was read, or is none, or is forgotten: if a record was expected, it is told by now."""
        recorded = self._recorded.pop((source.name, transcript.path), None)
        if recorded is None:
            return
        self._expected[recorded] -= 1
        if self._expected[recorded] <= 0:
            del self._expected[recorded]
        with self._store.transaction():
            self._store.projects.number_unrecorded(recorded)
