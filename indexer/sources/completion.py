"""Completing a tool where it stands, be it in the part that is being read or in what an earlier one brought."""

from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from typing import Protocol

from indexer.sources.base import Patch
from schemas.items import Item

_COMPLETED = ("label", "status", "input", "output")


class Piece(Protocol):
    """The items of a turn that a part brings, from index `first` on."""

    first: int
    items: list[Item]


def complete(patch: Patch, pieces: Mapping[int, Piece], patches: MutableMapping[tuple[int, int], Patch]) -> None:
    """Apply a patch to the item, if this part brings it; else keep it, together with an earlier one for the item."""
    given = {name: value for name in _COMPLETED if (value := getattr(patch, name)) is not None}
    place = patch.turn, patch.index
    piece = pieces.get(patch.turn)
    if piece is not None and patch.index >= piece.first:
        index = patch.index - piece.first
        piece.items[index] = replace(piece.items[index], **given)
    elif place in patches:
        patches[place] = replace(patches[place], **given)
    else:
        patches[place] = patch
