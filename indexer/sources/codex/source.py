"""Codex's threads: where they lie, and how one is read from the files that make it up.

What reads a file is imported once there is one to read: a search by itself mostly finds that all are as they were.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from indexer.decode import BadJson, decode_object
from indexer.files import opened
from indexer.sources.base import (
    Checkpoint,
    Part,
    Root,
    SessionFacts,
    Transcript,
    Unreadable,
    Unsettled,
    Waiting,
)
from indexer.sources.codex.directory import directory_among, find_directory
from indexer.sources.codex.header import Header, header_from_name, header_of
from indexer.sources.codex.home import Home, read_header, tail_of
from indexer.sources.codex.layers import BetterLayer
from indexer.sources.codex.names import FOLDERS, SESSIONS, RolloutName, is_archived, is_rollout, rollout_name
from indexer.sources.codex.reading import Link, Reading, links_of, restored, started_ms
from indexer.sources.codex.state import State
from indexer.sources.codex.titles import newest
from indexer.sources.codex.values import fields
from indexer.sources.files import holds

if TYPE_CHECKING:
    from indexer.sources.codex.rollout import Rollout

PART_BYTES = 4_000_000
"""How much of a file, of what matters in it, goes into one part."""

STALE_SECONDS = 86_400
"""A tool without an output runs no more where its file has been quiet for longer. Should one come, it counts."""

TEXT_SHARE = 0.2
"""Of a file's bytes; the rest are instructions, twins, pictures, and histories that were written once more."""

ZSTD_RATIO = 4
"""How much longer a compressed file is unpacked: from 1.6 times, where it is mostly pictures, to 22."""

_AGENT, _AGENT_ID = "Codex", "codex"


