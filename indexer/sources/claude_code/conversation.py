"""One chain of lines, a session's own or a subagent's within it: from lines to turns."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any, Self

from indexer.sources.base import Call, Change
from indexer.sources.claude_code import tools
from indexer.sources.claude_code.blocks import blocks_of, content_of, text_of
from indexer.sources.claude_code.envelope import uuid_of
from indexer.sources.claude_code.notices import Said, answer_error, output_items
from indexer.sources.claude_code.turns import Turns, TurnState
from indexer.sources.claude_code.users import Message, Role, message_of
from indexer.sources.pictures import first_words
from indexer.sources.unknown import Unknown
from indexer.sources.values import text
from schemas.items import Item, Kind, Status

MAX_JOINED_CHARS = 20_000
"""A piece of an answer is joined to the one before it as long as that is not longer, as it must be remembered."""

MAX_RECENT = 32
"""Lines of an answer that a later one can still take back."""

_USER_BLOCKS = frozenset({"text", "image", "document", "tool_result"})

MAX_TITLE_CHARS = 1000
MAX_CALLS = 64
"""Calls of subagents by whose prompts a chain within the file finds its call."""


@dataclass(slots=True)
class _Tail:
    """What must be known of the item added last, as something may still be done to it."""

    kind: str
    """`text`: more of the same answer may follow; `retry`: another try may; `command`: it may prove a message."""
    text: str = ""
    at_ms: int | None = None
    answer: str | None = None
    """The answer that a text belongs to."""
    origin: str | None = None
    is_copy: bool = False
    has_expansion: bool = False
    """Whether the text followed that a command is for the model."""


@dataclass(slots=True)
class ConversationState:
    """What must be remembered of a chain between two lines."""

    turns: TurnState = field(default_factory=TurnState)
    started_ms: int | None = None
    """The smallest time of all lines, as they do not stand in the order of their times."""
    last_ms: int | None = None
    """The time that a line without one gets."""
    title: str = ""
    """The first message's first line."""
    answer_id: str | None = None
    """The answer that is being written, in one line a block."""
    is_warm_up: bool = False
    tail: _Tail | None = None
    recent: list[tuple[str, int, int]] = field(default_factory=list)
    """Lines of answers in this turn: uuid, index of the first item, number of items."""
    shell_tool: str | None = None
    """The key under which the user's own command waits for its output."""
    prompts: list[tuple[str, str]] = field(default_factory=list)
    """Hash of the prompt, and id, of the latest calls of subagents."""
    unlinked: list[str] = field(default_factory=list)
    """The ids of calls that run subagents of which nothing is known yet."""

    def rest(self) -> None:
        """Forget what only the very next lines may ask for: others are being written."""
        self.tail = None
        self.recent = []

    def as_json(self) -> dict[str, Any]:
        value = asdict(self)
        value["turns"] = self.turns.as_json()
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        state = cls(**value)
        state.turns = TurnState.from_json(value["turns"])
        state.tail = None if value["tail"] is None else _Tail(**value["tail"])
        state.recent = [(uuid, index, count) for uuid, index, count in value["recent"]]
        state.prompts = [(prompt, id_) for prompt, id_ in value["prompts"]]
        return state


