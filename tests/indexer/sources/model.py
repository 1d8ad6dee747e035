"""What a session is after some parts of it were stored: the simplest store there could be."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from indexer.sources.base import Append, Checkpoint, Part, Patch, Root, SessionFacts, Skipped, Source, Transcript
from schemas.items import Item


@dataclass
class StoredTurn:
    at_ms: int
    items: list[Item] = field(default_factory=list)


@dataclass
class StoredSession:
    """A session in memory; parts are applied by the letter of what `Append`, `Patch` and `Part` promise."""

    turns: list[StoredTurn] = field(default_factory=list)
    facts: SessionFacts | None = None
    checkpoint: Checkpoint | None = None
    skipped: list[Skipped] = field(default_factory=list)

    def apply(self, part: Part) -> None:
        for change in part.changes:
            if isinstance(change, Append):
                self._append(change)
            else:
                self._patch(change)
        if part.turns is not None:
            assert part.turns <= len(self.turns), "turns that were never sent"
            del self.turns[part.turns :]
        self.facts = part.facts
        self.checkpoint = through_json(part.checkpoint)
        self.skipped = [*([] if part.is_from_start else self.skipped), *part.skipped]

    def apply_all(self, parts: Iterable[Part]) -> int:
        """Apply parts as they come; how many there were."""
        count = 0
        for part in parts:
            self.apply(part)
            count += 1
        return count

    def _append(self, change: Append) -> None:
        assert 1 <= change.turn <= len(self.turns) + 1, "a turn was left out"
        if change.turn == len(self.turns) + 1:
            self.turns.append(StoredTurn(change.at_ms))
        items = self.turns[change.turn - 1].items
        assert change.first <= len(items), "items were left out"
        end = None if change.is_whole else change.first + len(change.items)
        items[change.first : end] = change.items

    def _patch(self, change: Patch) -> None:
        items = self.turns[change.turn - 1].items
        given = {
            name: value
            for name in ("label", "status", "input", "output")
            if (value := getattr(change, name)) is not None
        }
        items[change.index] = replace(items[change.index], **given)

    @property
    def texts(self) -> list[list[str | None]]:
        """For each turn what its items say, in a word: text, label or command."""
        return [[item.text or item.label or item.command for item in turn.items] for turn in self.turns]

    @property
    def reasons(self) -> list[tuple[int | None, str]]:
        return [(skipped.line, skipped.reason) for skipped in self.skipped]


def through_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """A checkpoint as it comes back from a store."""
    loaded: dict[str, Any] = json.loads(json.dumps(checkpoint))
    return loaded


def transcript_of(path: Path, root: Root | None = None) -> Transcript:
    """A file as its folder lists it now."""
    found = path.stat()
    return Transcript(
        str(path), root or Root(path.parent), found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev
    )


def read_on(source: Source, path: Path, session: StoredSession, *, root: Root | None = None, settle_ms: int = 0) -> int:
    """Read what is new in a file into a session; how many parts there were."""
    return session.apply_all(source.read(transcript_of(path, root), session.checkpoint, settle_ms=settle_ms))


def read_whole(source: Source, path: Path, *, root: Root | None = None, settle_ms: int = 0) -> StoredSession:
    """A session as its file says from its beginning."""
    session = StoredSession()
    read_on(source, path, session, root=root, settle_ms=settle_ms)
    return session


def snapshot(folder: Path) -> dict[str, tuple[int, ...]]:
    """What a reader must leave as it was: names, sizes, modes, inodes and times (but that of access)."""
    return {
        str(path.relative_to(folder)): (
            (found := path.lstat()).st_size,
            found.st_mode,
            found.st_ino,
            found.st_mtime_ns,
            found.st_ctime_ns,
        )
        for path in [folder, *sorted(folder.rglob("*"))]
    }
