"""The lines of a thread, one after the other, as items in turns.

Everything is written twice, as what went to and from the model (`response_item`) and as what the interface
showed (`event_msg`), and which of the twins comes first varies. So each kind is taken from one layer, and
from the other only where a file has nothing of the kind in the first. A reading that has taken from the
second layer when the first turns up begins anew, knowing better: what a file says does not depend on how
far it was read when.
"""

from collections import Counter
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any

from indexer.sources.base import Skipped
from indexer.sources.codex import lines, notices, prompts, tools
from indexer.sources.codex.calls import Calls
from indexer.sources.codex.header import Header, header_from_name, header_of, is_bare_header
from indexer.sources.codex.known import ENVELOPE_KEYS, EVENT_KEYS, HEADER_KEYS, HISTORY_MODES, ITEM_KEYS
from indexer.sources.codex.lines import Head, Sort
from indexer.sources.codex.names import RolloutName
from indexer.sources.codex.state import State
from indexer.sources.codex.tools import Call, Result
from indexer.sources.codex.turns import Place, Turns
from indexer.sources.codex.values import digest, fields, joined, readable
from indexer.sources.line_objects import object_on
from indexer.sources.values import in_calendar, text
from indexer.tail import Line
from schemas.errors import quoted
from schemas.items import Item, Kind, Status
from schemas.times import parse_iso

USER, AGENT, THINKING = "user", "agent", "thinking"
"""The kinds that are taken from one layer."""

MAX_TITLE_CHARS = 400

MAX_REASONS, MAX_TIMES = 64, 500
"""How many things that are not understood are told of in one part, and how often each."""


class BetterLayer(Exception):
    """A kind was taken from one layer, and here is the one to take it from: begin anew with what is now known."""


class HasBase(Exception):
    """The history before this file lies in another one."""


