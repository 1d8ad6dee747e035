"""What a rollout says of itself in its first line: `session_meta`, or the bare header of the oldest files."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from indexer.sources.codex.names import RolloutName
from indexer.sources.codex.values import fields
from indexer.sources.values import iso_as_ms, text

_SUBAGENTS = frozenset({"subagent", "guardian_review", "memory_consolidation"})

UNTOLD = ""
"""Stands for the id of a subagent's parent where the file does not tell it."""


@dataclass(slots=True)
class Base:
    """Where the history before a file lies: in another file, up to some place in it."""

    rollout: str
    end_bytes: int | None
    """Bytes of the unpacked file."""
    end_ordinal: int | None


@dataclass(slots=True)
class Header:
    id: str
    cwd: str | None = None
    started_ms: int | None = None
    forked_from: str | None = None
    parent: str | None = None
    """Of a subagent; None for any other thread."""
    agent_path: str | None = None
    own_ordinal: int | None = None
    """The ordinal from which on the lines are a subagent's own."""
    base: Base | None = None
    is_from_name: bool = False
    """Whether the file has no such line, so that its name must do."""

    @property
    def is_subagent(self) -> bool:
        return self.parent is not None

    @property
    def copied_from(self) -> str | None:
        """The thread whose history the file may begin with."""
        return self.forked_from or self.parent or None

    @property
    def project(self) -> Path | None:
        """The directory in which the thread was started; None where the file does not tell it."""
        if not self.cwd or "\0" in self.cwd:
            return None
        if self.cwd.startswith("/"):
            return Path(os.path.realpath(self.cwd))
        # Of another system: nothing here to resolve, but its last part is the name, as of any other.
        return Path(self.cwd.removeprefix("\\\\?\\").replace("\\", "/"))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        header = cls(**value)
        header.base = None if value["base"] is None else Base(**value["base"])
        return header


def header_of(payload: dict[str, Any], name: RolloutName) -> Header:
    """The header that a `session_meta`, or the bare first line of old, writes; the file's name fills its gaps."""
    id_ = text(payload.get("id")) or name.thread
    source = fields(payload.get("source")).get("subagent")
    spawn = fields(fields(source).get("thread_spawn"))
    thread_source = text(payload.get("thread_source"))
    told_parent = text(spawn.get("parent_thread_id")) or text(payload.get("parent_thread_id"))
    forked_from = text(payload.get("forked_from_id"))
    parent = None
    if source is not None or thread_source in _SUBAGENTS:
        family = text(payload.get("session_id"))
        parent = told_parent or forked_from or (family if family != id_ else None) or UNTOLD
    own_ordinal = payload.get("subagent_history_start_ordinal")
    return Header(
        id=id_,
        cwd=text(payload.get("cwd")),
        started_ms=iso_as_ms(payload.get("timestamp")) or name.started_ms,
        forked_from=forked_from,
        parent=parent,
        agent_path=text(payload.get("agent_path")) or text(spawn.get("agent_path")),
        own_ordinal=own_ordinal if isinstance(own_ordinal, int) else None,
        base=_base(payload.get("history_base")),
    )


def header_from_name(name: RolloutName) -> Header:
    return Header(name.thread, started_ms=name.started_ms, is_from_name=True)


def is_bare_header(line: dict[str, Any]) -> bool:
    """Whether this is the first line of a file of bare items, before there was an envelope."""
    return "type" not in line and "record_type" not in line and isinstance(line.get("id"), str) and "timestamp" in line


def _base(value: Any) -> Base | None:
    told = fields(value)
    rollout = text(told.get("thread_id"))
    if rollout is None:
        return None
    end_bytes, end_ordinal = told.get("end_byte_offset"), told.get("end_ordinal_exclusive")
    return Base(
        rollout,
        end_bytes if isinstance(end_bytes, int) and end_bytes >= 0 else None,
        end_ordinal if isinstance(end_ordinal, int) else None,
    )
