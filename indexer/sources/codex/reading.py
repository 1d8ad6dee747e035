"""How far a thread was read, and from which files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from indexer.sources.base import Checkpoint, Unreadable
from indexer.sources.codex.header import Base, Header
from indexer.sources.codex.home import Home, read_header
from indexer.sources.codex.names import RolloutName, rollout_name
from indexer.sources.codex.state import State
from indexer.tail import Position

MAX_FILES = 1000
"""A thread of more files is not followed further back."""

_CHECKPOINT_VERSION = 2


@dataclass(slots=True)
class Link:
    """One of the files that make up a thread."""

    rollout: str
    """Its own id, by which it is found wherever it lies."""
    end_bytes: int | None = None
    """Where it stops to count: what comes later was taken back."""
    end_ordinal: int | None = None
    """The same, where nobody told the byte."""
    is_foreign: bool = False
    """Whether it is another thread's, which this one was forked from."""


@dataclass(slots=True)
class Reading:
    """How far a thread was read."""

    links: list[Link]
    """The files that make it up, the oldest first."""
    is_chained: bool = False
    """Whether the links were followed back."""
    state: State = field(default_factory=State)
    position: Position | None = None
    """In the file that the state says."""
    title: str | None = None
    """The latest one that was told."""
    is_first: bool = True
    """Whether no part was told of this reading."""

    def enter_next_file(self) -> None:
        state = self.state
        state.file += 1
        state.has_meta = state.is_copying = state.is_copy_over = False
        self.position = None

    def as_json(self) -> dict[str, Any]:
        return {
            "version": _CHECKPOINT_VERSION,
            "links": [[link.rollout, link.end_bytes, link.end_ordinal, link.is_foreign] for link in self.links],
            "is_chained": self.is_chained,
            "state": self.state.as_json(),
            "position": None if self.position is None else self.position.as_json(),
            "title": self.title,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(
            [Link(*link) for link in value["links"]],
            value["is_chained"],
            State.from_json(value["state"]),
            None if value["position"] is None else Position.from_json(value["position"]),
            value["title"],
            is_first=False,
        )


def restored(since: Checkpoint | None) -> Reading | None:
    if since is None or since.get("version") != _CHECKPOINT_VERSION:
        return None
    return Reading.from_json(since)


def links_of(home: Home, header: Header, name: RolloutName) -> list[Link]:
    """The files that make up a thread, the oldest first, back to its first one or to one that is missing."""
    links = [Link(name.rollout)]
    base: Base | None = header.base
    seen = {name.rollout}
    while base is not None and base.rollout not in seen and len(links) < MAX_FILES:
        seen.add(base.rollout)
        path = home.find(base.rollout)
        before = _header_at(path)
        is_foreign = before is not None and before.id != header.id
        if is_foreign and header.is_subagent:
            break  # its parent's history, which is there to be read, and can be very long
        links.append(
            Link(base.rollout, base.end_bytes, base.end_ordinal if base.end_bytes is None else None, is_foreign)
        )
        base = before.base if before is not None else None
    links.reverse()
    return links


def started_ms(home: Home, header: Header, name: RolloutName) -> int | None:
    """When a thread was started, which the first of its own files tells."""
    bases = (_header_at(home.find(link.rollout)) for link in links_of(home, header, name)[:-1])
    own = [header, *(base for base in bases if base is not None and base.id == header.id)]
    return min((one.started_ms for one in own if one.started_ms is not None), default=None)


def _header_at(path: Path | None) -> Header | None:
    name = None if path is None else rollout_name(path.name)
    if path is None or name is None:
        return None
    try:
        return read_header(path, name)
    except (OSError, Unreadable):
        return None