class Rollout:
    """Takes the lines of one file of a thread: what they change, and what of them was not understood."""

    def __init__(
        self,
        state: State,
        name: RolloutName,
        file_ms: int,
        turn_ids: Callable[[str], Collection[str] | None],
        *,
        is_base: bool = False,
        is_foreign: bool = False,
        end_ordinal: int | None = None,
        is_chained: bool = False,
    ) -> None:
        """`turn_ids` answers the turn ids in a thread's own file, None where there is no such file.

        `is_base` is a file that another one continues, `is_foreign` one of another thread's, `end_ordinal` where
        it stops to count if nobody told the byte, `is_chained` whether it is known what stands before the file.
        """
        self.state = state
        self._name = name
        self._file_ms = file_ms
        self._turn_ids = turn_ids
        self._is_base = is_base
        self._is_foreign = is_foreign
        self._end_ordinal = end_ordinal
        self._is_chained = is_chained
        self._source_turns: Collection[str] | None = None
        """The ids of the turns of the thread that is copied from, once they were asked for."""
        self._line: int | None = None
        self.begin_part()

    def begin_part(self) -> None:
        """What comes from here on belongs to the next part."""
        self.turns = Turns(self.state.turns)
        self.size = 0
        """Bytes of the lines taken."""
        self.skipped: list[Skipped] = []
        self.calls = Calls(self.state, self.turns, self._add)
        self._reasons: Counter[str] = Counter()

    # Lines.

    def wanted(self, beginning: bytes) -> int | None:
        """How much of a line is wanted, by its beginning."""
        head = lines.head_of(beginning)
        if head is None or self.state.header is None:
            return lines.WHOLE
        sort = head.sort
        if sort is Sort.META:
            return lines.WHOLE
        if sort is Sort.WORTHLESS or (head.ordinal is not None and self._is_out(int(head.ordinal))):
            return lines.NOTHING
        if sort is Sort.COMPACTION:
            return lines.BEGINNING
        if sort is Sort.CONTEXT:
            return lines.WHOLE if self._needs_turn_id() and lines.turn_id_of(head) is None else lines.BEGINNING
        if sort in _TWINS:
            return lines.NOTHING if self._is_preferred(_TWINS[sort]) else lines.WHOLE
        if sort in _MAY_BE_HIDDEN and lines.is_hidden(head):
            return lines.NOTHING
        if sort not in _SORTS_OF_COPIES and self._leaves_out:
            return lines.NOTHING
        return lines.WHOLE

    def take(self, line: Line) -> None:
        self.size += len(line.raw) + 1
        self._line = line.number
        if line.is_cut and not line.is_rest:
            head = lines.head_of(line.raw)
            if head is not None:
                self._take_head(head)
            return
        value = object_on(line, self.skip)
        if value is not None:
            self.take_value(value)

    def take_value(self, value: dict[str, Any]) -> None:
        """Take a line, or an item of one that has no envelope."""
        payload, type_ = value.get("payload"), value.get("type")
        if not isinstance(type_, str):
            if is_bare_header(value) and self.state.header is None:
                self.state.has_meta = True
                self._set_header(header_of(value, self._name))
            elif "record_type" not in value:
                self.skip('no "type"')
            return
        if not isinstance(payload, dict):
            if "payload" in value:
                self.skip('"payload" is no object')
            elif type_ not in _ITEMS and type_ not in lines.IGNORED_ITEMS:
                self._skip_unknown(type_)
            else:
                self._need_header()
                self._take_item(value, self._time(value.get("timestamp")))
            return
        self._count_unknown(value, ENVELOPE_KEYS, "")
        at_ms = self._time(value.get("timestamp"))
        if type_ == "session_meta":
            self._take_meta(payload)
            return
        self._need_header()
        ordinal = value.get("ordinal")
        if self._is_out(ordinal if isinstance(ordinal, int) else None):
            return
        match type_:
            case "response_item":
                self._take_item(payload, at_ms)
            case "event_msg":
                self._take_event(payload, at_ms)
            case "turn_context":
                self._take_turn_id(text(payload.get("turn_id")), is_start=False)
            case "compacted":
                self._take_compaction("compacted", at_ms)
            case _ if type_ not in lines.IGNORED_TYPES:
                self._skip_unknown(type_)

    def _take_head(self, head: Head) -> None:
        at_ms = self._time(head.stamp.decode("ascii", "replace") if head.stamp else None)
        if head.sort is Sort.CONTEXT:
            self._take_turn_id(lines.turn_id_of(head), is_start=False)
        elif head.sort is Sort.COMPACTION:
            self._take_compaction("compacted", at_ms)

    # Headers, and what is copied.

    def _take_meta(self, payload: dict[str, Any]) -> None:
        state = self.state
        header = header_of(payload, self._name)
        if not state.has_meta:
            state.has_meta = True
            self._count_unknown(payload, HEADER_KEYS, "session_meta.")
            mode = payload.get("history_mode")
            if mode is not None and mode not in HISTORY_MODES:
                self.skip(f"unknown history_mode: {quoted(str(mode))}")
            if self._is_base:
                known = state.header
                if known is not None and known.id == header.id and header.started_ms is not None:
                    known.started_ms = min(known.started_ms or header.started_ms, header.started_ms)
            elif state.header is None or not self._is_chained or state.header.is_from_name:
                self._set_header(header)
            return
        own = state.header
        if own is None or own.id == header.id or self._is_base or state.is_copying or state.is_copy_over:
            return
        # A header of another thread says that a copy of that one's history begins. Where it ends can be told by
        # an ordinal, or by the source's own file; with neither, all of it is kept as if it were the thread's own.
        if own.own_ordinal is None and own.copied_from is not None:
            state.is_copying = self._turn_ids(own.copied_from) is not None
            state.is_copy_over = not state.is_copying

    def _set_header(self, header: Header) -> None:
        self.state.header = header
        if header.base is not None and not self._is_chained:
            raise HasBase

    def _need_header(self) -> None:
        """A file whose header is missing has a name."""
        if self.state.header is None:
            self.skip("no session_meta")
            self.state.header = header_from_name(self._name)

    def _is_out(self, ordinal: int | None) -> bool:
        """Whether a line is of the parent's history, or stood there after the thread left it."""
        header = self.state.header
        if ordinal is None or header is None:
            return False
        if self._end_ordinal is not None and ordinal >= self._end_ordinal:
            return True
        return not self._is_base and header.own_ordinal is not None and ordinal < header.own_ordinal

    @property
    def _is_copy(self) -> bool:
        return self._is_foreign or self.state.is_copying

    @property
    def _leaves_out(self) -> bool:
        """Whether the lines are a subagent's copy of what its parent's session has, which can be very much."""
        header = self.state.header
        return self.state.is_copying and header is not None and header.is_subagent

    def _needs_turn_id(self) -> bool:
        return self.state.is_copying or (self.state.turns.turn > 0 and self.state.turns.origin is None)

    def _take_turn_id(self, turn_id: str | None, *, is_start: bool) -> None:
        """Note the program's own turn: told when it starts, or in the context of each call of the model."""
        if turn_id is None:
            return
        state = self.state
        source = state.header.copied_from if state.header else None
        leaves_out = self._leaves_out
        if state.is_copying and source is not None:
            if self._source_turns is None:
                self._source_turns = self._turn_ids(source) or ()
            if turn_id in self._source_turns:
                state.held = None
            else:
                state.is_copying, state.is_copy_over = False, True
                if not leaves_out and not is_start and state.turns.origin is None:
                    # Where only contexts tell the turn, its message stands before the first of them.
                    self.turns.mark(None, is_copy=False)
        if is_start:
            state.turn_id = turn_id
        elif state.turns.turn and state.turns.origin is None:
            self.turns.mark(self._origin(turn_id), state.turns.is_copy)
        if leaves_out and not state.is_copying and state.held is not None:
            (words, at_ms), state.held = state.held, None
            self._start_turn(words, at_ms, None if is_start else self._origin(turn_id))

    def _origin(self, turn_id: str) -> str:
        """The same in every copy: the program's turn, and which of its messages where it has more than one."""
        state = self.state
        state.origin_count = state.origin_count + 1 if turn_id == state.origin_id else 1
        state.origin_id = turn_id
        return turn_id if state.origin_count == 1 else f"{turn_id}/{state.origin_count}"

    # Layers.

    @property
    def _stretch(self) -> str:
        return f"{self.state.file}{' copied' if self.state.is_copying else ''}"

    def _is_preferred(self, kind: str) -> bool:
        return kind in self.state.layers.get(self._stretch, ())

    def _prefer(self, kind: str) -> None:
        """Note that the layer to take a kind from is there."""
        if not self._is_preferred(kind):
            self.state.layers.setdefault(self._stretch, []).append(kind)
            if kind in self.state.fallbacks.get(self._stretch, ()):
                raise BetterLayer

    def _may_fall_back(self, kind: str) -> bool:
        if self._is_preferred(kind):
            return False
        used = self.state.fallbacks.setdefault(self._stretch, [])
        if kind not in used:
            used.append(kind)
        return True

    # What goes to and from the model.

    def _take_item(self, item: dict[str, Any], at_ms: int | None) -> None:
        type_ = item.get("type")
        if not isinstance(type_, str) or type_ in lines.IGNORED_ITEMS:
            return
        take = _ITEMS.get(type_)
        if take is None:
            self._skip_unknown(f"response_item/{type_}")
            return
        self._count_unknown(item, ITEM_KEYS, f"{type_}.")
        if not self._leaves_out or type_ in ("message", "agent_message"):
            take(self, item, at_ms)

    def _message(self, item: dict[str, Any], at_ms: int | None) -> None:
        role, content = item.get("role"), item.get("content")
        if role == "user":
            self._user_item(content, at_ms)
        elif role == "assistant" and not self._leaves_out:
            words = joined(content)
            if words.strip():
                self._prefer(AGENT)
                self._add(Item(Kind.AGENT, text=words, at_ms=at_ms))
        elif role not in ("assistant", "developer", "system"):
            self.skip(f"unknown role: {quoted(str(role))}")

    def _user_item(self, content: Any, at_ms: int | None) -> None:
        state = self.state
        header = state.header
        if header is not None and header.cwd is None:
            header.cwd = prompts.working_directory(content)
        if not self._leaves_out:
            for command, printed in prompts.shell_commands(content):
                self.calls.take_lone("item", None, tools.shell_call(command), tools.result(printed), at_ms)
        if prompts.is_abort_marker(content):
            state.is_after_abort = True
        words = prompts.prompt_of_item(content)
        if words is None:
            return
        was_after_abort, state.is_after_abort = state.is_after_abort, False
        if was_after_abort and digest(words) == state.first_prompt:
            return  # sent again by the program
        state.sent = digest(words), self._or_known(at_ms)
        if self._may_fall_back(USER):
            self._take_prompt("item", words, at_ms)

    def _agent_message(self, item: dict[str, Any], at_ms: int | None) -> None:
        """A message between agents: what a subagent is sent is its task."""
        words = joined(item.get("content")).strip()
        if not words or notices.is_encrypted(words):
            return
        header = self.state.header
        recipient, author = text(item.get("recipient")), text(item.get("author"))
        if header is not None and header.is_subagent:
            me = header.agent_path
            is_inbound = recipient in (me, header.id) if me and recipient else author != me or me is None
            if is_inbound:
                if not self._leaves_out:
                    self._prefer(USER)
                self._take_prompt("agent_message", words, at_ms)
                return
        if not self._leaves_out:
            self._notice(notices.between_agents(author, recipient, words), at_ms)

    def _reasoning(self, item: dict[str, Any], at_ms: int | None) -> None:
        words = joined(item.get("summary"), "\n\n") or joined(item.get("content"), "\n\n")
        if words.strip():
            self._prefer(THINKING)
            self._add(Item(Kind.THINKING, text=words, at_ms=at_ms))

    def _function_call(self, item: dict[str, Any], at_ms: int | None) -> None:
        name = text(item.get("name")) or ""
        given = item.get("arguments", item.get("input"))
        self.calls.open(
            text(item.get("call_id")) or text(item.get("id")), name, text(item.get("namespace")), given, at_ms
        )

    def _local_shell_call(self, item: dict[str, Any], at_ms: int | None) -> None:
        action = fields(item.get("action"))
        id_ = text(item.get("call_id")) or text(item.get("id"))
        self.calls.open(id_, "local_shell", None, {key: value for key, value in action.items() if key != "type"}, at_ms)

    def _tool_search_call(self, item: dict[str, Any], at_ms: int | None) -> None:
        self.calls.open(text(item.get("call_id")), "tool_search", None, item.get("arguments"), at_ms)

    def _call_output(self, item: dict[str, Any], at_ms: int | None) -> None:
        output = item.get("output")
        if item.get("type") == "tool_search_output":
            output = readable(item.get("tools") or "")
        id_, told = text(item.get("call_id")), tools.result(output)
        tool = self.state.tools.get(id_) if id_ else None
        if id_ is None or tool is None:
            # Its call is lost; what it says is not.
            item_ = Item(Kind.TOOL, status=told.status or Status.OK, output=told.output, at_ms=at_ms)
            self.calls.note(id_, self._add(item_), told)
            return
        self.calls.close(tool, told)
        if tool.starts_agent and (agent := notices.started_agent(output)) is not None:
            self.calls.note_agent(id_, tool, agent)

    def _web_search_call(self, item: dict[str, Any], at_ms: int | None) -> None:
        call = tools.web_search_call(item.get("action"), None)
        self.calls.take_lone("item", text(item.get("id")), call, Result(None, tools.event_status(item)), at_ms)

    def _image_generation_call(self, item: dict[str, Any], at_ms: int | None) -> None:
        label = f"image generation: {tools.first_line(text(item.get('revised_prompt')) or '')}".removesuffix(": ")
        call = Call(label, text(item.get("revised_prompt")))
        self.calls.take_lone("item", text(item.get("id")), call, Result(None, tools.event_status(item)), at_ms)

    # What the interface showed.

    def _take_event(self, event: dict[str, Any], at_ms: int | None) -> None:
        type_ = event.get("type")
        if not isinstance(type_, str) or type_ in lines.IGNORED_EVENTS:
            return
        take = _EVENTS.get(type_)
        if take is None:
            self._skip_unknown(f"event_msg/{type_}")
            return
        self._count_unknown(event, EVENT_KEYS, f"{type_}.")
        if not self._leaves_out or type_ in lines.PROMPT_EVENTS or type_ in lines.TASK_EVENTS:
            take(self, event, at_ms)

    def _user_message(self, event: dict[str, Any], at_ms: int | None) -> None:
        if event.get("kind") not in (None, "plain"):
            return
        has_images = bool(event.get("images") or event.get("local_images"))
        words = prompts.prompt_of_event(text(event.get("message")) or "", has_images)
        self._shown_prompt("user_message", words, at_ms)

    def _shown_prompt(self, kind: str, words: str, at_ms: int | None) -> None:
        if not self._leaves_out:
            self._prefer(USER)
        self._take_prompt(kind, words, at_ms)

    def _event_agent(self, event: dict[str, Any], at_ms: int | None) -> None:
        words = joined(event.get("message") or event.get("content") or event.get("text"))
        if words.strip() and self._may_fall_back(AGENT):
            self._add(Item(Kind.AGENT, text=words, at_ms=at_ms))

    def _event_thinking(self, event: dict[str, Any], at_ms: int | None) -> None:
        told = event.get("summary_text") or event.get("text") or event.get("raw_content")
        words = joined(told, "\n\n")
        if words.strip() and self._may_fall_back(THINKING):
            self._add(Item(Kind.THINKING, text=words, at_ms=at_ms))

    def _item_completed(self, event: dict[str, Any], at_ms: int | None) -> None:
        item = fields(event.get("item"))
        type_ = item.get("type")
        if not isinstance(type_, str):
            return
        if type_ == "UserMessage":
            self._shown_prompt("UserMessage", prompts.prompt_of_user_message(item.get("content")), at_ms)
        elif self._leaves_out or type_ in _IGNORED_SHOWN:
            return
        elif (take := _SHOWN.get(type_)) is not None:
            take(self, item, at_ms)
        else:
            self._skip_unknown(f"item_completed/{type_}")

    def _task_started(self, event: dict[str, Any], at_ms: int | None) -> None:
        self._take_turn_id(text(event.get("turn_id")), is_start=True)

    def _task_complete(self, event: dict[str, Any], at_ms: int | None) -> None:
        self.calls.interrupt()
        self.state.turn_id = None
        if event.get("error"):
            error = event["error"]
            self._notice(f"error: {text(fields(error).get('message')) or readable(error)}", at_ms)

    def _turn_aborted(self, event: dict[str, Any], at_ms: int | None) -> None:
        self.calls.interrupt()
        self.state.turn_id = None
        self._notice(notices.aborted(event), at_ms)

    def _compaction_event(self, event: dict[str, Any], at_ms: int | None) -> None:
        self._take_compaction(str(event.get("type")), at_ms)

    def _take_compaction(self, kind: str, at_ms: int | None) -> None:
        """Up to three records tell of one compaction. What it put in the place of the history is no message."""
        if self._leaves_out:
            return
        told = self.state.compactions
        if told and kind not in told:
            told.append(kind)
            return
        self._notice("context compacted", at_ms)
        self.state.compactions = [kind]

    def _noticed(self, event: dict[str, Any], at_ms: int | None) -> None:
        words = notices.notice(event)
        if words:
            self._notice(words, at_ms)

    def _thread_name(self, event: dict[str, Any], at_ms: int | None) -> None:
        name = text(event.get("thread_name"))
        if name is not None and not self._is_copy:
            self.state.name = name, at_ms or 0

    # What the interface showed of tools.

    def _command_end(self, event: dict[str, Any], at_ms: int | None) -> None:
        call = tools.shell_call(event.get("command"))
        output = (
            text(event.get("aggregated_output")) or text(event.get("stdout")) or text(event.get("formatted_output"))
        )
        told = Result(output or None, tools.event_status(event))
        self.calls.take_event(event, call, told, at_ms, is_lone=event.get("source") == "user_shell")
        self.calls.add_stderr(call, event, at_ms)

    def _patch_end(self, event: dict[str, Any], at_ms: int | None) -> None:
        call = tools.changes_call(event.get("changes"))
        self.calls.take_event(event, call, Result(text(event.get("stdout")) or None, tools.event_status(event)), at_ms)
        self.calls.add_stderr(call, event, at_ms)

    def _mcp_end(self, event: dict[str, Any], at_ms: int | None) -> None:
        told = fields(event.get("invocation")) or event
        call = tools.mcp_call(told.get("server"), told.get("tool"), told.get("arguments"))
        self.calls.take_event(event, call, tools.mcp_result(event), at_ms)

    def _web_search_end(self, event: dict[str, Any], at_ms: int | None) -> None:
        call = tools.web_search_call(event.get("action"), event.get("query"))
        self.calls.take_event(event, call, Result(None, tools.event_status(event)), at_ms, is_lone=True)

    def _extension(self, item: dict[str, Any], at_ms: int | None) -> None:
        kind = str(item.get("kind") or item.get("name") or "extension")
        if "search" in kind.lower():
            self._web_search_end(item, at_ms)
            return
        told = {key: value for key, value in item.items() if key not in ("type", "id", "kind", "status")}
        call = Call(kind, readable(told) if told else None)
        self.calls.take_event(item, call, Result(None, tools.event_status(item)), at_ms)

    def _view_image(self, event: dict[str, Any], at_ms: int | None) -> None:
        self.calls.take_event(event, tools.call("view_image", None, event), Result(None, Status.OK), at_ms)

    def _image_end(self, event: dict[str, Any], at_ms: int | None) -> None:
        prompt = text(event.get("revised_prompt")) or ""
        call = Call(f"image generation: {tools.first_line(prompt)}".removesuffix(": "), prompt or None)
        told = Result(text(event.get("saved_path")), tools.event_status(event))
        self.calls.take_event(event, call, told, at_ms, is_lone=True)

    def _dynamic_request(self, event: dict[str, Any], at_ms: int | None) -> None:
        call = tools.call(text(event.get("tool")) or "", None, event.get("arguments"))
        self.calls.take_event(event, call, Result(None, None), at_ms, is_end=False)

    def _dynamic_response(self, event: dict[str, Any], at_ms: int | None) -> None:
        call = tools.call(text(event.get("tool")) or "", None, event.get("arguments"))
        content = event.get("content_items", event.get("contentItems"))
        self.calls.take_event(event, call, Result(joined(content) or None, tools.event_status(event)), at_ms)

    def _collab_end(self, event: dict[str, Any], at_ms: int | None) -> None:
        kind = str(event.get("tool") or event.get("type")).removesuffix("_end").removeprefix("collab_")
        id_ = text(event.get("call_id")) or text(event.get("id"))
        call = tools.call(kind, None, {"prompt": event.get("prompt") or ""})
        self.calls.take_event(event, call, Result(None, None), at_ms)
        tool, agent = self.state.tools.get(id_ or ""), text(event.get("new_thread_id"))
        if agent is None and "spawn" in kind:
            receivers = event.get("receiver_thread_ids")
            agent = text(receivers[0]) if isinstance(receivers, list) and receivers else None
        if id_ is not None and tool is not None and agent:
            self.calls.note_agent(id_, tool, agent)

    # Turns.

    def _take_prompt(self, kind: str, words: str, at_ms: int | None) -> None:
        """A message starts a turn, also one that was typed while the agent works."""
        state = self.state
        hashed = digest(words)
        last = state.last_prompt
        if last is not None and last[0] != kind and last[1] == hashed and not last[2]:
            state.last_prompt = kind, hashed, True  # written once more, in the other form
            return
        state.last_prompt = kind, hashed, False
        # A turn's time is told once: it must be the same whether the item was all there was, or the event was, too.
        at = state.sent[1] if state.sent is not None and state.sent[0] == hashed else self._or_known(at_ms)
        state.sent = None
        if self._leaves_out:
            state.held = words, at
            return
        self._start_turn(words, at, None if state.turn_id is None else self._origin(state.turn_id))

    def _start_turn(self, words: str, at_ms: int, origin: str | None) -> None:
        state = self.state
        self.calls.interrupt()
        state.first_prompt = state.first_prompt or digest(words)
        state.title = state.title or prompts.title_of(words)[:MAX_TITLE_CHARS]
        state.program, state.twins, state.compactions = None, [], []
        self.turns.start(Item(Kind.USER, text=words, at_ms=at_ms), at_ms, origin, self._is_copy)

    def _add(self, item: Item) -> Place:
        self.state.compactions = []
        if item.kind is not Kind.NOTICE:
            self.state.is_after_abort = False
        return self.turns.add(item, self._or_known(item.at_ms), self._is_copy)

    def _notice(self, words: str, at_ms: int | None) -> None:
        self._add(Item(Kind.NOTICE, text=words, at_ms=at_ms))

    def tell_of_gap(self) -> None:
        """Say that what stood before is not there any more."""
        self._notice("what came before in this thread is missing", None)

    def _time(self, stamp: Any) -> int | None:
        at_ms = _stamp_ms(stamp) if isinstance(stamp, str) else None
        if at_ms is not None:
            self.state.last_ms = at_ms
        return at_ms

    def _or_known(self, at_ms: int | None) -> int:
        """A time, else that of the record before, of the header, or of the file."""
        header = self.state.header
        known = (at_ms, self.state.last_ms, header.started_ms if header else None)
        return next((one for one in known if one is not None), self._file_ms)

    # What is not understood.

    def _count_unknown(self, value: dict[str, Any], known: frozenset[str], prefix: str) -> None:
        if not value.keys() <= known:
            for key in value.keys() - known:
                self.skip(f"unknown field: {prefix}{quoted(key)}")

    def _skip_unknown(self, type_: str) -> None:
        self.skip(f"unknown type: {quoted(type_)}")

    def skip(self, reason: str) -> None:
        """Count something that is not understood."""
        self._reasons[reason] += 1
        if self._reasons[reason] <= MAX_TIMES and len(self._reasons) <= MAX_REASONS:
            self.skipped.append(Skipped(reason, self._line))