class CodexSource:
    """The threads of some Codex homes."""

    name: ClassVar[str] = "codex"
    is_whole_record: ClassVar[bool] = False
    quiet_seconds: ClassVar[int | None] = STALE_SECONDS

    def __init__(self, homes: Sequence[Path], usual_homes: Sequence[Path] = ()) -> None:
        """`homes` were named by the user, the usual ones are looked into if they are there."""
        named = list(dict.fromkeys(homes))
        self._homes = {path: Home(path) for path in dict.fromkeys((*named, *usual_homes))}
        self._roots = tuple(
            Root(path / folder, is_named=path in named and folder == SESSIONS)
            for path in self._homes
            for folder in FOLDERS
        )

    def roots(self) -> Sequence[Root]:
        return self._roots

    def state_files(self) -> Sequence[Path]:
        return [home.names.path for home in self._homes.values()]

    def listed_projects(self) -> Sequence[Path] | None:
        return None

    def transcripts(self, root: Root) -> Iterator[Transcript]:
        return self._home(root).transcripts(root)

    def owns(self, root: Root, path: Path) -> bool:
        return is_rollout(path.name) and self._home(root).is_current(path)

    def titles(self) -> Mapping[str, str]:
        return {thread: name for home in self._homes.values() for thread, name in home.names.all().items()}

    def text_bytes(self, transcript: Transcript) -> int:
        unpacked = transcript.size * (ZSTD_RATIO if transcript.file.endswith(".zst") else 1)
        return int(unpacked * TEXT_SHARE)

    def recorded_session(self, transcript: Transcript) -> str | None:
        return None

    def facts(self, transcript: Transcript) -> SessionFacts | None:
        name = rollout_name(transcript.path.name)
        if name is None:
            return None
        try:
            header = self._document_header(transcript, name) if name.is_document else self._header(transcript, name)
        except (Unreadable, BadJson):
            return None
        return None if header is None else self._facts(transcript, State(header=header))

    def _header(self, transcript: Transcript, name: RolloutName) -> Header | None:
        """What the first lines of a file say; None where it takes more of them to know the directory."""
        header = read_header(transcript.path, name)
        if header is None or header.cwd is None:
            directory, is_all = find_directory(transcript.path)
            if directory is None and (header is None or not is_all):
                return None
            header = header or header_from_name(name)
            header.cwd = directory
        if header.base is not None:
            header.started_ms = started_ms(self._home(transcript.root), header, name)
        return header

    def _document_header(self, transcript: Transcript, name: RolloutName) -> Header | None:
        if transcript.size > PART_BYTES:
            return None
        document = _document(transcript)
        header = header_of(fields(document.get("session")), name)
        items = document.get("items")
        header.cwd = header.cwd or (directory_among(map(fields, items)) if isinstance(items, list) else None)
        return header

    def read(self, transcript: Transcript, since: Checkpoint | None, *, settle_ms: int = 2000) -> Iterator[Part]:
        name = rollout_name(transcript.path.name)
        home = self._home(transcript.root)
        if name is None or not home.is_current(transcript.path):
            return
        if name.is_document:
            yield from self._read_document(transcript, name, since, settle_ms)
            return
        from indexer.sources.codex.rollout import HasBase

        reading = restored(since) or Reading([Link(name.rollout)])
        while True:
            try:
                yield from self._read_on(transcript, name, reading, settle_ms)
                return
            except BetterLayer:
                header = reading.state.header if reading.is_chained else None
                reading = Reading(reading.links, reading.is_chained, State(header, layers=reading.state.layers))
            except HasBase:
                assert reading.state.header is not None
                links = links_of(home, reading.state.header, name)
                reading = Reading(links, True, State(reading.state.header))
            except _Replaced:
                reading = Reading([Link(name.rollout)])

    def _read_on(self, transcript: Transcript, name: RolloutName, reading: Reading, settle_ms: int) -> Iterator[Part]:
        """Read the files that make up a thread, one after the other, from where it was left.

        Raises:
            BetterLayer, HasBase, _Replaced: begin anew, as the reading says now.
        """
        from indexer.sources.codex.rollout import Rollout

        home, state = self._home(transcript.root), reading.state
        for number in range(state.file, len(reading.links)):
            link, is_own = reading.links[number], number == len(reading.links) - 1
            rollout = Rollout(
                state,
                name,
                transcript.mtime_ns // 1_000_000,
                home.turn_ids,
                is_base=not is_own,
                is_foreign=link.is_foreign,
                end_ordinal=link.end_ordinal,
                is_chained=reading.is_chained,
            )
            path = transcript.path if is_own else home.find(link.rollout)
            if path is None:
                rollout.thread.tell_of_gap()
                reading.enter_next_file()
                yield self._part(transcript, reading, rollout, is_last=False)
                continue
            yield from self._read_file(transcript, path, link, reading, rollout, settle_ms, is_own)

    def _read_file(
        self,
        transcript: Transcript,
        path: Path,
        link: Link,
        reading: Reading,
        rollout: "Rollout",
        settle_ms: int,
        is_own: bool,
    ) -> Iterator[Part]:
        state, since = reading.state, reading.position
        damage: Unreadable | None = None
        with tail_of(path, since, settle_ms=settle_ms, until=link.end_bytes, wanted=rollout.wanted) as tail:
            if since is not None and tail.is_anew:
                raise _Replaced
            try:
                for line in tail:
                    rollout.take(line)
                    if rollout.size >= PART_BYTES and state.header is not None:
                        reading.position = tail.position
                        yield self._part(transcript, reading, rollout, is_last=False)
                        rollout.begin_part()
            except Unreadable as error:
                damage = error
            if state.header is None:
                if damage is not None:
                    raise damage
                if tail.is_torn:
                    raise Unsettled
                raise Waiting(rollout.thread.unknown.skipped)
            reading.position = tail.position
            if not is_own:
                if damage is not None:
                    rollout.thread.unknown.skip(damage.reason)
                reading.enter_next_file()
                yield self._part(transcript, reading, rollout, is_last=False)
                return
            is_news = state.turns.is_anew or since is None or tail.position.offset > since.offset
            is_stale = time.time_ns() - transcript.mtime_ns >= STALE_SECONDS * 1_000_000_000
            if is_stale and rollout.thread.calls.give_up():
                is_news = True
            if is_news or self._title(transcript, state) != reading.title:
                # Behind a damage there may have been more, which an earlier reading has got: it stays.
                yield self._part(transcript, reading, rollout, is_last=damage is None)
            if damage is not None:
                raise damage
            if tail.is_torn:
                raise Unsettled

    def _part(self, transcript: Transcript, reading: Reading, rollout: "Rollout", *, is_last: bool) -> Part:
        """All that was taken, to be stored together with how far the thread was read."""
        state = reading.state
        facts = self._facts(transcript, state)
        reading.title = facts.title
        is_anew, is_first, reading.is_first = state.turns.is_anew, reading.is_first, False
        changes = tuple(rollout.thread.turns.changes(is_last=is_last))
        state.turns.is_anew = is_anew and not is_last
        return Part(
            facts,
            changes,
            reading.as_json(),
            tuple(rollout.thread.unknown.skipped),
            turns=state.turns.turn if is_anew and is_last else None,
            is_from_start=is_first,
            calls=tuple(rollout.thread.calls.agents.values()),
            supersedes=self._home(transcript.root).others(transcript.path),
        )

    def _read_document(
        self, transcript: Transcript, name: RolloutName, since: Checkpoint | None, settle_ms: int
    ) -> Iterator[Part]:
        """The files of early 2025, each one JSON document: they are small, and nobody writes them any more."""
        from indexer.sources.codex.rollout import Rollout

        if since is not None and since.get("signature") == list(transcript.signature):
            return
        try:
            document = _document(transcript)
        except BadJson as error:
            if abs(time.time_ns() - transcript.mtime_ns) < settle_ms * 1_000_000:
                raise Unsettled from error
            raise Unreadable(error.reason) from error
        items = document.get("items")
        if not isinstance(items, list):
            raise Unreadable('no "items"')
        state = State(header_of(fields(document.get("session")), name))
        rollout = Rollout(state, name, transcript.mtime_ns // 1_000_000, lambda thread: None)
        for item in items:
            rollout.take_value(fields(item))
        yield Part(
            self._facts(transcript, state),
            tuple(rollout.thread.turns.changes(is_last=True)),
            {"signature": list(transcript.signature)},
            tuple(rollout.thread.unknown.skipped),
            turns=state.turns.turn,
            is_from_start=True,
        )

    def _facts(self, transcript: Transcript, state: State) -> SessionFacts:
        header = state.header
        assert header is not None
        home = self._home(transcript.root)
        return SessionFacts(
            key=header.id,
            session_id=header.id,
            # The oldest files do not tell where they were started; any other directory would be a guess.
            project=header.project or home.path,
            title=self._title(transcript, state),
            agent=_AGENT,
            agent_id=_AGENT_ID,
            is_archived=is_archived(transcript.path, home.path),
            started_ms=header.started_ms,
            forked_from=header.forked_from,
            parent_id=header.parent,
        )

    def _title(self, transcript: Transcript, state: State) -> str:
        header, home = state.header, self._home(transcript.root)
        if header is None:
            return ""
        name = newest(home.names.name_of(header.id), state.name) or home.database.name_of(header.id).strip()
        return name or state.title

    def _home(self, root: Root) -> Home:
        return self._homes[root.path.parent]


def codex_home_of(folder: Path) -> Path | None:
    """The Codex home that a folder is, or whose `sessions` or `archived_sessions` it is, with threads in it."""
    candidates = [folder, folder.parent] if folder.name in FOLDERS else [folder]
    return next((home for home in candidates if any(holds(home / one, is_rollout) for one in FOLDERS)), None)


def _document(transcript: Transcript) -> dict[str, Any]:
    """
    Raises:
        OSError, BadJson: it cannot be read.
    """
    with opened(transcript.path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
        return decode_object(file.read())


class _Replaced(Exception):
    """The file is not the one that was read so far."""
