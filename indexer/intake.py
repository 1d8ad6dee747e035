"""One transcript into the store: what is new in it, under the session that it is."""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from indexer.sources.base import (
    Append,
    Part,
    SessionFacts,
    Side,
    Skipped,
    Source,
    Transcript,
    Unreadable,
    Unsettled,
    Waiting,
)
from indexer.store.chunks import item_of, row_of
from indexer.store.files import KnownFile
from indexer.store.forgotten import Forgotten
from indexer.store.writer import StoreWriter
from schemas.items import Item, Layer

log = logging.getLogger(__name__)


class Outcome(Enum):
    """How reading a transcript ended."""

    READ = "read"
    UNSETTLED = "unsettled"
    """Caught in a write: to be read again soon."""
    FAILED = "failed"
    """Not to be read now; the next look at the folders tries again."""


@dataclass(frozen=True, slots=True)
class Taken:
    outcome: Outcome
    chunks: int = 0
    """Chunks written."""
    session: int | None = None
    project: Path | None = None


class Head(NamedTuple):
    """What the head of a transcript says."""

    source: Source
    transcript: Transcript
    facts: SessionFacts
    lane: int
    """That of what will be read of it."""

    def order(self) -> tuple[bool, int, str, str, bytes]:
        """The oldest start first; the rest decides among those that do not differ in it."""
        at_ms = self.facts.started_ms
        return at_ms is None, at_ms or 0, self.source.name, self.facts.key, os.fsencode(self.transcript.file)