@lru_cache(maxsize=4096)
def _whole_second_ms(second: str) -> int | None:
    return in_calendar(parse_iso(f"{second}Z"))


def _stamp_ms(stamp: str) -> int | None:
    """A line's time; of the thousands of lines of a second only the first one costs anything."""
    if len(stamp) == 24 and stamp[19] == "." and stamp[23] == "Z" and stamp[20:23].isdecimal():
        second_ms = _whole_second_ms(stamp[:19])
        return None if second_ms is None else second_ms + int(stamp[20:23])
    return in_calendar(parse_iso(stamp))


_Take = Callable[[Rollout, dict[str, Any], int | None], None]

_ITEMS: dict[str, _Take] = {
    "message": Rollout._message,
    "agent_message": Rollout._agent_message,
    "reasoning": Rollout._reasoning,
    "function_call": Rollout._function_call,
    "custom_tool_call": Rollout._function_call,
    "local_shell_call": Rollout._local_shell_call,
    "tool_search_call": Rollout._tool_search_call,
    "function_call_output": Rollout._call_output,
    "custom_tool_call_output": Rollout._call_output,
    "tool_search_output": Rollout._call_output,
    "web_search_call": Rollout._web_search_call,
    "image_generation_call": Rollout._image_generation_call,
}

_EVENTS: dict[str, _Take] = {
    "user_message": Rollout._user_message,
    "item_completed": Rollout._item_completed,
    "agent_message": Rollout._event_agent,
    "agent_reasoning": Rollout._event_thinking,
    "agent_reasoning_raw_content": Rollout._event_thinking,
    "task_started": Rollout._task_started,
    "turn_started": Rollout._task_started,
    "task_complete": Rollout._task_complete,
    "turn_complete": Rollout._task_complete,
    "turn_aborted": Rollout._turn_aborted,
    "context_compacted": Rollout._compaction_event,
    "error": Rollout._noticed,
    "guardian_assessment": Rollout._noticed,
    "entered_review_mode": Rollout._noticed,
    "exited_review_mode": Rollout._noticed,
    "thread_rolled_back": Rollout._noticed,
    "thread_name_updated": Rollout._thread_name,
    "exec_command_end": Rollout._command_end,
    "patch_apply_end": Rollout._patch_end,
    "mcp_tool_call_end": Rollout._mcp_end,
    "web_search_end": Rollout._web_search_end,
    "view_image_tool_call": Rollout._view_image,
    "image_generation_end": Rollout._image_end,
    "dynamic_tool_call_request": Rollout._dynamic_request,
    "dynamic_tool_call_response": Rollout._dynamic_response,
    "collab_agent_spawn_end": Rollout._collab_end,
    "collab_agent_interaction_end": Rollout._collab_end,
    "collab_waiting_end": Rollout._collab_end,
    "collab_close_end": Rollout._collab_end,
    "collab_resume_end": Rollout._collab_end,
}

