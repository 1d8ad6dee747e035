"""One file: its header, titles, doubled lines, queue, and the chains of lines in it."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from indexer.decode import BadJson, decode
from indexer.sources.base import Part, SessionFacts, Side, Skipped, Transcript
from indexer.sources.claude_code import places
from indexer.sources.claude_code.blocks import output_of
from indexer.sources.claude_code.conversation import Conversation, ConversationState
from indexer.sources.claude_code.heads import DROPPED_TYPES, can_be_dropped
from indexer.sources.claude_code.notices import hook_item, system_item
from indexer.sources.claude_code.places import Beside, is_id, place_of
from indexer.sources.claude_code.queue import OPERATIONS, Queue
from indexer.sources.claude_code.seen import Seen
from indexer.sources.line_objects import object_on
from indexer.sources.values import in_calendar, text
from indexer.tail import Line, Position, Tail
from schemas.errors import quoted
from schemas.items import Item, Kind
from schemas.texts import collapsed
from schemas.times import parse_iso

CHECKPOINT_VERSION = 2

MAX_SKIPPED = 1000
"""How many lines of one part are listed as not understood,"""

MAX_REASONS = 32
"""and for how many different reasons."""

MAX_UUID_CHARS = 128
"""A longer uuid is none."""

MAX_SUMMARIES = 32
MAX_SIDES = 32
MAX_SIDE_LINES = 16
"""How many of a chain's latest lines are remembered, to which its next one is tied."""

_TREE_TYPES = frozenset({"user", "assistant", "system", "attachment", "progress"})
_KNOWN_KEYS = frozenset(
    re.findall(
        r"\w+",
        "uuid parentUuid logicalParentUuid timestamp sessionId session_id version entrypoint cwd gitBranch isSidechain"
        " agentId isMeta userType slug forkedFrom type message requestId origin promptSource permissionMode promptId"
        " planContent isCompactSummary isVisibleInTranscriptOnly toolUseResult sourceToolAssistantUUID sourceToolUseID"
        " toolDenialKind isApiErrorMessage error apiErrorStatus errorDetails isAbortedMidStream supersedesUuids subtype"
        " content level toolUseID compactMetadata microcompactMetadata retryInMs retryAttempt maxRetries durationMs"
        " hookInfos hookErrors hookCount hookAdditionalContext preventedContinuation stopReason hasOutput attachment"
        " data parentToolUseID sessionKind teamName agentName thinkingMetadata todos imagePasteIds messageCount cause"
        " mcpMeta",
    )
)


@dataclass(slots=True)
class SideState:
    """A subagent's chain of lines within its parent's file, as 1.0 wrote them."""

    id: str
    conversation: ConversationState = field(default_factory=ConversationState)
    call: str | None = None
    lines: list[str] = field(default_factory=list)
    """The uuids of its latest lines."""

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "conversation": self.conversation.as_json(),
            "call": self.call,
            "lines": self.lines,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(**{**value, "conversation": ConversationState.from_json(value["conversation"])})


@dataclass(slots=True)
class FileState:
    """What must be remembered of a file between two lines, and so between two reads."""

    is_anew: bool = True
    """Whether this reading began at the file's beginning: its last part says how many turns there are."""
    is_session: bool = False
    """Whether a line of a user or an agent was there."""
    cwd: str | None = None
    """The first directory that a line names, where the session was started."""
    project: str | None = None
    parent_id: str | None = None
    parent_call: str | None = None
    agent_title: str = ""
    """What a subagent was to do, in a few words."""
    custom_title: str = ""
    ai_title: str = ""
    summary: str = ""
    agent_name: str = ""
    summaries: list[tuple[str, str]] = field(default_factory=list)
    """Summaries whose leaf was not met yet: uuid, text."""
    forked_from: str | None = None
    version: str = ""
    pr_url: str = ""
    queue: Queue = field(default_factory=Queue)
    seen: Seen = field(default_factory=Seen)
    main: ConversationState = field(default_factory=ConversationState)
    sides: list[SideState] = field(default_factory=list)
    """The latest one last."""

    def as_json(self) -> dict[str, Any]:
        value = {name: getattr(self, name) for name in self.__slots__}
        for name in ("queue", "seen", "main"):
            value[name] = value[name].as_json()
        value["sides"] = [side.as_json() for side in self.sides]
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        state = cls(**value)
        state.summaries = [(leaf, summary) for leaf, summary in value["summaries"]]
        state.queue = Queue.from_json(value["queue"])
        state.seen = Seen.from_json(value["seen"])
        state.main = ConversationState.from_json(value["main"])
        state.sides = [SideState.from_json(side) for side in value["sides"]]
        return state


