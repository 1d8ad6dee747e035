"""The lines of a thread's file, one after the other: what each of them is, and how much of it is wanted."""

from collections.abc import Callable, Collection
from typing import Any

from indexer.sources.codex import lines
from indexer.sources.codex.copied import Copied
from indexer.sources.codex.events import EVENTS
from indexer.sources.codex.header import Header, header_from_name, header_of, is_bare_header
from indexer.sources.codex.items import ITEMS
from indexer.sources.codex.known import ENVELOPE_KEYS, HEADER_KEYS, HISTORY_MODES, KNOWN_VERSIONS
from indexer.sources.codex.layers import AGENT, THINKING
from indexer.sources.codex.lines import Head, Sort
from indexer.sources.codex.names import RolloutName
from indexer.sources.codex.state import State
from indexer.sources.codex.thread import Thread
from indexer.sources.line_objects import object_on
from indexer.sources.values import text
from indexer.tail import Line


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
        self._is_base = is_base
        self._is_chained = is_chained
        self._copied = Copied(state, turn_ids, is_base=is_base, is_foreign=is_foreign, end_ordinal=end_ordinal)
        self.begin_part()

    def begin_part(self) -> None:
        """What comes from here on belongs to the next part."""
        self.thread = Thread(self.state, self._copied, self._file_ms)
        self.size = 0
        """Bytes of the lines taken."""

    def wanted(self, beginning: bytes) -> int | None:
        """How much of a line is wanted, by its beginning."""
        head = lines.head_of(beginning)
        if head is None or self.state.header is None:
            return lines.WHOLE
        sort = head.sort
        if sort is Sort.META:
            return lines.WHOLE
        if sort is Sort.WORTHLESS or (head.ordinal is not None and self._copied.is_out(int(head.ordinal))):
            return lines.NOTHING
        if sort is Sort.COMPACTION:
            return lines.BEGINNING
        if sort is Sort.CONTEXT:
            is_turn_missing = self.thread.needs_turn_id() and lines.turn_id_of(head) is None
            return lines.WHOLE if is_turn_missing or self.state.header.cwd is None else lines.BEGINNING
        if sort in _TWINS:
            return lines.NOTHING if self.thread.layers.is_preferred(_TWINS[sort]) else lines.WHOLE
        if sort in _MAY_BE_HIDDEN and lines.is_hidden(head):
            return lines.NOTHING
        if sort not in _SORTS_OF_COPIES and self._copied.leaves_out:
            return lines.NOTHING
        return lines.WHOLE

    def take(self, line: Line) -> None:
        self.size += len(line.raw) + 1
        self.thread.unknown.line = line.number
        if line.is_cut and not line.is_rest:
            head = lines.head_of(line.raw)
            if head is not None:
                self._take_head(head)
            return
        value = object_on(line, self.thread.unknown.skip)
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
                self.thread.unknown.skip('no "type"')
            return
        if not isinstance(payload, dict):
            if "payload" in value:
                self.thread.unknown.skip('"payload" is no object')
            elif not ITEMS.knows(type_):
                self.thread.unknown.type(type_)
            else:
                self._need_header()
                ITEMS.take(self.thread, value, self.thread.time(value.get("timestamp")))
            return
        self.thread.unknown.fields(value, ENVELOPE_KEYS, "")
        at_ms = self.thread.time(value.get("timestamp"))
        if type_ == "session_meta":
            self._take_meta(payload)
            return
        self._need_header()
        ordinal = value.get("ordinal")
        if self._copied.is_out(ordinal if isinstance(ordinal, int) else None):
            return
        match type_:
            case "response_item":
                ITEMS.take(self.thread, payload, at_ms)
            case "event_msg":
                EVENTS.take(self.thread, payload, at_ms)
            case "turn_context":
                self._take_directory(payload)
                self.thread.take_turn_id(text(payload.get("turn_id")), is_start=False)
            case "compacted":
                self.thread.take_compaction("compacted", at_ms)
            case _ if type_ not in lines.IGNORED_TYPES:
                self.thread.unknown.type(type_)

    def _take_directory(self, payload: dict[str, Any]) -> None:
        """A header that is missing, or cut, told none: the first turn says where it is at work."""
        header = self.state.header
        if header is not None and header.cwd is None:
            header.cwd = text(payload.get("cwd"))

    def _take_head(self, head: Head) -> None:
        at_ms = self.thread.time(head.stamp.decode("ascii", "replace") if head.stamp else None)
        if head.sort is Sort.CONTEXT:
            self.thread.take_turn_id(lines.turn_id_of(head), is_start=False)
        elif head.sort is Sort.COMPACTION:
            self.thread.take_compaction("compacted", at_ms)

    def _take_meta(self, payload: dict[str, Any]) -> None:
        state = self.state
        header = header_of(payload, self._name)
        if not state.has_meta:
            state.has_meta = True
            self.thread.unknown.fields(payload, HEADER_KEYS, "session_meta.")
            mode = payload.get("history_mode")
            if mode is not None and mode not in HISTORY_MODES:
                self.thread.unknown.tell("history_mode", mode)
            version = payload.get("cli_version")
            if version is not None and not (isinstance(version, str) and version.startswith(KNOWN_VERSIONS)):
                self.thread.unknown.version(version)
            if self._is_base:
                known = state.header
                if known is not None and known.id == header.id and header.started_ms is not None:
                    known.started_ms = min(known.started_ms or header.started_ms, header.started_ms)
            elif state.header is None or not self._is_chained or state.header.is_from_name:
                self._set_header(header)
            return
        self._copied.take_header(header)

    def _set_header(self, header: Header) -> None:
        self.state.header = header
        if header.base is not None and not self._is_chained:
            raise HasBase

    def _need_header(self) -> None:
        """A file whose header is missing has a name."""
        if self.state.header is None:
            self.thread.unknown.skip("no session_meta")
            self.state.header = header_from_name(self._name)


_TWINS = {Sort.AGENT_TWIN: AGENT, Sort.THINKING_TWIN: THINKING}
_MAY_BE_HIDDEN = frozenset({Sort.MESSAGE, Sort.REASONING})
_SORTS_OF_COPIES = frozenset({Sort.MESSAGE, Sort.BETWEEN_AGENTS, Sort.PROMPT, Sort.TASK, Sort.UNKNOWN})
"""What is looked at even in a copy that is left out, to know where it ends."""