_TWINS = {Sort.AGENT_TWIN: AGENT, Sort.THINKING_TWIN: THINKING}
_MAY_BE_HIDDEN = frozenset({Sort.MESSAGE, Sort.REASONING})
_SORTS_OF_COPIES = frozenset({Sort.MESSAGE, Sort.BETWEEN_AGENTS, Sort.PROMPT, Sort.TASK, Sort.UNKNOWN})
"""What is looked at even in a copy that is left out, to know where it ends."""

_SHOWN: dict[str, _Take] = {
    "AgentMessage": Rollout._event_agent,
    "Plan": Rollout._event_agent,
    "Reasoning": Rollout._event_thinking,
    "CommandExecution": Rollout._command_end,
    "FileChange": Rollout._patch_end,
    "McpToolCall": Rollout._mcp_end,
    "WebSearch": Rollout._web_search_end,
    "Extension": Rollout._extension,
    "ImageView": Rollout._view_image,
    "ImageGeneration": Rollout._image_end,
    "CollabAgentToolCall": Rollout._collab_end,
    "ContextCompaction": Rollout._compaction_event,
    "EnteredReviewMode": Rollout._noticed,
    "ExitedReviewMode": Rollout._noticed,
}
"""The items of `item_completed`."""

_IGNORED_SHOWN = frozenset({"SubAgentActivity", "HookPrompt"})
