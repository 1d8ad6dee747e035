"""One file during one part: its lines in their order, and what they say about their session."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from indexer.decode import BadJson, decode
from indexer.sources.base import Part, SessionFacts, Transcript
from indexer.sources.claude_code import places
from indexer.sources.claude_code.blocks import output_of
from indexer.sources.claude_code.conversation import Conversation
from indexer.sources.claude_code.conversation_state import ConversationState
from indexer.sources.claude_code.envelope import (
    SIDECAR_KEYS,
    TREE_KEYS,
    is_known_version,
    origin_of,
    other_session_of,
    time_of,
    uuid_of,
)
from indexer.sources.claude_code.heads import DROPPED_TYPES, can_be_dropped
from indexer.sources.claude_code.notices import hook_item, system_item
from indexer.sources.claude_code.places import Beside, is_id, place_of
from indexer.sources.claude_code.queue import OPERATIONS
from indexer.sources.claude_code.sides import Sides
from indexer.sources.claude_code.state import CHECKPOINT_VERSION, FileState
from indexer.sources.claude_code.users import KNOWN_ORIGINS
from indexer.sources.line_objects import object_on
from indexer.sources.unknown import Unknown
from indexer.sources.values import text
from indexer.tail import Line, Position, Tail
from schemas.items import Item, Kind
from schemas.texts import collapsed

MAX_ALIASES = 16
"""So many other sessions that lines say they are of are remembered."""

_TREE_TYPES = frozenset({"user", "assistant", "system", "attachment", "progress"})


class Batch:
    """The lines of one part: what they change, and what of them was not understood."""

    def __init__(
        self, state: FileState, transcript: Transcript, tail: Tail, beside: Beside, *, is_first: bool = False
    ) -> None:
        self.state = state
        self.size = 0
        """Bytes of the lines taken."""
        self.unknown = Unknown()
        self._transcript = transcript
        place = place_of(transcript.root.path, transcript.path)
        assert place is not None, f"{transcript.path} is no transcript of this source"
        self._place = place
        self._tail = tail
        self._beside = beside
        self._is_first = is_first
        """Whether it holds the file's first line."""
        self._file_ms = transcript.mtime_ns // 1_000_000
        self._main = self._conversation(state.main)
        self._sides = Sides(state.sides, self._main, self._conversation)

    def take(self, line: Line) -> None:
        self.size += len(line.raw) + 1
        self.unknown.line = line.number
        value = object_on(line, self.unknown.skip)
        if value is None:
            return
        type_ = value.get("type")
        if not isinstance(type_, str):
            self.unknown.skip('no "type"')
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
            skipped=tuple(self.unknown.skipped),
            turns=self._main.turn_count if was_anew and is_last else None,
            is_from_start=self._is_first,
            calls=tuple(self._main.calls.agents.values()),
            sides=tuple(self._sides.parts(facts, was_anew=was_anew)),
        )

    def give_up(self) -> bool:
        """Nothing was written for long: what runs was interrupted. Whether anything did."""
        has_running = self.state.main.turns.has_running
        self._main.end()
        return self._sides.give_up() or has_running

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
            aliases=tuple(state.aliases),
        )

    # Lines of the tree.

    def _take_tree_line(self, type_: str, line: dict[str, Any]) -> None:
        state = self.state
        if state.cwd is None:
            self._take_cwd(text(line.get("cwd")))
        if type_ == "progress":
            data = line.get("data")
            if isinstance(data, dict) and data.get("type") == "agent_progress":
                self._main.calls.take_progress(text(line.get("parentToolUseID")), text(data.get("agentId")))
            return
        own_ms, uuid = time_of(line), uuid_of(line)
        if uuid is not None:
            if not state.seen.is_new(uuid, own_ms, self._blocks_before):
                return
            state.titles.meet(uuid)
        self._note_envelope(line)
        conversation = self._main
        if line.get("isSidechain") is True and not self._place.is_subagent:
            conversation = self._sides.of_line(line, uuid, f"{self._place.id}.{self.unknown.line}")
        at_ms = conversation.at(own_ms)
        match type_:
            case "user":
                self._take_user(conversation, line, uuid, at_ms)
            case "assistant":
                self._take_assistant(conversation, line, uuid, at_ms)
            case "system":
                if line.get("subtype") == "turn_duration":
                    conversation.end()  # the mark that stands at the end of a turn
                conversation.take_said(system_item(line, at_ms))
            case "attachment":
                self._take_attachment(conversation, line, uuid, at_ms)

    def _take_user(self, conversation: Conversation, line: dict[str, Any], uuid: str | None, at_ms: int | None) -> None:
        turn = conversation.turn_count
        origin, is_copy = origin_of(line, uuid, self._place)
        conversation.take_user(line, at_ms, origin=origin, is_copy=is_copy)
        if conversation is self._main and conversation.turn_count > turn:
            self.state.queue.settle()
        self.state.is_session = self.state.is_session or not conversation.state.is_warm_up

    def _take_assistant(
        self, conversation: Conversation, line: dict[str, Any], uuid: str | None, at_ms: int | None
    ) -> None:
        answer = conversation.state.answer_id
        conversation.take_assistant(line, uuid, at_ms)
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
        origin, is_copy = origin_of(line, uuid or text(attachment.get("source_uuid")), self._place)
        if words is not None:
            conversation.start(words, at_ms, origin=origin, is_copy=is_copy, is_steering=True)
            self.state.is_session = True
        elif has_begun:
            conversation.mark(origin, is_copy)  # the queue told of the message first, without an id

    def _note_envelope(self, line: dict[str, Any]) -> None:
        state = self.state
        fork = line.get("forkedFrom")
        if state.forked_from is None and isinstance(fork, dict):
            state.forked_from = text(fork.get("sessionId"))
        other = None if line.get("sessionId") == self._place.id else other_session_of(line, self._place)
        if other is not None and is_id(other) and other not in state.aliases and len(state.aliases) < MAX_ALIASES:
            state.aliases = [*state.aliases, other]
        if self._place.is_subagent and state.parent_id is None:
            state.parent_id = self._place.parent or text(line.get("sessionId"))
        version = text(line.get("version"))
        if version is not None and version != state.version:
            state.version = version
            if not is_known_version(version):
                self.unknown.version(version)
        self.unknown.fields(line, TREE_KEYS)
        sender = line.get("origin")
        if isinstance(sender, dict) and isinstance(kind := sender.get("kind"), str) and kind not in KNOWN_ORIGINS:
            self.unknown.tell("origin", kind)

    def _take_cwd(self, cwd: str | None) -> None:
        if cwd and "\0" not in cwd:
            self.state.cwd = self._main.calls.cwd = cwd

    def _blocks_before(self) -> Iterable[bytes]:
        return self._tail.blocks_before(self._tail.line_offset)

    # Lines beside the tree.

    def _take_sidecar(self, type_: str, line: dict[str, Any]) -> None:
        state = self.state
        if type_.encode() in DROPPED_TYPES:
            return
        if type_ == "queue-operation":
            self._take_queue(line)
        elif type_ == "pr-link":
            self._take_pr(line)
        elif not state.titles.take(type_, line, lambda uuid: state.seen.has(uuid, self._blocks_before)):
            self.unknown.type(type_)
            return
        self.unknown.fields(line, SIDECAR_KEYS)

    def _take_queue(self, line: dict[str, Any]) -> None:
        if line.get("operation") not in OPERATIONS:
            self.unknown.tell("queue operation", line.get("operation"))
        words = self.state.queue.operate(line)
        if words is not None:
            at_ms = self._main.at(time_of(line))
            self._main.start(words, at_ms, origin=None, is_copy=False, is_steering=True)

    def _take_pr(self, line: dict[str, Any]) -> None:
        """The pull request that the session made, which is said again and again."""
        url, number = text(line.get("prUrl")), line.get("prNumber")
        if url and url != self.state.pr_url:
            self.state.pr_url = url
            name = f"pull request #{number}" if isinstance(number, int) else "pull request"
            at_ms = self._main.at(None)
            self._main.add(Item(Kind.NOTICE, text=f"{name}: {url}", at_ms=at_ms))

    # What the file is.

    def _title(self) -> str:
        state = self.state
        if state.titles.best:
            return state.titles.best
        if self._place.is_subagent:
            return state.agent_title or state.main.title
        return (
            self._beside.summary(self._transcript.path.parent, self._place.id)
            or state.main.title
            or state.titles.agent_name
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
        return Conversation(state, self._file_ms, self.unknown, self._full_output, self.state.cwd)

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
