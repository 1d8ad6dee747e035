"""The source: which files there are, and how they are read on.

What reads them is imported once there is one to read: a search by itself mostly finds that all are as they were.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from indexer.sources.base import Checkpoint, Part, Root, SessionFacts, Transcript, Unsettled, Waiting
from indexer.sources.claude_code import places
from indexer.sources.claude_code.places import Beside, place_of
from indexer.tail import Position, Tail
from schemas.sources import CLAUDE_CODE

if TYPE_CHECKING:
    from indexer.sources.claude_code.state import FileState

PART_BYTES = 4_000_000
"""How much of a file's lines goes into one part."""

HEAD_LINES = 200
"""So many of a file's lines are read to tell what session it is."""

TEXT_SHARE = 0.2
"""Of a file's bytes; the rest are pictures, whole files that were edited, context for the model, and progress."""

QUIET_SECONDS = 3600


class ClaudeCodeSource:
    """The sessions in some folders `projects`, and their subagents'."""

    name: ClassVar[str] = CLAUDE_CODE
    is_whole_record: ClassVar[bool] = False
    quiet_seconds: ClassVar[int | None] = QUIET_SECONDS

    def __init__(self, folders: Sequence[Path], usual_folders: Sequence[Path] = ()) -> None:
        """The folders that hold `projects`, or are it: `folders` were named, the usual ones are looked into."""
        named = list(dict.fromkeys(map(places.projects_folder, folders)))
        usual = dict.fromkeys(map(places.projects_folder, usual_folders))
        self._roots = (
            *(Root(path, is_named=True) for path in named),
            *(Root(path) for path in usual if path not in named),
        )
        self._beside = Beside()

    def roots(self) -> Sequence[Root]:
        return self._roots

    def state_files(self) -> Sequence[Path]:
        return ()

    def listed_projects(self) -> Sequence[Path] | None:
        return None

    def transcripts(self, root: Root) -> Iterator[Transcript]:
        return places.listed(root)

    def owns(self, root: Root, path: Path) -> bool:
        return place_of(root.path, path) is not None

    def titles(self) -> Mapping[str, str]:
        return {}

    def text_bytes(self, transcript: Transcript) -> int:
        return int(transcript.size * TEXT_SHARE)

    def recorded_session(self, transcript: Transcript) -> str | None:
        return None

    def facts(self, transcript: Transcript) -> SessionFacts | None:
        from indexer.sources.claude_code.state import FileState
        from indexer.sources.claude_code.transcript import Batch

        state = FileState()
        with Tail(transcript.path) as tail:
            batch = Batch(state, transcript, tail, self._beside)
            for line in tail:
                batch.take(line)
                if state.is_session and state.cwd is not None:
                    return batch.facts()
                if line.number >= HEAD_LINES or batch.size >= PART_BYTES:
                    return None
            return batch.facts() if state.is_session else None

    def read(self, transcript: Transcript, since: Checkpoint | None, *, settle_ms: int = 2000) -> Iterator[Part]:
        from indexer.sources.claude_code.state import FileState
        from indexer.sources.claude_code.transcript import Batch

        state, position = _restored(since)
        with Tail(transcript.path, position, settle_ms=settle_ms) as tail:
            if tail.is_anew:
                state = FileState()
            batch = Batch(state, transcript, tail, self._beside, is_first=tail.is_anew)
            tail.wanted = batch.wanted
            for line in tail:
                batch.take(line)
                if batch.size >= PART_BYTES and state.is_session:
                    yield batch.part(tail.position, is_last=False)
                    batch = Batch(state, transcript, tail, self._beside)
            if not state.is_session:
                raise Waiting(batch.unknown.skipped)
            is_news = state.is_anew or position is None or tail.position.offset > position.offset
            is_quiet = abs(time.time_ns() - transcript.mtime_ns) >= QUIET_SECONDS * 1_000_000_000
            if is_quiet and batch.give_up():
                is_news = True
            if is_news:
                yield batch.part(tail.position, is_last=True)
            if tail.is_torn:
                raise Unsettled


def _restored(since: Checkpoint | None) -> "tuple[FileState, Position | None]":
    from indexer.sources.claude_code.state import CHECKPOINT_VERSION, FileState

    if since is None or since.get("version") != CHECKPOINT_VERSION:
        return FileState(), None
    return FileState.from_json(since["state"]), Position.from_json(since["position"])
