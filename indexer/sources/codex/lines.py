"""How much of a line matters, told from its beginning.

Most lines of a rollout say nothing new, and some of those are of many megabytes. What a line is stands in
its first keys, in the order in which the program writes them; a line whose beginning looks otherwise is
decoded like any other.
"""

import re
from dataclasses import dataclass

from indexer.tail import PEEK_BYTES

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
        *("collab_close_begin", "collab_resume_begin", "sub_agent_activity"),
        # Retries; the one that was given up on is told by an `error` of its own.
        "stream_error",
    }
)
AGENT_EVENTS = frozenset({"agent_message"})
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
WHOLE, NOTHING, BEGINNING = None, 0, PEEK_BYTES


@dataclass(frozen=True, slots=True)
class Head:
    """What stands at the beginning of a line, where it looks as usual."""

    type: str
    inner: str
    """The type of what it carries; empty where that does not begin with one."""
    stamp: str | None
    ordinal: int | None
    rest: bytes


def head_of(beginning: bytes) -> Head | None:
    found = _HEAD.match(beginning)
    if found is None:
        return None
    stamp, ordinal, type_, late_ordinal, inner = found.groups()
    number = ordinal or late_ordinal
    return Head(
        type_.decode(),
        inner.decode() if inner else "",
        stamp.decode("ascii", "replace") if stamp else None,
        int(number) if number else None,
        beginning[found.end() :],
    )


def turn_id_of(head: Head) -> str | None:
    """The turn that a `turn_context` names, where it names it first."""
    found = _TURN_ID.match(head.rest)
    return found[1].decode("utf-8", "replace") if found else None


def is_worthless(head: Head) -> bool:
    """Whether the line says nothing to anybody, whatever else the file holds."""
    if head.type == "event_msg":
        return head.inner in IGNORED_EVENTS
    if head.type != "response_item":
        return head.type in IGNORED_TYPES
    if head.inner == "message":
        return _HIDDEN_ROLE.match(head.rest) is not None
    if head.inner == "reasoning":
        return _ENCRYPTED.match(head.rest) is not None
    return head.inner in IGNORED_ITEMS
