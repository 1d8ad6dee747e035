"""The forms that Codex's threads have besides the usual one: older ones, and the paginated one.

Each function takes the lines of a thread and answers other ones that mean the same.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

_SHOWN = {
    "user_message": "UserMessage",
    "agent_message": "AgentMessage",
    "agent_reasoning": "Reasoning",
    "exec_command_end": "CommandExecution",
    "view_image_tool_call": "ImageView",
    "context_compacted": "ContextCompaction",
}


def can_be_bare(turns: list[list[Json]]) -> bool:
    """Whether old files had all that these have: of errors and of what was written to stderr only events tell."""
    return not any(item["type"] in ("notice", "process") for turn in turns for item in turn)


def bare(lines: Iterator[Json]) -> Iterator[Json]:
    """Items without an envelope behind a header of a few keys, as they were written to August 2025."""
    for line in lines:
        payload = line["payload"]
        if line["type"] == "session_meta":
            yield {"id": payload["id"], "timestamp": payload["timestamp"], "instructions": None, "git": payload["git"]}
        elif line["type"] == "response_item":
            yield payload
            yield {"record_type": "state"}


def document(lines: Iterator[Json]) -> Json:
    """One document, as it was written in early 2025."""
    header, *items = (line for line in bare(lines) if "record_type" not in line)
    return {"session": header, "items": items}


def paginated(lines: Iterator[Json], first: int = 0) -> Iterator[Json]:
    """Numbered lines, and events as the items that were shown; each line has its ordinal from `first` on."""
    for number, line in enumerate(lines, first):
        payload = line["payload"]
        if line["type"] == "session_meta":
            payload = {**payload, "history_mode": "paginated"}
        elif line["type"] == "event_msg" and payload["type"] in _SHOWN:
            payload = {"type": "item_completed", "thread_id": "", "turn_id": "", "item": _item(payload, number)}
        yield {"timestamp": line["timestamp"], "ordinal": number, "type": line["type"], "payload": payload}


def _item(event: Json, number: int) -> Json:
    item = {key: value for key, value in event.items() if key not in ("type", "call_id", "message", "text")}
    item |= {"type": _SHOWN[event["type"]], "id": event.get("call_id", f"item_{number}")}
    match event["type"]:
        case "user_message" | "agent_message":
            return {"type": item["type"], "id": item["id"], "content": [{"type": "text", "text": event["message"]}]}
        case "agent_reasoning":
            return item | {"summary_text": [event["text"]], "raw_content": []}
        case "exec_command_end":
            return item | {"status": "failed" if event["exit_code"] else "completed"}
    return item