class Conversation:
    """A chain of lines during one part."""

    def __init__(
        self,
        state: ConversationState,
        file_ms: int,
        unknown: Unknown,
        full_output: Callable[[str], str | None],
        cwd: str | None,
    ) -> None:
        """`unknown` is told what is not understood; `full_output` knows what a call printed, by its id, where that was
        too long for the transcript.
        """
        self.state = state
        self.cwd = cwd
        """The session's directory, which paths in labels are relative to."""
        self._turns = Turns(state.turns, file_ms)
        self._unknown = unknown
        self._full_output = full_output
        self._calls: dict[str, Call] = {}

    def changes(self, *, was_anew: bool, is_last: bool) -> tuple[Change, ...]:
        return tuple(self._turns.changes(was_anew=was_anew, is_last=is_last))

    def calls(self) -> Iterator[Call]:
        """The calls of subagents that this part brought, or told more of."""
        yield from self._calls.values()

    @property
    def turn_count(self) -> int:
        return self.state.turns.turn

    def at(self, at_ms: int | None) -> int | None:
        """The time of a line: its own, else that of the one before."""
        state = self.state
        if at_ms is None:
            return state.last_ms
        state.last_ms = at_ms
        if state.started_ms is None or at_ms < state.started_ms:
            state.started_ms = at_ms
        return at_ms

    def start(
        self, words: str, at_ms: int | None, *, origin: str | None, is_copy: bool, is_steering: bool = False
    ) -> None:
        """A message to the agent. One that was typed while it works interrupts nothing."""
        state = self.state
        if not is_steering:
            self._turns.interrupt()
            state.answer_id = None
            state.unlinked = []
        state.is_warm_up = False
        state.tail = None
        state.recent = []
        if not state.title:
            state.title = first_words(words)[:MAX_TITLE_CHARS]
        self._turns.start(Item(Kind.USER, text=words, at_ms=at_ms), origin=origin, is_copy=is_copy)

    def mark(self, origin: str | None, is_copy: bool) -> None:
        """Say where the turn under way comes from, if nothing did when it began."""
        if self.state.turns.turn and self.state.turns.origin is None:
            self._turns.mark(origin, is_copy)

    def add(self, item: Item) -> int:
        self.state.tail = None
        return self._turns.add(item)

    def take_said(self, said: Said) -> None:
        """What a line of the program's own says."""
        if said.unknown is not None:
            self._unknown.skip(said.unknown)
        if not said.items or self.state.is_warm_up:
            return
        if said.is_retry and self.state.tail is not None and self.state.tail.kind == "retry":
            self._turns.drop_last()
        for item in said.items:
            self.add(item)
        if said.is_retry:
            self.state.tail = _Tail("retry")

    def take_user(self, line: dict[str, Any], at_ms: int | None, *, origin: str | None, is_copy: bool) -> None:
        message = message_of(line)
        self._unknown.parts(content_of(line), _USER_BLOCKS)
        state = self.state
        tail = state.tail
        if tail is not None and tail.kind == "command":
            if message.role is Role.META and message.text.strip() and not tail.has_expansion:
                tail.has_expansion = True
                return
            state.tail = None
        match message.role:
            case Role.START:
                self.start(message.text, at_ms, origin=origin, is_copy=is_copy)
            case Role.RESULT:
                self._take_results(line, at_ms)
            case Role.WARM_UP:
                state.is_warm_up = True
            case Role.META | Role.IGNORED:
                pass
            case _ if state.is_warm_up:
                pass
            case Role.SUMMARY | Role.NOTICE:
                self._note(message.text, at_ms)
            case Role.OUTPUT:
                for item in output_items(message, at_ms):
                    self.add(item)
            case Role.COMMAND:
                self._note(message.text, at_ms)
                state.tail = _Tail("command", message.text, at_ms, origin=origin, is_copy=is_copy)
            case Role.INTERRUPTION:
                self._turns.interrupt()
                self._note(message.text, at_ms)
            case Role.SHELL_COMMAND | Role.SHELL_OUTPUT:
                self._take_shell(message, at_ms)

    def take_assistant(self, line: dict[str, Any], at_ms: int | None) -> None:
        message = line.get("message")
        fields = message if isinstance(message, dict) else {}
        if line.get("isCompactSummary") is True:
            self._note(text_of(fields.get("content")), at_ms)
            return
        if self.state.is_warm_up:
            return
        if line.get("isApiErrorMessage") is True or fields.get("model") == "<synthetic>":
            words = text_of(fields.get("content"))
            if self.state.tail is not None and self.state.tail.kind == "command":
                self.state.tail = None  # this is not the model's answer to it
            if words.strip() != "No response requested.":
                self._note(answer_error(line, words), at_ms)
            return
        id_, uuid = text(fields.get("id")), uuid_of(line)
        self._begin_answer(id_)
        self._supersede(line.get("supersedesUuids"))
        first = self._next_index
        for block in blocks_of(fields.get("content")):
            self._take_block(block, id_ or uuid, at_ms)
        if uuid is not None and self._next_index > first:
            self.state.recent = [*self.state.recent, (uuid, first, self._next_index - first)][-MAX_RECENT:]

    def take_progress(self, id_: str | None, agent_id: str | None) -> None:
        """Learn which subagent a call runs."""
        state = self.state
        tool = None if id_ is None else state.turns.open_tools.get(id_)
        if id_ is not None and agent_id is not None and tool is not None and id_ in state.unlinked:
            state.unlinked.remove(id_)
            self._calls[id_] = Call(id_, tool.turn, tool.index, f"agent-{agent_id}")

    def call_with_prompt(self, prompt: str) -> str | None:
        """The id of the latest call of a subagent that was given this prompt."""
        hash_ = _hash(prompt)
        return next((id_ for known, id_ in reversed(self.state.prompts) if known == hash_), None)

    @property
    def _next_index(self) -> int:
        turns = self.state.turns
        return turns.count if turns.turn else len(turns.leading)

    def _note(self, words: str, at_ms: int | None) -> None:
        if words.strip():
            self.add(Item(Kind.NOTICE, text=words, at_ms=at_ms))

    def _begin_answer(self, id_: str | None) -> None:
        """An answer's line: the one before it has ended, and with it every call that it made."""
        state = self.state
        if state.tail is not None and state.tail.kind == "command":
            self._start_with_command(state.tail)
        if id_ is None or id_ == state.answer_id:
            return
        if state.answer_id is not None:
            # The next answer is asked for with all results: a call without one will get none, or only
            # where two programs write to one file, and then it is completed all the same.
            self._turns.interrupt()
        state.answer_id = id_

    def _start_with_command(self, tail: _Tail) -> None:
        """A command whose text for the model was answered was a message, as old versions wrote some."""
        if tail.has_expansion:
            self._turns.drop_last()
            self.start(tail.text, tail.at_ms, origin=tail.origin, is_copy=tail.is_copy)
        self.state.tail = None

    def _supersede(self, uuids: Any) -> None:
        """Take back lines in whose place this one stands.

        What stands behind them must stay where it is: there they leave a thought without words, which nobody sees.
        """
        state = self.state
        taken = set(filter(None, map(text, uuids))) if isinstance(uuids, list) else set()
        while taken and state.recent:
            uuid, first, count = state.recent[-1]
            if uuid not in taken or first + count != state.turns.count:
                break
            for _ in range(count):
                self._turns.drop_last()
            state.recent.pop()
            state.tail = None
        for uuid, first, count in state.recent if taken else ():
            for index in range(first, first + count) if uuid in taken else ():
                self._turns.replace(index, Item(Kind.THINKING, text=""))
                state.tail = None
        state.recent = [one for one in state.recent if one[0] not in taken]

    def _take_block(self, block: dict[str, Any], answer: str | None, at_ms: int | None) -> None:
        """`answer` is what all blocks of an answer have in common: its id, or where it has none that of the line."""
        match block:
            case {"type": "text", "text": str(words)}:
                self._take_text(words, answer, at_ms)
            case {"type": "thinking", "thinking": str(words)}:
                if words.strip():
                    self.add(Item(Kind.THINKING, text=words, at_ms=at_ms))
            case {"type": "tool_use" | "server_tool_use" | "mcp_tool_use"}:
                self._take_call(block, at_ms)
            case {"type": str(type_), "tool_use_id": str(id_)} if type_.endswith("_tool_result"):
                result = tools.result_of(block, None)
                is_error = isinstance(content := block.get("content"), dict) and "error_code" in content
                self._close(id_, result, at_ms, status=Status.FAILED if is_error else result.status)
            case {"type": "thinking" | "redacted_thinking" | "fallback" | "text"}:
                pass
            case _:
                self._unknown.tell("block", block.get("type"))

    def _take_text(self, words: str, answer: str | None, at_ms: int | None) -> None:
        """Text of the agent, on lines of its own joined to that of the same answer where nothing stands between."""
        if not words.strip():
            return
        state = self.state
        before = state.tail
        is_same_answer = before is not None and before.kind == "text" and before.answer == answer
        if before is not None and is_same_answer and len(before.text) <= MAX_JOINED_CHARS:
            self._turns.drop_last()
            words, at_ms = f"{before.text}\n{words}", before.at_ms
        self.add(Item(Kind.AGENT, text=words, at_ms=at_ms))
        if answer is not None:
            state.tail = _Tail("text", words, at_ms, answer)

    def _take_call(self, block: dict[str, Any], at_ms: int | None) -> None:
        id_, name, given = text(block.get("id")), text(block.get("name")), block.get("input")
        state = self.state
        state.tail = None
        name = name or "(unknown)"
        if block.get("type") == "mcp_tool_use":
            name = f"mcp__{text(block.get('server_name')) or ''}__{name}"
        index = self._turns.open_tool(id_, tools.call_item(name, given, self.cwd, at_ms))
        if id_ is not None and name in tools.TASK_TOOLS:
            self._calls[id_] = Call(id_, state.turns.turn, index)
            state.unlinked = [*state.unlinked, id_][-MAX_CALLS:]
            prompt = given.get("prompt") if isinstance(given, dict) else None
            if isinstance(prompt, str):
                state.prompts = [*state.prompts, (_hash(prompt), id_)][-MAX_CALLS:]

    def _take_results(self, line: dict[str, Any], at_ms: int | None) -> None:
        blocks = content_of(line)
        results = [block for block in blocks if block.get("type") == "tool_result"]
        more = line.get("toolUseResult") if len(results) == 1 else None
        pictures = [block for block in blocks if block.get("type") in ("image", "document")]
        for block in results if not self.state.is_warm_up else ():
            result = tools.result_of({**block, "content": _with(block.get("content"), pictures)}, more)
            pictures = []
            id_ = text(block.get("tool_use_id")) or ""
            self._close(id_, result, at_ms)

    def _close(self, id_: str, result: tools.Result, at_ms: int | None, *, status: Status | None = None) -> None:
        self.state.tail = None
        output = result.output
        if output.lstrip().startswith("<persisted-output>"):
            output = self._full_output(id_) or output
        tool = self._turns.close_tool(id_, status or result.status, output, at_ms)
        if result.stderr.strip():
            label = None if tool is None else tool.label
            self.add(Item(Kind.PROCESS, command=label, output=result.stderr, at_ms=at_ms))
        if id_ in self.state.unlinked:
            self.state.unlinked.remove(id_)
        if tool is not None and result.agent_id is not None:
            self._calls[id_] = Call(id_, tool.turn, tool.index, f"agent-{result.agent_id}")

    def _take_shell(self, message: Message, at_ms: int | None) -> None:
        """The user's own command, or its output."""
        state = self.state
        state.tail = None
        if message.role is Role.SHELL_OUTPUT:
            key, state.shell_tool = state.shell_tool or "", None
            self._turns.close_tool(key, Status.OK, message.text, at_ms)
            return
        state.shell_tool = f"! {state.turns.turn} {self._next_index}"
        label, _, more = message.text.strip().partition("\n")
        item = Item(
            Kind.TOOL,
            label=label,
            status=Status.RUNNING,
            input=message.text if more else None,
            at_ms=at_ms,
        )
        self._turns.open_tool(state.shell_tool, item)

    def end(self) -> None:
        """Nothing more will come of the turn: what runs was interrupted."""
        self._turns.interrupt()


def _with(content: Any, pictures: list[dict[str, Any]]) -> Any:
    return [*blocks_of(content), *pictures] if pictures else content


def _hash(prompt: str) -> str:
    return blake2b(prompt.strip().encode(), digest_size=8).hexdigest()
