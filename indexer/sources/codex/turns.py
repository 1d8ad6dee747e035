"""Items as they come, put into turns, and what of that is new in one part of a reading."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from indexer.sources.base import Append, Change, Patch
from indexer.sources.completion import complete
from schemas.items import Item, Kind, Status

Place = tuple[int, int]
"""Turn and index of an item; (0, 0) for one that has none."""


@dataclass(slots=True)
class TurnsState:
    """What must be remembered of the turns between two lines, and so between two reads."""

    turn: int = 0
    count: int = 0
    """Items in the turn."""
    turn_ms: int = 0
    origin: str | None = None
    is_copy: bool = False
    is_anew: bool = True
    """Whether this reading began at the file's beginning: its last part says how many turns there are."""
    leading: list[Item] = field(default_factory=list)
    """Process items before the first turn: they belong to it where it starts without a message, else to none."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        state = cls(**value)
        state.leading = [Item(**{**item, "kind": Kind(item["kind"])}) for item in value["leading"]]
        return state


@dataclass(slots=True)
class _Piece:
    """The items of a turn that one part brings."""

    at_ms: int
    first: int
    origin: str | None
    is_copy: bool
    items: list[Item] = field(default_factory=list)
    is_marked_anew: bool = False
    """Whether origin or copy changed, so that the piece is told even if it has no items."""


class Turns:
    """The turns of one part."""

    def __init__(self, state: TurnsState) -> None:
        self.state = state
        self._pieces: dict[int, _Piece] = {}
        """By turn. The turn under way is among them, as this part may be what ends it."""
        if state.turn:
            self._pieces[state.turn] = _Piece(state.turn_ms, state.count, state.origin, state.is_copy)
        self._patches: dict[Place, Patch] = {}
        """Completed tools of earlier parts; one of this part is completed in its piece."""

    def start(self, item: Item, at_ms: int, origin: str | None, is_copy: bool) -> None:
        """Start a turn with a message."""
        self._start([item], at_ms, origin, is_copy)

    def add(self, item: Item, at_ms: int, is_copy: bool) -> Place:
        """Put an item behind the others. What comes before the first message, and is not all processes, is a turn."""
        state = self.state
        if state.turn == 0:
            state.leading.append(item)
            if item.kind is Kind.PROCESS:
                return 0, 0
            self._start(state.leading, at_ms, None, is_copy)
        else:
            self._pieces[state.turn].items.append(item)
            state.count += 1
        return state.turn, state.count - 1

    def mark(self, origin: str | None, is_copy: bool) -> None:
        """Say anew where the turn under way comes from."""
        state = self.state
        if state.turn and (origin, is_copy) != (state.origin, state.is_copy):
            piece = self._pieces[state.turn]
            state.origin = piece.origin = origin
            state.is_copy = piece.is_copy = is_copy
            piece.is_marked_anew = True

    def complete(
        self,
        place: Place,
        *,
        label: str | None = None,
        status: Status | None = None,
        input: str | None = None,
        output: str | None = None,
    ) -> None:
        """Complete a tool where it stands; None leaves what it had."""
        turn, index = place
        patch = Patch(turn, index, label=label, status=status, input=input, output=output)
        complete(patch, self._pieces, self._patches)

    def changes(self, *, is_last: bool) -> Iterator[Change]:
        """What this part changes.

        In a reading from the beginning a turn is whole once the next one begins or the file ends; until then
        what an earlier reading had of it stays, so that nobody sees it half.
        """
        state = self.state
        yield from self._patches.values()
        for turn, piece in self._pieces.items():
            is_whole = state.is_anew and (is_last or turn != state.turn)
            if piece.items or is_whole or piece.is_marked_anew:
                items = tuple(piece.items)
                yield Append(turn, piece.at_ms, piece.first, items, is_whole, piece.origin, piece.is_copy)

    def _start(self, items: list[Item], at_ms: int, origin: str | None, is_copy: bool) -> None:
        state = self.state
        state.leading = []
        state.turn += 1
        state.count, state.turn_ms, state.origin, state.is_copy = len(items), at_ms, origin, is_copy
        self._pieces[state.turn] = _Piece(at_ms, 0, origin, is_copy, items)
