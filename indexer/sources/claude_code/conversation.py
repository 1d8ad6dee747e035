"""One chain of lines, a session's own or a subagent's within it: from lines to turns."""

from collections.abc import Callable
from typing import Any

from indexer.sources.base import Change
from indexer.sources.claude_code import tools
from indexer.sources.claude_code.blocks import blocks_of, raw_content, text_of
from indexer.sources.claude_code.calls import Calls
from indexer.sources.claude_code.conversation_state import ConversationState, Tail
from indexer.sources.claude_code.notices import Said, answer_error, output_items
from indexer.sources.claude_code.turns import Turns
from indexer.sources.claude_code.users import Role, message_of
from indexer.sources.claude_code.wrappers import unwrapped
from indexer.sources.pictures import first_words
from indexer.sources.unknown import Unknown
from indexer.sources.values import text
from schemas.items import Item, Kind, Status

MAX_JOINED_CHARS = 20_000
"""A piece of an answer is joined to the one before it as long as that is not longer, as it must be remembered."""

MAX_RECENT = 32
"""So many of the latest lines of answers can still be taken back."""

_USER_BLOCKS = frozenset({"text", "image", "document", "tool_result"})

MAX_TITLE_CHARS = 1000


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
        """`unknown` is told what is not understood; the rest is as for `Calls`."""
        self.state = state
        self._turns = Turns(state.turns, file_ms)
        self._unknown = unknown
        self.calls = Calls(state, self._turns, full_output, cwd)

    def changes(self, *, was_anew: bool, is_last: bool) -> tuple[Change, ...]:
        return tuple(self._turns.changes(was_anew=was_anew, is_last=is_last))

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
        if not state.title:
            state.title = first_words(unwrapped(words) or words)[:MAX_TITLE_CHARS]
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
            self.state.tail = Tail("retry")

    def take_user(self, line: dict[str, Any], at_ms: int | None, *, origin: str | None, is_copy: bool) -> None:
        message = message_of(line)
        self._unknown.parts(raw_content(line), _USER_BLOCKS)
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
                if not state.is_warm_up:
                    self.calls.take_results(line, at_ms)
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
                state.tail = Tail("command", message.text, at_ms, origin=origin, is_copy=is_copy)
            case Role.INTERRUPTION:
                self._turns.interrupt()
                self._note(message.text, at_ms)
            case Role.SHELL_COMMAND:
                self.calls.take_shell_command(message.text, at_ms)
            case Role.SHELL_OUTPUT:
                self.calls.take_shell_output(message.text, at_ms)

    def take_assistant(self, line: dict[str, Any], uuid: str | None, at_ms: int | None) -> None:
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
        id_ = text(fields.get("id"))
        self._begin_answer(id_)
        self._supersede(line.get("supersedesUuids"))
        first = self._turns.next_index
        for block in blocks_of(fields.get("content")):
            self._take_block(block, id_ or uuid, at_ms)
        if uuid is not None and (count := self._turns.next_index - first) > 0:
            self.state.recent = [*self.state.recent, (uuid, self.turn_count, first, count)][-MAX_RECENT:]

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

    def _start_with_command(self, tail: Tail) -> None:
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
        if not taken:
            return
        while state.recent:
            uuid, turn, first, count = state.recent[-1]
            if uuid not in taken or (turn, first + count) != (state.turns.turn, state.turns.count):
                break
            for _ in range(count):
                self._turns.drop_last()
            state.recent.pop()
            state.tail = None
        for uuid, turn, first, count in state.recent:
            for index in range(first, first + count) if uuid in taken else ():
                self._turns.replace(turn, index, Item(Kind.THINKING, text=""))
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
                self.calls.take_call(block, at_ms)
            case {"type": str(type_), "tool_use_id": str(id_)} if type_.endswith("_tool_result"):
                result = tools.result_of(block, None)
                is_error = isinstance(content := block.get("content"), dict) and "error_code" in content
                self.calls.close(id_, result, at_ms, status=Status.FAILED if is_error else result.status)
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
            state.tail = Tail("text", words, at_ms, answer)

    def end(self) -> None:
        """Nothing more will come of the turn: what runs was interrupted."""
        self._turns.interrupt()
