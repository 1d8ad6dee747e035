"""What went to and from the model: `response_item`, and the items of files that have no envelope."""

from typing import Any

from indexer.sources.codex import lines, notices, prompts, tools
from indexer.sources.codex.known import ITEM_KEYS, PART_TYPES
from indexer.sources.codex.layers import AGENT, THINKING, USER
from indexer.sources.codex.records import Records, Take
from indexer.sources.codex.thread import Thread
from indexer.sources.codex.tools import Call, Result
from indexer.sources.codex.values import digest, fields, joined, readable
from indexer.sources.values import text
from schemas.items import Item, Kind, Status


def _message(thread: Thread, item: dict[str, Any], at_ms: int | None) -> None:
    role, content = item.get("role"), item.get("content")
    thread.unknown.parts(content, PART_TYPES)
    if role == "user":
        _user_item(thread, content, at_ms)
    elif role == "assistant" and not thread.copied.leaves_out:
        words = joined(content)
        if words.strip():
            thread.layers.prefer(AGENT)
            thread.add(Item(Kind.AGENT, text=words, at_ms=at_ms))
    elif role not in ("assistant", "developer", "system"):
        thread.unknown.tell("role", role)


def _user_item(thread: Thread, content: Any, at_ms: int | None) -> None:
    state = thread.state
    header = state.header
    if header is not None and header.cwd is None:
        header.cwd = prompts.working_directory(content)
    if not thread.copied.leaves_out:
        for command, printed in prompts.shell_commands(content):
            thread.calls.take_lone("item", None, tools.shell_call(command), tools.result(printed), at_ms)
    if prompts.is_abort_marker(content):
        state.is_after_abort = True
    words = prompts.prompt_of_item(content)
    if words is None:
        return
    was_after_abort, state.is_after_abort = state.is_after_abort, False
    if was_after_abort and digest(words) == state.first_prompt:
        return  # sent again by the program
    state.sent = digest(words), thread.or_known(at_ms)
    if thread.layers.may_fall_back(USER):
        thread.take_prompt("item", words, at_ms)


def _agent_message(thread: Thread, item: dict[str, Any], at_ms: int | None) -> None:
    """A message between agents: what a subagent is sent is its task."""
    thread.unknown.parts(item.get("content"), PART_TYPES)
    words = joined(item.get("content")).strip()
    if not words or notices.is_encrypted(words):
        return
    header = thread.state.header
    recipient, author = text(item.get("recipient")), text(item.get("author"))
    if header is not None and header.is_subagent:
        me = header.agent_path
        is_inbound = recipient in (me, header.id) if me and recipient else author != me or me is None
        if is_inbound:
            if not thread.copied.leaves_out:
                thread.layers.prefer(USER)
            thread.take_prompt("agent_message", words, at_ms)
            return
    if not thread.copied.leaves_out:
        thread.notice(notices.between_agents(author, recipient, words), at_ms)


def _reasoning(thread: Thread, item: dict[str, Any], at_ms: int | None) -> None:
    words = joined(item.get("summary"), "\n\n") or joined(item.get("content"), "\n\n")
    if words.strip():
        thread.layers.prefer(THINKING)
        thread.add(Item(Kind.THINKING, text=words, at_ms=at_ms))


def _function_call(thread: Thread, item: dict[str, Any], at_ms: int | None) -> None:
    name = text(item.get("name")) or ""
    given = item.get("arguments", item.get("input"))
    thread.calls.open(
        text(item.get("call_id")) or text(item.get("id")), name, text(item.get("namespace")), given, at_ms
    )


def _local_shell_call(thread: Thread, item: dict[str, Any], at_ms: int | None) -> None:
    action = fields(item.get("action"))
    id_ = text(item.get("call_id")) or text(item.get("id"))
    thread.calls.open(id_, "local_shell", None, {key: value for key, value in action.items() if key != "type"}, at_ms)


def _tool_search_call(thread: Thread, item: dict[str, Any], at_ms: int | None) -> None:
    thread.calls.open(text(item.get("call_id")), "tool_search", None, item.get("arguments"), at_ms)


def _call_output(thread: Thread, item: dict[str, Any], at_ms: int | None) -> None:
    output = item.get("output")
    thread.unknown.parts(output, PART_TYPES)
    if item.get("type") == "tool_search_output":
        output = readable(item.get("tools") or "")
    id_, told = text(item.get("call_id")), tools.result(output)
    tool = thread.state.tools.get(id_) if id_ else None
    if id_ is None or tool is None:
        # Its call is lost; what it says is not.
        item_ = Item(Kind.TOOL, status=told.status or Status.OK, output=told.output, at_ms=at_ms)
        thread.calls.note(id_, thread.add(item_), told)
        return
    thread.calls.close(tool, told, at_ms)
    if tool.starts_agent and (agent := notices.started_agent(output)) is not None:
        thread.calls.note_agent(id_, tool, agent)


def _web_search_call(thread: Thread, item: dict[str, Any], at_ms: int | None) -> None:
    call = tools.web_search_call(item.get("action"), None)
    thread.calls.take_lone("item", text(item.get("id")), call, Result(None, tools.event_status(item)), at_ms)


def _image_generation_call(thread: Thread, item: dict[str, Any], at_ms: int | None) -> None:
    label = f"image generation: {tools.first_line(text(item.get('revised_prompt')) or '')}".removesuffix(": ")
    call = Call(label, text(item.get("revised_prompt")))
    thread.calls.take_lone("item", text(item.get("id")), call, Result(None, tools.event_status(item)), at_ms)


_ITEMS: dict[str, Take] = {
    "message": _message,
    "agent_message": _agent_message,
    "reasoning": _reasoning,
    "function_call": _function_call,
    "custom_tool_call": _function_call,
    "local_shell_call": _local_shell_call,
    "tool_search_call": _tool_search_call,
    "function_call_output": _call_output,
    "custom_tool_call_output": _call_output,
    "tool_search_output": _call_output,
    "web_search_call": _web_search_call,
    "image_generation_call": _image_generation_call,
}

ITEMS = Records("response_item", _ITEMS, lines.IGNORED_ITEMS, ITEM_KEYS, ends_of_copies={"message", "agent_message"})
