"""What kind a line is, told from its first bytes, so that one which cannot matter is never decoded.

Only keys of the line's own object are looked at, one after the other from its beginning: what a tool printed may hold
the very same text. Where the kind is not reached that way the line is decoded.
"""

import re

HEAD_BYTES = 4096
"""How much of a line is looked at."""

DROPPED_TYPES = frozenset(
    {
        b"progress",
        b"file-history-snapshot",
        b"file-history-delta",
        b"last-prompt",
        b"mode",
        b"permission-mode",
        b"worktree-state",
        b"relocated",
        b"bridge-session",
        b"frame-link",
        b"atis-latch",
        b"cost-state",
        b"content-replacement",
        b"agent-setting",
        b"agent-color",
        b"started",
        b"result",
    }
)
"""Lines that bring nothing to read, and no title."""

DROPPED_ATTACHMENTS = frozenset(
    {
        b"file",
        b"directory",
        b"edited_text_file",
        b"compact_file_reference",
        b"nested_memory",
        b"skill_listing",
        b"invoked_skills",
        b"dynamic_skill",
        b"deferred_tools_delta",
        b"mcp_instructions_delta",
        b"agent_listing_delta",
        b"todo_reminder",
        b"task_reminder",
        b"task_status",
        b"plan_mode",
        b"plan_mode_exit",
        b"plan_file_reference",
        b"auto_mode",
        b"date_change",
        b"command_permissions",
        b"budget_usd",
        b"read_truncation_notice",
        b"companion_intro",
        b"hook_success",
        b"hook_additional_context",
    }
)
"""Context for the model that nobody wrote or reads; a `file` holds whole files."""

_PAIRS = (
    rb'(?:\s*+"(?!type")[^"\\]{0,64}+"\s*+:\s*+'
    rb'(?:"(?:[^"\\]++|\\.)*+"|null|true|false|[-+.0-9eE]++|\{\s*+\}|\[\s*+\])\s*+,)*+\s*+'
)
_ATTACHMENT = rb'"attachment"\s*+:\s*+\{\s*+"type"\s*+:\s*+"(?P<attachment>[^"\\]{1,64})"'
_HEAD = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+\{" + _PAIRS + rb'(?:"type"\s*+:\s*+"(?P<type>[^"\\]{1,64})"|' + _ATTACHMENT + rb")",
    re.DOTALL,
)
_REST = re.compile(rb"\s*+," + _PAIRS + _ATTACHMENT, re.DOTALL)


def can_be_dropped(raw: bytes, *, but_progress: bool = False) -> bool:
    """Whether a line, of which these are the first bytes, brings nothing to a session."""
    head = _HEAD.match(raw, 0, HEAD_BYTES)
    if head is None:
        return False
    type_ = head["type"]
    if type_ is not None and type_ != b"attachment":
        return type_ in DROPPED_TYPES and not (but_progress and type_ == b"progress")
    # No line but an attachment has an object of that name, whether its type stands before or after it.
    rest = head if type_ is None else _REST.match(raw, head.end(), HEAD_BYTES)
    return rest is not None and rest["attachment"] in DROPPED_ATTACHMENTS
