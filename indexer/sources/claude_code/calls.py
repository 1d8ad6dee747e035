"""Tool calls of a chain of lines, and the user's own commands: where they stand, and what came of them."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from indexer.sources.base import Call
from indexer.sources.claude_code import tools
from indexer.sources.claude_code.blocks import blocks_of, content_of
from indexer.sources.claude_code.conversation_state import ConversationState
from indexer.sources.claude_code.turns import Turns
from indexer.sources.values import text
from schemas.items import Item, Kind, Status

MAX_CALLS = 64
"""Calls of subagents by whose prompts a chain within the file finds its call."""


class Calls:
    """The calls of a chain during one part."""

    def __init__(
        self, state: ConversationState, turns: Turns, full_output: Callable[[str], str | None], cwd: str | None
    ) -> None:
        """`full_output` knows what a call printed, by its id, where that was too long for the transcript."""
        self.cwd = cwd
        """The session's directory, which paths in labels are relative to."""
        self.agents: dict[str, Call] = {}
        """The calls of subagents, by id, that this part brought or told more of."""
        self._state = state
        self._turns = turns
        self._full_output = full_output

    def take_call(self, block: dict[str, Any], at_ms: int | None) -> None:
        """A call as it is made; one that starts a subagent is noted as such."""
        id_, name, given = text(block.get("id")), text(block.get("name")), block.get("input")
        state = self._state
        state.tail = None
        name = name or "(unknown)"
        if block.get("type") == "mcp_tool_use":
            name = f"mcp__{text(block.get('server_name')) or ''}__{name}"
        index = self._turns.open_tool(id_, tools.call_item(name, given, self.cwd, at_ms))
        if id_ is not None and name in tools.TASK_TOOLS:
            self.agents[id_] = Call(id_, state.turns.turn, index)
            state.unlinked = [*state.unlinked, id_][-MAX_CALLS:]
            prompt = given.get("prompt") if isinstance(given, dict) else None
            if isinstance(prompt, str):
                state.prompts = [*state.prompts, (_hash(prompt), id_)][-MAX_CALLS:]

    def take_results(self, line: dict[str, Any], at_ms: int | None) -> None:
        """Results of tools, and pictures beside them, which are of the first."""
        blocks = content_of(line)
        results = [block for block in blocks if block.get("type") == "tool_result"]
        more = line.get("toolUseResult") if len(results) == 1 else None
        pictures = [block for block in blocks if block.get("type") in ("image", "document")]
        for block in results:
            result = tools.result_of({**block, "content": _with(block.get("content"), pictures)}, more)
            pictures = []
            self.close(text(block.get("tool_use_id")) or "", result, at_ms)

    def close(self, id_: str, result: tools.Result, at_ms: int | None, *, status: Status | None = None) -> None:
        """What came of a call; `status`, where it is given, is told by something else than the result."""
        self._state.tail = None
        output = result.output
        if output.lstrip().startswith("<persisted-output>"):
            output = self._full_output(id_) or output
        tool = self._turns.close_tool(id_, status or result.status, output, at_ms)
        if result.stderr.strip():
            label = None if tool is None else tool.label
            self._turns.add(Item(Kind.PROCESS, command=label, output=result.stderr, at_ms=at_ms))
        if id_ in self._state.unlinked:
            self._state.unlinked.remove(id_)
        if tool is not None and result.agent_id is not None:
            self.agents[id_] = Call(id_, tool.turn, tool.index, f"agent-{result.agent_id}")

    def take_shell_output(self, printed: str, at_ms: int | None) -> None:
        """What the user's own command printed."""
        state = self._state
        state.tail = None
        key, state.shell_tool = state.shell_tool or "", None
        self._turns.close_tool(key, Status.OK, printed, at_ms)

    def take_shell_command(self, command: str, at_ms: int | None) -> None:
        """The user's own command, which begins no turn."""
        state = self._state
        state.tail = None
        state.shell_tool = f"! {state.turns.turn} {self._turns.next_index}"
        label, _, more = command.strip().partition("\n")
        given = command if more else None
        item = Item(Kind.TOOL, label=label, status=Status.RUNNING, input=given, at_ms=at_ms)
        self._turns.open_tool(state.shell_tool, item)

    def take_progress(self, id_: str | None, agent_id: str | None) -> None:
        """Learn which subagent a call runs."""
        state = self._state
        tool = None if id_ is None else state.turns.open_tools.get(id_)
        if id_ is not None and agent_id is not None and tool is not None and id_ in state.unlinked:
            state.unlinked.remove(id_)
            self.agents[id_] = Call(id_, tool.turn, tool.index, f"agent-{agent_id}")

    def call_with_prompt(self, prompt: str) -> str | None:
        """The id of the latest call of a subagent that was given this prompt."""
        hash_ = _hash(prompt)
        return next((id_ for known, id_ in reversed(self._state.prompts) if known == hash_), None)


def _with(content: Any, pictures: list[dict[str, Any]]) -> Any:
    return [*blocks_of(content), *pictures] if pictures else content


def _hash(prompt: str) -> str:
    return blake2b(prompt.strip().encode(), digest_size=8).hexdigest()