class Batch:
    """The lines of one part: what they change, and what of them was not understood."""

    def __init__(
        self, state: FileState, transcript: Transcript, tail: Tail, beside: Beside, *, is_first: bool = False
    ) -> None:
        self.state = state
        self.size = 0
        """Bytes of the lines taken."""
        self.skipped: list[Skipped] = []
        self._transcript = transcript
        place = place_of(transcript.root.path, transcript.path)
        assert place is not None, f"{transcript.path} is no transcript of this source"
        self._place = place
        self._tail = tail
        self._beside = beside
        self._is_first = is_first
        """Whether it holds the file's first line."""
        self._file_ms = transcript.mtime_ns // 1_000_000
        self._reasons: set[str] = set()
        self._line = 0
        self._main = self._conversation(state.main)
        self._sides: dict[str, tuple[SideState, Conversation]] = {}
        """Those that this part brings something of."""

    def take(self, line: Line) -> None:
        self.size += len(line.raw) + 1
        self._line = line.number
        value = object_on(line, self._skip)
        if value is None:
            return
        type_ = value.get("type")
        if not isinstance(type_, str):
            self._skip('no "type"')
        elif type_ in _TREE_TYPES:
            self._take_tree_line(type_, value)
        else:
            self._take_sidecar(type_, value)

    def wanted(self, head: bytes) -> int | None:
        """0 for a line that brings nothing, as its first bytes tell; None for all others."""
        # Any line may be the first to tell the directory, and its progress whom a call has started.
        state = self.state
        is_unwanted = state.cwd is not None and can_be_dropped(head, but_progress=bool(state.main.unlinked))
        return 0 if is_unwanted else None

    def part(self, position: Position, *, is_last: bool) -> Part:
        """All of it, to be stored together with how far the file was read."""
        state = self.state
        was_anew, state.is_anew = state.is_anew, state.is_anew and not is_last
        facts = self.facts()
        return Part(
            facts=facts,
            changes=self._main.changes(was_anew=was_anew, is_last=is_last),
            checkpoint={"version": CHECKPOINT_VERSION, "state": state.as_json(), "position": position.as_json()},
            skipped=tuple(self.skipped),
            turns=self._main.turn_count if was_anew and is_last else None,
            is_from_start=self._is_first,
            calls=tuple(self._main.calls()),
            sides=tuple(self._side_parts(facts, was_anew=was_anew)),
        )

    def give_up(self) -> bool:
        """Nothing was written for long: what runs was interrupted. Whether anything did."""
        sides = [self._opened(side) for side in self.state.sides if side.conversation.turns.has_running]
        has_running = self.state.main.turns.has_running or bool(sides)
        for conversation in (self._main, *sides):
            conversation.end()
        return has_running

    def facts(self) -> SessionFacts:
        """What the file says about its session so far."""
        state, place = self.state, self._place
        if place.is_subagent and state.parent_call is None:
            self._read_meta()
        parts = [place.folder, state.parent_id, place.id] if state.parent_id else [place.folder, place.id]
        return SessionFacts(
            key=os.fsencode("/".join(filter(None, parts))).decode("utf-8", "backslashreplace"),
            session_id=os.fsencode(place.id).decode("utf-8", "replace"),
            project=Path(self._project()),
            title=self._title(),
            agent="Claude Code",
            agent_id="claude-code",
            started_ms=state.main.started_ms,
            forked_from=state.forked_from,
            parent_id=state.parent_id,
            parent_call=state.parent_call,
        )

    # Lines of the tree.

    def _take_tree_line(self, type_: str, line: dict[str, Any]) -> None:
        state = self.state
        if state.cwd is None:
            self._take_cwd(text(line.get("cwd")))
        if type_ == "progress":
            data = line.get("data")
            if isinstance(data, dict) and data.get("type") == "agent_progress":
                self._main.take_progress(text(line.get("parentToolUseID")), text(data.get("agentId")))
            return
        written = text(line.get("timestamp"))
        own_ms = None if written is None else in_calendar(parse_iso(written))
        uuid = text(line.get("uuid"))
        if uuid is not None and len(uuid) > MAX_UUID_CHARS:
            uuid = line["uuid"] = None
        if uuid is not None:
            if not state.seen.is_new(uuid, own_ms, self._blocks_before):
                return
            if state.summaries:
                self._accept_summaries(uuid)
        self._note_envelope(line)
        conversation = self._main
        if line.get("isSidechain") is True and not self._place.is_subagent:
            conversation = self._side_of(line, uuid)
        at_ms = conversation.at(own_ms)
        match type_:
            case "user":
                self._take_user(conversation, line, uuid, at_ms)
            case "assistant":
                self._take_assistant(conversation, line, at_ms)
            case "system":
                if line.get("subtype") == "turn_duration":
                    conversation.end()  # the mark that stands at the end of a turn
                conversation.take_said(system_item(line, at_ms))
            case "attachment":
                self._take_attachment(conversation, line, uuid, at_ms)

    def _take_user(self, conversation: Conversation, line: dict[str, Any], uuid: str | None, at_ms: int | None) -> None:
        turn = conversation.turn_count
        origin, is_copy = self._origin(line, uuid)
        conversation.take_user(line, at_ms, origin=origin, is_copy=is_copy)
        if conversation is self._main and conversation.turn_count > turn:
            self.state.queue.settle()
        self.state.is_session = self.state.is_session or not conversation.state.is_warm_up

    def _take_assistant(self, conversation: Conversation, line: dict[str, Any], at_ms: int | None) -> None:
        answer = conversation.state.answer_id
        conversation.take_assistant(line, at_ms)
        if conversation is self._main and conversation.state.answer_id != answer:
            self.state.queue.forget_removals()
        self.state.is_session = self.state.is_session or not conversation.state.is_warm_up

    def _take_attachment(
        self, conversation: Conversation, line: dict[str, Any], uuid: str | None, at_ms: int | None
    ) -> None:
        attachment = line.get("attachment")
        if not isinstance(attachment, dict):
            return
        if attachment.get("type") != "queued_command":
            conversation.take_said(hook_item(attachment, at_ms))
            return
        queue = self.state.queue
        has_begun = queue.has_begun_with(attachment)
        words = queue.attach(attachment)
        origin, is_copy = self._origin(line, uuid or text(attachment.get("source_uuid")))
        if words is not None:
            conversation.start(words, at_ms, origin=origin, is_copy=is_copy, is_steering=True)
            self.state.is_session = True
        elif has_begun:
            conversation.mark(origin, is_copy)  # the queue told of the message first, without an id

    def _origin(self, line: dict[str, Any], uuid: str | None) -> tuple[str | None, bool]:
        """The id of a message wherever it stands, and whether its line gives way to another one of that id.

        Copies of a fork name their original. A session that was handed over to the background, or resumed as
        1.0 did, has all lines of the old one with their uuids, and its own in the same way: which of them are
        copies shows only in the other file.
        """
        fork = line.get("forkedFrom")
        if isinstance(fork, dict):
            return text(fork.get("messageUuid")) or uuid, True
        inner = text(line.get("sessionId"))
        is_of_another = inner is not None and inner != self._place.id and not self._place.is_subagent
        return uuid, line.get("sessionKind") == "bg" or is_of_another

    def _note_envelope(self, line: dict[str, Any]) -> None:
        state = self.state
        fork = line.get("forkedFrom")
        if state.forked_from is None and isinstance(fork, dict):
            state.forked_from = text(fork.get("sessionId"))
        if self._place.is_subagent and state.parent_id is None:
            state.parent_id = self._place.parent or text(line.get("sessionId"))
        version = text(line.get("version"))
        if version is not None and version != state.version:
            state.version = version
            if not _is_known_version(version):
                self._skip_once(f"unknown version: {quoted('.'.join(version.split('.')[:2]))}")
        if not line.keys() <= _KNOWN_KEYS:
            for key in line.keys() - _KNOWN_KEYS:
                self._skip_once(f"unknown field: {quoted(key)}")

    def _take_cwd(self, cwd: str | None) -> None:
        if cwd and "\0" not in cwd:
            self.state.cwd = self._main.cwd = cwd

    def _blocks_before(self) -> Iterable[bytes]:
        return self._tail.blocks_before(self._tail.line_offset)

    # Subagents within the file.

    def _side_of(self, line: dict[str, Any], uuid: str | None) -> Conversation:
        """The chain that a subagent's line belongs to: that of its agent, or of the line before it."""
        agent, parent = text(line.get("agentId")), text(line.get("parentUuid"))
        sides = self.state.sides
        if agent is not None:
            side = next((side for side in sides if side.id == f"agent-{agent}"), None)
        elif parent is None:
            side = None
        else:
            side = next((side for side in reversed(sides) if parent in side.lines), sides[-1] if sides else None)
        if side is None:
            id_ = f"agent-{agent}" if agent else uuid or ""
            id_ = id_ if is_id(id_) else f"{self._place.id}.{self._line}"
            side = SideState(id_, call=self._call_of(line))
        else:
            sides.remove(side)
        if sides:
            sides[-1].conversation.rest()  # so that little is remembered of each of them
        sides.append(side)
        del sides[:-MAX_SIDES]
        if uuid is not None:
            side.lines = [*side.lines, uuid][-MAX_SIDE_LINES:]
        return self._opened(side)

    def _opened(self, side: SideState) -> Conversation:
        if side.id not in self._sides:
            self._sides[side.id] = side, self._conversation(side.conversation)
        return self._sides[side.id][1]

    def _call_of(self, line: dict[str, Any]) -> str | None:
        message = line.get("message")
        prompt = output_of(message.get("content")) if isinstance(message, dict) else ""
        return self._main.call_with_prompt(prompt) if prompt else None

    def _side_parts(self, facts: SessionFacts, *, was_anew: bool) -> Iterator[Side]:
        for side, conversation in self._sides.values():
            if not conversation.turn_count:
                continue
            yield Side(
                replace(
                    facts,
                    key=f"{facts.key}/{side.id}",
                    session_id=side.id,
                    title=conversation.state.title,
                    started_ms=conversation.state.started_ms,
                    forked_from=None,
                    parent_id=facts.session_id,
                    parent_call=side.call,
                ),
                conversation.changes(was_anew=was_anew, is_last=True),
                turns=conversation.turn_count if was_anew else None,
            )

    # Lines beside the tree.

    def _take_sidecar(self, type_: str, line: dict[str, Any]) -> None:
        state = self.state
        match type_:
            case "custom-title":
                state.custom_title = self._title_text(line, "customTitle", state.custom_title)
            case "ai-title":
                state.ai_title = self._title_text(line, "aiTitle", state.ai_title)
            case "agent-name":
                state.agent_name = self._title_text(line, "agentName", state.agent_name)
            case "summary":
                leaf, summary = text(line.get("leafUuid")), text(line.get("summary"))
                if leaf is not None and summary:
                    state.summaries = [*state.summaries, (leaf, summary)][-MAX_SUMMARIES:]
                    if state.seen.has(leaf, self._blocks_before):
                        self._accept_summaries(leaf)
            case "queue-operation":
                if line.get("operation") not in OPERATIONS:
                    self._skip_once(f"unknown queue operation: {quoted(str(line.get('operation')))}")
                words = state.queue.operate(line)
                if words is not None:
                    written = text(line.get("timestamp"))
                    at_ms = self._main.at(None if written is None else in_calendar(parse_iso(written)))
                    self._main.start(words, at_ms, origin=None, is_copy=False, is_steering=True)
            case "pr-link":
                self._take_pr(line)
            case _ if type_.encode() not in DROPPED_TYPES:
                self._skip(f"unknown type: {quoted(type_)}")

    def _take_pr(self, line: dict[str, Any]) -> None:
        """The pull request that the session made, which is said again and again."""
        url, number = text(line.get("prUrl")), line.get("prNumber")
        if url and url != self.state.pr_url:
            self.state.pr_url = url
            name = f"pull request #{number}" if isinstance(number, int) else "pull request"
            at_ms = self._main.at(None)
            self._main.add(Item(Kind.NOTICE, text=f"{name}: {url}", at_ms=at_ms))

    def _title_text(self, line: dict[str, Any], key: str, before: str) -> str:
        written = text(line.get(key))
        return before if written is None else written

    def _accept_summaries(self, uuid: str) -> None:
        """Take as title what was written about a line of this file: many summaries are of other sessions."""
        state = self.state
        for leaf, summary in state.summaries:
            if leaf == uuid:
                state.summary = summary
        state.summaries = [one for one in state.summaries if one[0] != uuid]

    # What the file is.

    def _title(self) -> str:
        state = self.state
        for title in (state.custom_title, state.ai_title, state.summary):
            if title.strip():
                return title
        if self._place.is_subagent:
            return state.agent_title or state.main.title
        return (
            self._beside.summary(self._transcript.path.parent, self._place.id) or state.main.title or state.agent_name
        )

    def _project(self) -> str:
        """Where the session was started; a subagent belongs to where its parent was."""
        state = self.state
        if state.project is None:
            cwd = state.cwd
            if self._place.is_subagent and state.parent_id is not None and is_id(state.parent_id):
                folder = self._transcript.root.path / self._place.folder
                cwd = self._beside.directory(folder / f"{state.parent_id}.jsonl") or cwd
            if cwd is None:
                # The folder's name cannot be decoded; it stands for itself until a line names a directory.
                return str(self._transcript.path.parent)
            state.project = os.path.realpath(cwd) if cwd.startswith("/") else cwd
        return state.project

    def _read_meta(self) -> None:
        state = self.state
        meta = places.sidecar(self._transcript.path.with_suffix(".meta.json"))
        state.parent_call = text(meta.get("toolUseId"))
        state.agent_title = collapsed(text(meta.get("description")) or "") or state.agent_title

    def _conversation(self, state: ConversationState) -> Conversation:
        return Conversation(state, self._file_ms, self._skip_once, self._full_output, self.state.cwd)

    def _full_output(self, id_: str) -> str | None:
        """What a tool printed that was too long for its result."""
        session = self.state.parent_id if self._place.is_subagent else self._place.id
        if session is None or not is_id(session):
            return None
        raw = places.full_output(self._transcript.root.path / self._place.folder / session, id_)
        if raw is None:
            return None
        if raw[:1] in (b"[", b"{"):
            try:
                return output_of(decode(raw)) or raw.decode("utf-8", "replace")
            except BadJson:
                pass
        return raw.decode("utf-8", "replace")

    # What was not understood.

    def _skip(self, reason: str) -> None:
        if reason not in self._reasons:
            if len(self._reasons) >= MAX_REASONS:
                reason = "more that is unknown"
            self._reasons.add(reason)
        if len(self.skipped) < MAX_SKIPPED:
            self.skipped.append(Skipped(reason, self._line))

    def _skip_once(self, reason: str) -> None:
        """A new version may have a new field on every line: one line of a part tells of it."""
        if reason not in self._reasons:
            self._skip(reason)


def _is_known_version(version: str) -> bool:
    numbers = version.split(".")
    return numbers[0] in ("0", "1") or (numbers[0] == "2" and len(numbers) > 1 and numbers[1] in ("0", "1"))
