"""Items: what a transcript is made of, whatever agent wrote it."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Kind(StrEnum):
    """What an item is; the order is the one in which docs list them."""

    USER = "user"
    AGENT = "agent"
    THINKING = "thinking"
    TOOL = "tool"
    NOTICE = "notice"
    PROCESS = "process"


class Status(StrEnum):
    """How a tool call stands."""

    RUNNING = "running"
    OK = "ok"
    FAILED = "failed"


class Layer(IntEnum):
    """The two halves of a turn: what a reader follows, and what stands behind it."""

    CONVERSATION = 0
    DETAIL = 1


CONVERSATION_KINDS = frozenset({Kind.USER, Kind.AGENT, Kind.TOOL, Kind.NOTICE})
"""Kinds with text in the conversation; of a tool that is its label."""

DETAIL_KINDS = frozenset({Kind.THINKING, Kind.TOOL, Kind.PROCESS})
"""Kinds with text in the detail; of a tool that is its input and output."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing in a turn. Only the fields of its kind are set; the rest are None.

    `user`, `agent`, `thinking` and `notice` have `text`; `tool` has `label`, `status`, `input` and
    `output`; `process` has `command` and `output`. Texts hold no lone surrogates.
    """

    kind: Kind
    text: str | None = None
    label: str | None = None
    status: Status | None = None
    input: str | None = None
    output: str | None = None
    command: str | None = None
    at_ms: int | None = None
    """When it was written, in Unix milliseconds, where the transcript says so."""


def says_more(label: str | None, tool_input: str | None) -> bool:
    """Whether a tool's input tells a reader something that its label does not."""
    return tool_input is not None and tool_input.strip() not in ("", (label or "").strip())
