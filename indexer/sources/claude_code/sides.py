"""Subagents whose lines stand in the file of their parent, mixed with its own, as 1.0 wrote them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from indexer.sources.base import SessionFacts, Side
from indexer.sources.claude_code.blocks import output_of, raw_content
from indexer.sources.claude_code.conversation import Conversation
from indexer.sources.claude_code.conversation_state import ConversationState
from indexer.sources.claude_code.places import is_id
from indexer.sources.claude_code.state import SideState
from indexer.sources.values import text

MAX_SIDES = 32
MAX_SIDE_LINES = 16
"""How many of a chain's latest lines are remembered, to which its next one is tied."""


class Sides:
    """The chains of a file's subagents during one part."""

    def __init__(
        self, sides: list[SideState], main: Conversation, open: Callable[[ConversationState], Conversation]
    ) -> None:
        """`sides` are kept up to date in place, the latest one last; `open` takes one up in this part."""
        self._sides = sides
        self._main = main
        self._open = open
        self._opened: dict[str, tuple[SideState, Conversation]] = {}
        """Those that this part brings something of."""

    def of_line(self, line: dict[str, Any], uuid: str | None, id_by_place: str) -> Conversation:
        """The chain that a subagent's line belongs to: that of its agent, or of the line before it.

        A new one without any id is called by its place.
        """
        agent, parent = text(line.get("agentId")), text(line.get("parentUuid"))
        sides = self._sides
        if agent is not None:
            side = next((side for side in sides if side.id == f"agent-{agent}"), None)
        elif parent is None:
            side = None
        else:
            side = next((side for side in reversed(sides) if parent in side.lines), sides[-1] if sides else None)
        if side is None:
            id_ = f"agent-{agent}" if agent else uuid or ""
            side = SideState(id_ if is_id(id_) else id_by_place, call=self._call_of(line))
        else:
            sides.remove(side)
        if sides:
            sides[-1].conversation.rest()  # so that little is remembered of each of them
        sides.append(side)
        del sides[:-MAX_SIDES]
        if uuid is not None:
            side.lines = [*side.lines, uuid][-MAX_SIDE_LINES:]
        return self._conversation(side)

    def give_up(self) -> bool:
        """Nothing was written for long: what runs was interrupted. Whether anything did."""
        running = [side for side in self._sides if side.conversation.turns.has_running]
        for side in running:
            self._conversation(side).end()
        return bool(running)

    def parts(self, facts: SessionFacts, *, was_anew: bool) -> Iterator[Side]:
        """What this part brings of them; `facts` are those of the file's own session."""
        for side, conversation in self._opened.values():
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
                    aliases=(),
                    parent_id=facts.session_id,
                    parent_call=side.call,
                ),
                conversation.changes(was_anew=was_anew, is_last=True),
                turns=conversation.turn_count if was_anew else None,
            )

    def _conversation(self, side: SideState) -> Conversation:
        if side.id not in self._opened:
            self._opened[side.id] = side, self._open(side.conversation)
        return self._opened[side.id][1]

    def _call_of(self, line: dict[str, Any]) -> str | None:
        prompt = output_of(raw_content(line))
        return self._main.calls.call_with_prompt(prompt) if prompt else None
