"""What the interface showed of tools: it tells more of a call, or is all there is of one."""

from typing import Any

from indexer.sources.codex import tools
from indexer.sources.codex.thread import Thread
from indexer.sources.codex.tools import Call, Result
from indexer.sources.codex.values import fields, joined, readable
from indexer.sources.values import text
from schemas.items import Status


def command_end(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    call = tools.shell_call(event.get("command"))
    output = text(event.get("aggregated_output")) or text(event.get("stdout")) or text(event.get("formatted_output"))
    told = Result(output or None, tools.event_status(event))
    thread.calls.take_event(event, call, told, at_ms, is_lone=event.get("source") == "user_shell")
    thread.calls.add_stderr(call, event, at_ms)


def patch_end(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    call = tools.changes_call(event.get("changes"))
    thread.calls.take_event(event, call, Result(text(event.get("stdout")) or None, tools.event_status(event)), at_ms)
    thread.calls.add_stderr(call, event, at_ms)


def mcp_end(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    told = fields(event.get("invocation")) or event
    call = tools.mcp_call(told.get("server"), told.get("tool"), told.get("arguments"))
    thread.calls.take_event(event, call, tools.mcp_result(event), at_ms)


def web_search_end(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    call = tools.web_search_call(event.get("action"), event.get("query"))
    thread.calls.take_event(event, call, Result(None, tools.event_status(event)), at_ms, is_lone=True)


def extension(thread: Thread, item: dict[str, Any], at_ms: int | None) -> None:
    kind = str(item.get("kind") or item.get("name") or "extension")
    if "search" in kind.lower():
        web_search_end(thread, item, at_ms)
        return
    told = {key: value for key, value in item.items() if key not in ("type", "id", "kind", "status")}
    call = Call(kind, readable(told) if told else None)
    thread.calls.take_event(item, call, Result(None, tools.event_status(item)), at_ms)


def view_image(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    thread.calls.take_event(event, tools.call("view_image", None, event), Result(None, Status.OK), at_ms)


def image_end(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    prompt = text(event.get("revised_prompt")) or ""
    call = Call(f"image generation: {tools.first_line(prompt)}".removesuffix(": "), prompt or None)
    told = Result(text(event.get("saved_path")), tools.event_status(event))
    thread.calls.take_event(event, call, told, at_ms, is_lone=True)


def dynamic_request(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    call = tools.call(text(event.get("tool")) or "", None, event.get("arguments"))
    thread.calls.take_event(event, call, Result(None, None), at_ms, is_end=False)


def dynamic_response(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    call = tools.call(text(event.get("tool")) or "", None, event.get("arguments"))
    content = event.get("content_items", event.get("contentItems"))
    thread.calls.take_event(event, call, Result(joined(content) or None, tools.event_status(event)), at_ms)


def collab_end(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    kind = str(event.get("tool") or event.get("type")).removesuffix("_end").removeprefix("collab_")
    id_ = text(event.get("call_id")) or text(event.get("id"))
    call = tools.call(kind, None, {"prompt": event.get("prompt") or ""})
    thread.calls.take_event(event, call, Result(None, None), at_ms)
    tool, agent = thread.state.tools.get(id_ or ""), text(event.get("new_thread_id"))
    if agent is None and "spawn" in kind:
        receivers = event.get("receiver_thread_ids")
        agent = text(receivers[0]) if isinstance(receivers, list) and receivers else None
    if id_ is not None and tool is not None and agent:
        thread.calls.note_agent(id_, tool, agent)


def agent_activity(thread: Thread, event: dict[str, Any], at_ms: int | None) -> None:
    """What an agent does stands in its own thread; here it tells which one a call started."""
    id_, agent = text(event.get("call_id")) or text(event.get("id")), text(event.get("agent_thread_id"))
    tool = thread.state.tools.get(id_) if id_ else None
    if id_ is not None and tool is not None and tool.starts_agent and agent:
        thread.calls.note_agent(id_, tool, agent)
