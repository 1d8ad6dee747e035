"""What the interface showed: `event_msg`, and the items that it tells of in a paginated file."""

from typing import Any

from indexer.sources.codex import lines, notices, prompts, tool_events
from indexer.sources.codex.known import EVENT_KEYS, PART_TYPES, SHOWN_KEYS
from indexer.sources.codex.layers import AGENT, THINKING, USER
from indexer.sources.codex.records import Records, Take
from indexer.sources.codex.thread import Thread
from indexer.sources.codex.values import fields, joined, readable
from indexer.sources.values import text
from schemas.items import Item, Kind


def _user_message(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    if event.get("kind") not in (None, "plain"):
        return
    has_images = bool(event.get("images") or event.get("local_images"))
    words = prompts.prompt_of_event(text(event.get("message")) or "", has_images)
    _shown_prompt(thread, "user_message", words, at_ms)


def _shown_prompt(thread: Thread, kind: str, words: str, at_ms: int | None) -> None:
    if not thread.copied.leaves_out:
        thread.layers.prefer(USER)
    thread.take_prompt(kind, words, at_ms)


def _event_agent(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    words = joined(event.get("message") or event.get("content") or event.get("text"))
    if words.strip() and thread.layers.may_fall_back(AGENT):
        thread.add(Item(Kind.AGENT, text=words, at_ms=at_ms))


def _event_thinking(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    told = event.get("summary_text") or event.get("text") or event.get("raw_content")
    words = joined(told, "\n\n")
    if words.strip() and thread.layers.may_fall_back(THINKING):
        thread.add(Item(Kind.THINKING, text=words, at_ms=at_ms))


def _shown_message(thread: Thread, item: dict[str, Any], at_ms: int | None) -> None:
    thread.unknown.parts(item.get("content"), PART_TYPES)
    _shown_prompt(thread, "UserMessage", prompts.prompt_of_user_message(item.get("content")), at_ms)


def _item_completed(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    SHOWN.take(thread, fields(event.get("item")), at_ms)


def _task_started(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    thread.take_turn_id(text(event.get("turn_id")), is_start=True)


def _task_complete(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    thread.calls.interrupt()
    thread.state.turn_id = None
    if event.get("error"):
        error = event["error"]
        thread.notice(f"error: {text(fields(error).get('message')) or readable(error)}", at_ms)


def _turn_aborted(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    thread.calls.interrupt()
    thread.state.turn_id = None
    thread.notice(notices.aborted(event), at_ms)


def _compaction_event(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    thread.take_compaction(str(event.get("type")), at_ms)


def _noticed(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    words = notices.notice(event)
    if words:
        thread.notice(words, at_ms)


def _thread_name(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    name = text(event.get("thread_name"))
    if name is not None and name.strip() and not thread.copied.is_copy:
        thread.state.name = name, at_ms or 0


_EVENTS: dict[str, Take] = {
    "user_message": _user_message,
    "item_completed": _item_completed,
    "agent_message": _event_agent,
    "agent_reasoning": _event_thinking,
    "agent_reasoning_raw_content": _event_thinking,
    "task_started": _task_started,
    "turn_started": _task_started,
    "task_complete": _task_complete,
    "turn_complete": _task_complete,
    "turn_aborted": _turn_aborted,
    "context_compacted": _compaction_event,
    "error": _noticed,
    "guardian_assessment": _noticed,
    "entered_review_mode": _noticed,
    "exited_review_mode": _noticed,
    "thread_rolled_back": _noticed,
    "thread_name_updated": _thread_name,
    "exec_command_end": tool_events.command_end,
    "patch_apply_end": tool_events.patch_end,
    "mcp_tool_call_end": tool_events.mcp_end,
    "web_search_end": tool_events.web_search_end,
    "view_image_tool_call": tool_events.view_image,
    "image_generation_end": tool_events.image_end,
    "dynamic_tool_call_request": tool_events.dynamic_request,
    "dynamic_tool_call_response": tool_events.dynamic_response,
    "collab_agent_spawn_end": tool_events.collab_end,
    "collab_agent_interaction_end": tool_events.collab_end,
    "collab_waiting_end": tool_events.collab_end,
    "collab_close_end": tool_events.collab_end,
    "collab_resume_end": tool_events.collab_end,
    "sub_agent_activity": tool_events.agent_activity,
}

_SHOWN: dict[str, Take] = {
    "UserMessage": _shown_message,
    "AgentMessage": _event_agent,
    "Plan": _event_agent,
    "Reasoning": _event_thinking,
    "CommandExecution": tool_events.command_end,
    "FileChange": tool_events.patch_end,
    "McpToolCall": tool_events.mcp_end,
    "WebSearch": tool_events.web_search_end,
    "Extension": tool_events.extension,
    "ImageView": tool_events.view_image,
    "ImageGeneration": tool_events.image_end,
    "CollabAgentToolCall": tool_events.collab_end,
    "SubAgentActivity": tool_events.agent_activity,
    "ContextCompaction": _compaction_event,
    "EnteredReviewMode": _noticed,
    "ExitedReviewMode": _noticed,
}

EVENTS = Records(
    "event_msg", _EVENTS, lines.IGNORED_EVENTS, EVENT_KEYS, ends_of_copies=lines.PROMPT_EVENTS | lines.TASK_EVENTS
)
SHOWN = Records("item_completed", _SHOWN, {"HookPrompt"}, SHOWN_KEYS, ends_of_copies={"UserMessage"})
"""The items of `item_completed`."""
