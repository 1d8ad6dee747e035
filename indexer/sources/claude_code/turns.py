"""The turns of one session while its lines come in: what was stored of them, and what the next part changes.

A turn is a message that was sent to the agent and everything until the next one. Notices and process items before
the first turn belong to it and stand before its message; anything else that comes first begins a turn of its own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from indexer.sources.base import Append, Change, Patch
from indexer.sources.completion import complete
from schemas.items import Item, Kind, Status

MAX_LEADING = 256
"""So many items before a first turn begin one, so that they need not be remembered."""

MAX_EARLIER = 8
"""In so many turns before the one under way something can still be put in the place of what stands there."""

MAX_OPEN_TOOLS = 128
"""Beyond these the oldest call without a result is no longer waited for."""


@dataclass(slots=True)
class OpenTool:
    """A call whose result has not come."""

    turn: int
    index: int
    label: str
    """The beginning of its label."""
    is_running: bool = True
    """False once it was taken for interrupted; a result may come all the same."""


@dataclass(slots=True)
class TurnState:
    """What must be remembered of the turns between two reads."""

    turn: int = 0
    count: int = 0
    """Items in the turn."""
    turn_ms: int = 0
    origin: str | None = None
    is_copy: bool = False
    earlier: list[tuple[int, int, str | None, bool]] = field(default_factory=list)
    """The turns before this one: number, time, origin, whether it is a copy."""
    open_tools: dict[str, OpenTool] = field(default_factory=dict)
    leading: list[Item] = field(default_factory=list)
    """Notices and process items before the first turn."""

    @property
    def has_running(self) -> bool:
        return any(tool.is_running for tool in self.open_tools.values())

    def as_json(self) -> dict[str, Any]:
        value = asdict(self)
        value["open_tools"] = {
            id_: [tool.turn, tool.index, tool.label, tool.is_running] for id_, tool in self.open_tools.items()
        }
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        state = cls(**value)
        state.earlier = [(turn, at_ms, origin, is_copy) for turn, at_ms, origin, is_copy in value["earlier"]]
        state.open_tools = {id_: OpenTool(*tool) for id_, tool in value["open_tools"].items()}
        state.leading = [Item(**{**item, "kind": Kind(item["kind"])}) for item in value["leading"]]
        return state


@dataclass(slots=True)
class _Piece:
    """The items of a turn that one part brings."""

    at_ms: int
    first: int
    items: list[Item]
    origin: str | None
    is_copy: bool
    is_cut: bool = False
    """Whether items that an earlier part brought, from `first` on, are to go."""
    is_marked_anew: bool = False
    """Whether where the turn comes from was told after it began."""


class Turns:
    """The turns of a session during one part."""

    def __init__(self, state: TurnState, file_ms: int) -> None:
        """`file_ms` is the time of a turn for which nothing else tells one."""
        self.state = state
        self._file_ms = file_ms
        self._pieces: dict[int, _Piece] = {}
        """By turn. The turn under way is among them, as this part may be what ends it."""
        self._patches: dict[tuple[int, int], Patch] = {}
        self._replaced: list[Append] = []
        """Items that stand in the place of what an earlier part brought."""
        if state.turn:
            self._pieces[state.turn] = self._piece(state.count, [])

    @property
    def next_index(self) -> int:
        """Where the next item will stand, in the turn under way or before the first."""
        return self.state.count if self.state.turn else len(self.state.leading)

    def start(self, item: Item | None, *, origin: str | None = None, is_copy: bool = False) -> None:
        """Begin a turn with its message, or without one."""
        state = self.state
        if state.turn:
            state.earlier = [*state.earlier, self._standing][-MAX_EARLIER:]
        items = [*state.leading, *([] if item is None else [item])]
        state.leading = []
        times = [item.at_ms] if item is not None else [one.at_ms for one in items]
        state.turn += 1
        state.turn_ms = next((at_ms for at_ms in times if at_ms is not None), self._file_ms)
        state.count = len(items)
        state.origin, state.is_copy = origin, is_copy
        self._pieces[state.turn] = self._piece(0, items)

    def add(self, item: Item) -> int:
        """Put an item behind the others; its index."""
        state = self.state
        if state.turn == 0:
            if item.kind in (Kind.NOTICE, Kind.PROCESS) and len(state.leading) < MAX_LEADING:
                state.leading.append(item)
                return len(state.leading) - 1
            state.leading.append(item)
            self.start(None)
            return state.count - 1
        self._pieces[state.turn].items.append(item)
        state.count += 1
        return state.count - 1

    def open_tool(self, id_: str | None, item: Item) -> int:
        """Put the item of a call that a result with its id will complete."""
        index = self.add(item)
        if id_ is not None:
            tools = self.state.open_tools
            if id_ in tools:
                self._interrupt(tools.pop(id_))
            elif len(tools) >= MAX_OPEN_TOOLS:
                self._interrupt(tools.pop(next(iter(tools))))
            tools[id_] = OpenTool(self.state.turn, index, (item.label or "")[:200])
        return index

    def close_tool(self, id_: str, status: Status, output: str | None, at_ms: int | None) -> OpenTool | None:
        """Complete a call where it stands; one that is not known becomes an item of its own, without a label."""
        tool = self.state.open_tools.pop(id_, None)
        if tool is None:
            self.add(Item(Kind.TOOL, status=status, output=output, at_ms=at_ms))
        else:
            complete(Patch(tool.turn, tool.index, status=status, output=output), self._pieces, self._patches)
        return tool

    def interrupt(self) -> None:
        """Take the calls that run for interrupted. The result of one may still come."""
        for tool in self.state.open_tools.values():
            self._interrupt(tool)

    def _interrupt(self, tool: OpenTool) -> None:
        if tool.is_running:
            tool.is_running = False
            complete(Patch(tool.turn, tool.index, status=Status.FAILED), self._pieces, self._patches)

    def drop_last(self) -> None:
        """Take back the item that was added last."""
        state = self.state
        if state.turn == 0:
            state.leading.pop()
            return
        state.count -= 1
        piece = self._pieces[state.turn]
        if piece.items:
            piece.items.pop()
        else:
            piece.first, piece.is_cut = state.count, True
        if state.open_tools:
            state.open_tools = {
                id_: tool
                for id_, tool in state.open_tools.items()
                if (tool.turn, tool.index) != (state.turn, state.count)
            }

    def mark(self, origin: str | None, is_copy: bool) -> None:
        """Say where the turn under way comes from, which was not known when it began."""
        state = self.state
        piece = self._pieces[state.turn]
        state.origin = piece.origin = origin
        state.is_copy = piece.is_copy = is_copy
        piece.is_marked_anew = True

    def replace(self, turn: int, index: int, item: Item) -> None:
        """Put another item in the place of one of the turn under way, or of one not long before."""
        piece = self._pieces.get(turn)
        if piece is not None and index >= piece.first:
            piece.items[index - piece.first] = item
        else:
            for known, at_ms, origin, is_copy in (*self.state.earlier, self._standing):
                if known == turn:
                    self._replaced.append(Append(turn, at_ms, index, (item,), origin=origin, is_copy=is_copy))
        self.state.open_tools = {
            id_: tool for id_, tool in self.state.open_tools.items() if (tool.turn, tool.index) != (turn, index)
        }

    def changes(self, *, was_anew: bool, is_last: bool) -> Iterator[Change]:
        """What this part changes, in the order in which it is to be stored.

        In a reading from the beginning a turn is whole once the next one begins or the file ends; until then
        what an earlier reading had of it stays, so that nobody sees it half.
        """
        state = self.state
        yield from self._patches.values()
        yield from self._replaced
        for turn, piece in self._pieces.items():
            is_whole = piece.is_cut or (was_anew and (is_last or turn != state.turn))
            if piece.items or is_whole or piece.is_marked_anew:
                yield Append(turn, piece.at_ms, piece.first, tuple(piece.items), is_whole, piece.origin, piece.is_copy)

    @property
    def _standing(self) -> tuple[int, int, str | None, bool]:
        state = self.state
        return state.turn, state.turn_ms, state.origin, state.is_copy

    def _piece(self, first: int, items: list[Item]) -> _Piece:
        return _Piece(self.state.turn_ms, first, items, self.state.origin, self.state.is_copy)