class Intake:
    """Reads transcripts and stores what they say. Used by the thread that writes the store."""

    def __init__(self, store: StoreWriter, learn_numbers: Callable[[Path], None]) -> None:
        """`learn_numbers` reads the registry of a project: our own numbers keep out of the way of its."""
        self._store = store
        self._forgotten = Forgotten(store)
        self._learn_numbers = learn_numbers
        self._projects: dict[int, Path] = {}
        """By session, the project that its transcript named last."""

    def take(self, source: Source, transcript: Transcript, lane: int, now_ms: int) -> Taken:
        """Bring the session of a transcript up to it; each part of it is one transaction."""
        known = self._store.files.known(source.name, transcript.path)
        since = known.checkpoint if known else None
        kept = known.session if known and not self._forgotten.is_of(known) else None
        taken = Taken(Outcome.READ, session=kept)
        is_first = True
        try:
            for part in source.read(transcript, since):
                if taken.session is None:
                    first = _first_item(part)
                    gone = self._forgotten.covering(source.name, part.facts, first, known)
                    if gone is not None or self._forgotten.has_parent_of(source.name, part.facts):
                        with self._store.transaction():
                            gone = gone or self._forgotten.bury_unread(source.name, part.facts, first)
                            self._store.files.put(source.name, transcript, gone, None)
                        return taken
                self._learn(part.facts.project, taken.session)
                is_from_start = part.is_from_start or (is_first and (since is None or source.is_whole_record))
                with self._store.transaction():
                    session, chunks = self._put(source, transcript, taken.session, part, lane)
                    self._store.files.put_skipped(
                        source.name, transcript.path, part.skipped, is_from_start=is_from_start, now_ms=now_ms
                    )
                taken = Taken(Outcome.READ, taken.chunks + chunks, session, part.facts.project)
                is_first = False
            if is_first:
                self._note(source, transcript, known)
            else:
                with self._store.transaction():
                    self._store.files.set_read(source.name, transcript)
        except Unsettled:
            return replace(taken, outcome=Outcome.UNSETTLED)
        except Waiting as waiting:
            with self._store.transaction():
                self._store.files.put_skipped(
                    source.name, transcript.path, waiting.skipped, is_from_start=True, now_ms=now_ms
                )
            self._note(source, transcript, known)
        except Unreadable as broken:
            self._count(source, transcript, Skipped(broken.reason), now_ms)
            self._note(source, transcript, known)
        except FileNotFoundError:
            return replace(taken, outcome=Outcome.FAILED)  # gone meanwhile: its folder says whether it was deleted
        except OSError as error:
            self._count(source, transcript, Skipped(f"cannot be read: {error.strerror or error}"), now_ms)
            return replace(taken, outcome=Outcome.FAILED)
        return taken

    def announce(self, heads: list[Head]) -> None:
        """Make sessions of one project known by the heads of their transcripts, before any content is read."""
        self._learn_numbers(heads[0].facts.project)
        with self._store.transaction():
            for source, transcript, facts, lane in heads:
                key = self._free_key(source, transcript, facts)
                if key is not None and not self._forgotten.may_be(source.name, facts) and not self._gone(source, facts):
                    session = self._store.put_session(source.name, facts, None, key=key, lane=lane)
                    self._store.files.put(source.name, transcript, session, None, is_read=False)

    def _free_key(self, source: Source, transcript: Transcript, facts: SessionFacts) -> str | None:
        """The key of the new session that a transcript is; None where it is that of one that is known, or may be."""
        known = self._store.session_with_key(source.name, facts.key)
        if known is None:
            return facts.key
        if self._have_gone(self._store.files.of_session(known)):
            return None
        key = _key_beside(facts.key, transcript)
        return key if self._store.session_with_key(source.name, key) is None else None

    def is_known(self, source: Source, transcript: Transcript) -> bool:
        """Whether it is known whose transcript it is."""
        return self._store.files.known(source.name, transcript.path) is not None

    def _learn(self, project: Path, session: int | None) -> None:
        """Learn a project's numbers where a session that is new, or in another project than before, may get one."""
        if session is None or self._projects.get(session) != project:
            self._learn_numbers(project)
        if session is not None:
            self._projects[session] = project

    def _put(
        self, source: Source, transcript: Transcript, session: int | None, part: Part, lane: int
    ) -> tuple[int, int]:
        key = part.facts.key
        if session is None:
            session, key = self._identify(source, transcript, part)
        else:
            key = self._store.key_of(session)
        session = self._store.put_session(source.name, part.facts, session, key=key, lane=lane)
        chunks = self._store.apply(session, part, lane)
        for side in part.sides:
            chunks += self._put_side(source, session, key, side, part.facts.key, lane)
        self._store.files.put(source.name, transcript, session, part.checkpoint, is_read=False)
        return session, chunks

    def _put_side(self, source: Source, session: int, key: str, side: Side, key_in_facts: str, lane: int) -> int:
        """Store what a transcript says of another session that lies in it, whose key begins with its own."""
        side_key = key + side.facts.key.removeprefix(key_in_facts)
        known = self._store.side(session, side.facts.session_id)
        if known is None:
            known = self._store.session_with_key(source.name, side_key)
        if known is None and self._forgotten.may_be(source.name, replace(side.facts, key=side_key)):
            return 0
        known = self._store.put_session(source.name, side.facts, known, key=side_key, lane=lane)
        self._store.set_side(known, session)
        return self._store.apply(known, side, lane)

    def _identify(self, source: Source, transcript: Transcript, part: Part) -> tuple[int | None, str]:
        """The session that a file not seen before belongs to, None for a new one, and its key.

        A session whose own file is gone, or goes on in this one, has moved here; beside a live file with the
        same key this is another session.
        """
        key = part.facts.key
        session = self._store.session_with_key(source.name, key)
        if session is None:
            session = self._moved(source, part)
        elif not self._have_gone(self._going_on_in(part, self._store.files.of_session(session))):
            key = _key_beside(key, transcript)
            session = self._store.session_with_key(source.name, key)
        if session is not None:
            for old in self._store.files.of_session(session):
                self._store.files.forget(source.name, old.path)
        return session, key

    def _moved(self, source: Source, part: Part) -> int | None:
        """A session of the same id and beginning whose files are gone: its project's folder was moved."""
        found = [session for session in self._gone(source, part.facts) if self._begins_like(session, part)]
        return found[0] if len(found) == 1 else None

    def _gone(self, source: Source, facts: SessionFacts) -> list[int]:
        """Sessions of the same id whose files are gone, and so may have moved here."""
        return [
            session
            for session in self._store.sessions_with_id(source.name, facts.session_id)
            if (files := self._store.files.of_session(session)) and self._have_gone(files)
        ]

    def _begins_like(self, session: int, part: Part) -> bool:
        first = self._store.contents.first_item(session)
        return first is None or first == _first_item(part)

    def _going_on_in(self, part: Part, files: list[KnownFile]) -> list[KnownFile]:
        """The files but those whose session goes on in the one of this part."""
        superseded = {os.fsencode(path) for path in part.supersedes}
        return [file for file in files if file.path not in superseded]

    def _have_gone(self, files: list[KnownFile]) -> bool:
        return not any(os.path.lexists(file.path) for file in files)

    def _note(self, source: Source, transcript: Transcript, known: KnownFile | None) -> None:
        """Nothing to store, but the file as it is now was looked at."""
        with self._store.transaction():
            session = known.session if known else None
            self._store.files.put(source.name, transcript, session, known.checkpoint if known else None)
            if known is not None and known.is_gone and session is not None:
                self._store.set_back(session)

    def _count(self, source: Source, transcript: Transcript, skipped: Skipped, now_ms: int) -> None:
        with self._store.transaction():
            self._store.files.put_skipped(source.name, transcript.path, [skipped], is_from_start=False, now_ms=now_ms)


def _key_beside(key: str, transcript: Transcript) -> str:
    """The key of a session whose transcript lies beside a live one with the same key."""
    return f"{key}\n{os.fsencode(transcript.path).decode('utf-8', 'backslashreplace')}"


def _first_item(part: Part) -> Item | None:
    """The first item of the first turn's conversation, as the store answers it."""
    for change in part.changes:
        if isinstance(change, Append) and change.turn == 1 and change.first == 0:
            rows = (row_of(index, item, Layer.CONVERSATION) for index, item in enumerate(change.items))
            return next((item_of(row, Layer.CONVERSATION) for row in rows if row is not None), None)
    return None
