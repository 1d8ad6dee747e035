"""Turns that a fork or resume brought along: which they are, and of which turns."""

from dataclasses import dataclass, field

from indexer.store import chunks
from indexer.store.reader import Session, StoreReader
from schemas.items import Item, Kind, Layer
from search_api.naming import Names

TurnOf = tuple[int, int]
"""A session and the number of a turn in it."""


@dataclass(slots=True)
class Copies:
    """Knows copies from originals, in one state of the store.

    Where a turn comes from is told by its transcript. It is a copy for as long as it says nothing else than its
    original: a turn that went on in its own way after it was copied has a text of its own, which must be found.
    """

    store: StoreReader
    _originals: dict[TurnOf, TurnOf | None] = field(default_factory=dict)
    _said: dict[TurnOf, list[Item]] = field(default_factory=dict)

    def original(self, session: int, turn: int) -> TurnOf | None:
        """The turn that this one is a copy of, if it is one."""
        place = session, turn
        if place not in self._originals:
            origins = self.store.origins_of(session, turn)
            found = (one for one in origins.turns if self._says_the_same(place, one, is_whole=origins.are_whole))
            self._originals[place] = next(found, None)
            self._said.clear()
        return self._originals[place]

    def reference(self, names: Names, session: int, turn: int) -> str | None:
        """What a turn was copied from, by a name that can be passed back."""
        original = self.original(session, turn)
        origin = None if original is None else self.store.session(original[0])
        return None if original is None or origin is None else f"{names.of(origin)}:{original[1]}"

    def _says_the_same(self, copy: TurnOf, original: TurnOf, *, is_whole: bool) -> bool:
        """Whether a copy has the items of its original, or where it may have been made before its end, the first."""
        copied, items = self._items(copy), self._items(original)
        if is_whole:
            return copied == items
        return len(copied) <= len(items) and all(map(_is_within, copied, items))

    def _items(self, place: TurnOf) -> list[Item]:
        """What a turn says, without times: copies are given new ones."""
        if place not in self._said:
            bodies = self.store.bodies_of_turn(*place, tuple(Layer))
            rows = [(body.layer, row) for body in bodies for row in chunks.unpack(body.body)]
            items = chunks.merged(
                [row for layer, row in rows if layer is Layer.CONVERSATION],
                [row for layer, row in rows if layer is Layer.DETAIL],
            )
            self._said[place] = [_timeless(item) for _, item in items]
        return self._said[place]


def is_outdated(store: StoreReader, session: Session, turn: int, at_ms: int) -> bool:
    """Whether the index still has a copy under the time that it had before its original was known."""
    return session.is_retimed and store.turn_ms(session.id, turn) != at_ms


def _timeless(item: Item) -> Item:
    return Item(item.kind, item.text, item.label, item.status, item.input, item.output, item.command)


def _is_within(copied: Item, item: Item) -> bool:
    """Whether an item is that of the original, or what that was before it was completed."""
    if copied.kind is not Kind.TOOL:
        return copied == item
    return copied.label == item.label and copied.input in (None, item.input) and copied.output in (None, item.output)
