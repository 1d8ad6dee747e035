"""How much of a line matters, told from its beginning.

Most lines of a rollout say nothing new, and some of those are of many megabytes. What a line is stands in
its first keys, in the order in which the program writes them; a line whose beginning looks otherwise is
decoded like any other.
"""

import re
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

IGNORED_TYPES = frozenset(
    {"world_state", "token_usage_record", "inter_agent_communication", "inter_agent_communication_metadata"}
)
IGNORED_ITEMS = frozenset({"ghost_snapshot", "compaction", "context_compaction", "additional_tools", "other"})
IGNORED_EVENTS = frozenset(
    {
        *("token_count", "thread_settings_applied", "thread_goal_updated", "undo_started", "undo_completed"),
        *("background_event", "plan_update", "session_configured", "turn_diff", "item_started", "raw_response_item"),
        *("exec_command_begin", "exec_command_output_delta", "patch_apply_begin", "mcp_tool_call_begin"),
        *("web_search_begin", "image_generation_begin", "agent_message_delta", "agent_message_content_delta"),
        *("agent_reasoning_delta", "agent_reasoning_raw_content_delta", "agent_reasoning_section_break"),
        *("reasoning_content_delta", "reasoning_raw_content_delta", "plan_delta", "terminal_interaction"),
        *("exec_approval_request", "apply_patch_approval_request", "elicitation_request", "request_user_input"),
        *("request_permissions", "mcp_startup_update", "mcp_startup_complete", "mcp_list_tools_response"),
        *("list_skills_response", "skills_update_available", "hook_started", "hook_completed", "model_reroute"),
        *("warning", "deprecation_notice", "shutdown_complete", "conversation_path", "get_history_entry_response"),
        *("collab_agent_spawn_begin", "collab_agent_interaction_begin", "collab_waiting_begin"),
        *("collab_close_begin", "collab_resume_begin"),
        # Retries; the one that was given up on is told by an `error` of its own.
        "stream_error",
    }
)
AGENT_EVENTS = frozenset({"agent_message"})
PROMPT_EVENTS = frozenset({"user_message", "item_completed"})
TASK_EVENTS = frozenset({"task_started", "turn_started"})
THINKING_EVENTS = frozenset({"agent_reasoning", "agent_reasoning_raw_content"})

_HEAD = re.compile(
    rb'\s*\{(?:\s*"timestamp"\s*:\s*"(?P<stamp>[^"\\]{0,40})"\s*,|\s*"ordinal"\s*:\s*(?P<ordinal>[0-9]{1,15})\s*,)*'
    rb'\s*"type"\s*:\s*"(?P<type>[a-z_]{1,60})"\s*,(?:\s*"ordinal"\s*:\s*(?P<late_ordinal>[0-9]{1,15})\s*,)?'
    rb'\s*"payload"\s*:\s*\{(?:\s*"type"\s*:\s*"(?P<inner>[a-z_]{1,60})"\s*,)?'
)
_TURN_ID = re.compile(rb'\s*"turn_id"\s*:\s*"([^"\\]{1,100})"')
_HIDDEN_ROLE = re.compile(rb'(?:\s*"id"\s*:\s*"[^"\\]{0,200}"\s*,)?\s*"role"\s*:\s*"(?:developer|system)"')
_ENCRYPTED = re.compile(
    rb'(?:\s*"id"\s*:\s*"[^"\\]{0,200}"\s*,)?\s*"summary"\s*:\s*\[\]\s*,'
    rb'\s*(?:"content"\s*:\s*(?:null|\[\])\s*,\s*)?"encrypted_content"'
)
WHOLE, NOTHING, BEGINNING = None, 0, 512
"""How many bytes of a line are wanted; in so many stand its types, and the turn that it names."""


class Sort(Enum):
    """What is to be done about a line, by its types."""

    META = auto()
    WORTHLESS = auto()
    """It says nothing to anybody, whatever else the file holds."""
    COMPACTION = auto()
    CONTEXT = auto()
    AGENT_TWIN = auto()
    """What the agent said, as it was shown."""
    THINKING_TWIN = auto()
    MESSAGE = auto()
    REASONING = auto()
    BETWEEN_AGENTS = auto()
    ITEM = auto()
    EVENT = auto()
    PROMPT = auto()
    """An event that may start a turn."""
    TASK = auto()
    """An event that starts the program's own turn."""
    UNKNOWN = auto()


class Head(NamedTuple):
    """What stands at the beginning of a line, where it looks as usual."""

    sort: Sort
    stamp: bytes | None
    ordinal: bytes | None
    rest: bytes
    """What follows the types."""


def head_of(beginning: bytes) -> Head | None:
    found = _HEAD.match(beginning)
    if found is None:
        return None
    stamp, ordinal, type_, late_ordinal, inner = found.groups()
    return Head(_sort(type_, inner), stamp, ordinal or late_ordinal, beginning[found.end() :])


def turn_id_of(head: Head) -> str | None:
    """The turn that a context or the start of a task names, where it names it first."""
    found = _TURN_ID.match(head.rest)
    return found[1].decode("utf-8", "replace") if found else None


def is_hidden(head: Head) -> bool:
    """Whether a message is not one of user or agent, or reasoning has nothing but what is encrypted."""
    if head.sort is Sort.MESSAGE:
        return _HIDDEN_ROLE.match(head.rest) is not None
    return head.sort is Sort.REASONING and _ENCRYPTED.match(head.rest) is not None


@lru_cache(maxsize=1024)
def _sort(type_: bytes, inner: bytes | None) -> Sort:
    kind = inner.decode() if inner else ""
    match type_:
        case b"event_msg":
            return _sort_of_event(kind)
        case b"response_item":
            return _sort_of_item(kind)
        case b"turn_context":
            return Sort.CONTEXT
        case b"compacted":
            return Sort.COMPACTION
        case b"session_meta":
            return Sort.META
    return Sort.WORTHLESS if type_.decode() in IGNORED_TYPES else Sort.UNKNOWN


def _sort_of_event(kind: str) -> Sort:
    if kind in IGNORED_EVENTS:
        return Sort.WORTHLESS
    if kind in AGENT_EVENTS:
        return Sort.AGENT_TWIN
    if kind in THINKING_EVENTS:
        return Sort.THINKING_TWIN
    if kind in TASK_EVENTS:
        return Sort.TASK
    if not kind:
        return Sort.UNKNOWN
    return Sort.PROMPT if kind in PROMPT_EVENTS else Sort.EVENT


def _sort_of_item(kind: str) -> Sort:
    if kind in IGNORED_ITEMS:
        return Sort.WORTHLESS
    known = {"message": Sort.MESSAGE, "reasoning": Sort.REASONING, "agent_message": Sort.BETWEEN_AGENTS}
    return known.get(kind, Sort.ITEM if kind else Sort.UNKNOWN)
