"""What must be remembered of a chain of lines between two of them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from indexer.sources.claude_code.turns import TurnState


@dataclass(slots=True)
class Tail:
    """What must be known of the item added last, as something may still be done to it."""

    kind: str
    """`text`: more of the same answer may follow; `retry`: another try may; `command`: it may prove a message."""
    text: str = ""
    at_ms: int | None = None
    answer: str | None = None
    """The answer that a text belongs to."""
    origin: str | None = None
    is_copy: bool = False
    has_expansion: bool = False
    """Whether the text followed that a command is for the model."""


@dataclass(slots=True)
class ConversationState:
    turns: TurnState = field(default_factory=TurnState)
    started_ms: int | None = None
    """The smallest time of all lines, as they do not stand in the order of their times."""
    last_ms: int | None = None
    """The time that a line without one gets."""
    title: str = ""
    """The first line of the first message that has one, without tags around it."""
    answer_id: str | None = None
    """The answer that is being written, in one line a block."""
    is_warm_up: bool = False
    tail: Tail | None = None
    recent: list[tuple[str, int, int, int]] = field(default_factory=list)
    """The latest lines of answers: uuid, turn, index of the first item, number of items."""
    shell_tool: str | None = None
    """The key under which the user's own command waits for its output."""
    prompts: list[tuple[str, str]] = field(default_factory=list)
    """Hash of the prompt, and id, of the latest calls of subagents."""
    unlinked: list[str] = field(default_factory=list)
    """The ids of calls that run subagents of which nothing is known yet."""

    def rest(self) -> None:
        """Forget what only the very next lines may ask for: others are being written."""
        self.tail = None
        self.recent = []

    def as_json(self) -> dict[str, Any]:
        value = asdict(self)
        value["turns"] = self.turns.as_json()
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        state = cls(**value)
        state.turns = TurnState.from_json(value["turns"])
        state.tail = None if value["tail"] is None else Tail(**value["tail"])
        state.recent = [(uuid, turn, index, count) for uuid, turn, index, count in value["recent"]]
        state.prompts = [(prompt, id_) for prompt, id_ in value["prompts"]]
        return state
