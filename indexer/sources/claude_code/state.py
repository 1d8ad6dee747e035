"""What must be remembered of a file between two lines, and so between two reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from indexer.sources.claude_code.conversation_state import ConversationState
from indexer.sources.claude_code.queue import Queue
from indexer.sources.claude_code.seen import Seen
from indexer.sources.claude_code.titles import Titles

CHECKPOINT_VERSION = 2


@dataclass(slots=True)
class SideState:
    """A subagent's chain of lines within its parent's file, as 1.0 wrote them."""

    id: str
    conversation: ConversationState = field(default_factory=ConversationState)
    call: str | None = None
    lines: list[str] = field(default_factory=list)
    """The uuids of its latest lines."""

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "conversation": self.conversation.as_json(),
            "call": self.call,
            "lines": self.lines,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(**{**value, "conversation": ConversationState.from_json(value["conversation"])})


@dataclass(slots=True)
class FileState:
    is_anew: bool = True
    """Whether this reading began at the file's beginning: its last part says how many turns there are."""
    is_session: bool = False
    """Whether a line of a user or an agent was there."""
    cwd: str | None = None
    """The first directory that a line names, where the session was started."""
    project: str | None = None
    parent_id: str | None = None
    parent_call: str | None = None
    agent_title: str = ""
    """What a subagent was to do, in a few words."""
    forked_from: str | None = None
    aliases: list[str] = field(default_factory=list)
    """Sessions that lines say they are of, which are not that of the file."""
    version: str = ""
    pr_url: str = ""
    titles: Titles = field(default_factory=Titles)
    queue: Queue = field(default_factory=Queue)
    seen: Seen = field(default_factory=Seen)
    main: ConversationState = field(default_factory=ConversationState)
    sides: list[SideState] = field(default_factory=list)
    """The latest one last."""

    def as_json(self) -> dict[str, Any]:
        value = {name: getattr(self, name) for name in self.__slots__}
        for name in ("titles", "queue", "seen", "main"):
            value[name] = value[name].as_json()
        value["sides"] = [side.as_json() for side in self.sides]
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        state = cls(**value)
        state.titles = Titles.from_json(value["titles"])
        state.queue = Queue.from_json(value["queue"])
        state.seen = Seen.from_json(value["seen"])
        state.main = ConversationState.from_json(value["main"])
        state.sides = [SideState.from_json(side) for side in value["sides"]]
        return state
