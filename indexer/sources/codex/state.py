"""What must be remembered of a thread between two lines, and so between two reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from typing import Any, Self

from indexer.sources.codex.header import Header
from indexer.sources.codex.turns import Place, TurnsState

MAX_CLOSED_TOOLS = 128
"""How many calls are remembered after their end, as events about them may come late."""

MAX_PROCESSES = 64
MAX_TWINS = 32


@dataclass(slots=True)
class Tool:
    """A call that more may be told about."""

    turn: int
    index: int
    has_call: bool = True
    """Whether the model's own call was read, and not only an event about it."""
    is_open: bool = True
    """Whether nothing was heard of its end."""
    is_sure: bool = False
    """Whether its status was told, and is not only what no sign means."""
    output_chars: int = 0
    """Of two accounts of its output, one of which may be cut for the model, the longer one is kept."""
    process: str | None = None
    """The running process that it talks to."""
    starts_agent: bool = False
    beginning: str | None = None
    """Of its output, to know whether that says what went wrong; None for a call of which nobody tells that apart."""
    is_error_told: bool = False
    error: list[str] = field(default_factory=list)
    """What went wrong, as long as that stands for an output that may still come: the call's label, and the error."""

    def as_json(self) -> list[Any]:
        return [
            *(self.turn, self.index, self.has_call, self.is_open, self.is_sure, self.output_chars, self.process),
            *(self.starts_agent, self.beginning, self.is_error_told, list(self.error)),
        ]

    @property
    def place(self) -> Place:
        return self.turn, self.index


@dataclass(slots=True)
class State:
    header: Header | None = None
    file: int = 0
    """Which of the files that make up the thread is being read."""
    has_meta: bool = False
    """Whether that file's own `session_meta` was read: any other one is a copy."""
    is_copying: bool = False
    """Whether the lines are a copy of another thread's history."""
    is_copy_over: bool = False
    turns: TurnsState = field(default_factory=TurnsState)
    layers: dict[str, list[str]] = field(default_factory=dict)
    """By stretch, own or copied, of each file: what was found in the layer that is preferred for it."""
    fallbacks: dict[str, list[str]] = field(default_factory=dict)
    """By stretch: what was taken from the other layer."""
    last_ms: int | None = None
    turn_id: str | None = None
    """The program's own turn that is under way; it may hold several messages."""
    origin_id: str | None = None
    """The program's turn that the latest message belongs to,"""
    origin_count: int = 0
    """and how many messages it has had."""
    held: tuple[str, int] | None = None
    """A message, in a copy that is left out, which may turn out to be the first own one; and its time."""
    tools: dict[str, Tool] = field(default_factory=dict)
    processes: dict[str, Place] = field(default_factory=dict)
    """Calls whose processes run on, by the process."""
    program: str | None = None
    """The latest call, in this turn, of a program that calls tools."""
    twins: list[tuple[str, str]] = field(default_factory=list)
    """Layer and label of tools without a common id, which the other layer may tell of, too."""
    compactions: list[str] = field(default_factory=list)
    """Kinds of records that told of the latest compaction."""
    sent: tuple[str, int] | None = None
    """The hash of the prompt that the latest item of role `user` sent, and when."""
    last_prompt: tuple[str, str, bool] | None = None
    """The kind of record that the latest message came from, its hash, and whether its twin came."""
    first_prompt: str | None = None
    """The hash of the first one."""
    is_after_abort: bool = False
    title: str = ""
    """The first line of the first prompt."""
    name: tuple[str, int] | None = None
    """The latest name that an event gave the thread, and when."""

    def as_json(self) -> dict[str, Any]:
        # Not `asdict`: the copies that it makes of hundreds of tools took longer than all else of a live append.
        plain = {one.name: getattr(self, one.name) for one in dataclass_fields(self)}
        return plain | {
            "header": None if self.header is None else self.header.as_json(),
            "layers": {stretch: list(kinds) for stretch, kinds in self.layers.items()},
            "fallbacks": {stretch: list(kinds) for stretch, kinds in self.fallbacks.items()},
            "turns": self.turns.as_json(),
            "tools": {id_: tool.as_json() for id_, tool in self.tools.items()},
            "processes": dict(self.processes),
            "twins": list(self.twins),
            "compactions": list(self.compactions),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        state = cls(**value)
        state.layers = {stretch: list(kinds) for stretch, kinds in value["layers"].items()}
        state.fallbacks = {stretch: list(kinds) for stretch, kinds in value["fallbacks"].items()}
        state.compactions = list(value["compactions"])
        state.header = None if value["header"] is None else Header.from_json(value["header"])
        state.turns = TurnsState.from_json(value["turns"])
        state.tools = {id_: Tool(*tool) for id_, tool in value["tools"].items()}
        state.processes = {id_: (turn, index) for id_, (turn, index) in value["processes"].items()}
        state.twins = [(layer, label) for layer, label in value["twins"]]
        return state
