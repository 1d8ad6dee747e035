"""How the items of a turn are packed: chunks of consecutive items of one layer, compressed.

A chunk is the unit of writing, of the index and of verification. Its body is a zstd frame around JSON,
a list of items, each a list that starts with the item's index in its turn:

    conversation   [index, kind, text, at_ms]            tools: [index, "tool", label, status, at_ms]
    detail         [index, kind, text, at_ms]            tools: [index, "tool", input, output]
                                                         process: [index, "process", command, output, at_ms]
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, TypeAlias

import orjson

from indexer.store import compression
from schemas.items import CONVERSATION_KINDS, Item, Kind, Layer, Status

CLOSED_BYTES = 16_384
"""A chunk this large takes no more items: a growing turn rewrites its last open chunk only."""

Row: TypeAlias = list[Any]
"""An item's part in one layer, as a body holds it; the first element is its index."""


def row_of(index: int, item: Item, layer: Layer) -> Row | None:
    """The part of an item that belongs to a layer; None where it has none there."""
    if layer is Layer.CONVERSATION:
        if item.kind not in CONVERSATION_KINDS:
            return None
        if item.kind is Kind.TOOL:
            return [index, item.kind, item.label, item.status, item.at_ms]
        return [index, item.kind, item.text or "", item.at_ms]
    if item.kind is Kind.THINKING:
        return [index, item.kind, item.text or "", item.at_ms]
    if item.kind is Kind.PROCESS:
        return [index, item.kind, item.command, item.output, item.at_ms]
    if item.kind is Kind.TOOL and (item.input or item.output):
        return [index, item.kind, item.input, item.output]
    return None


def item_of(row: Row, layer: Layer) -> Item:
    """The item that a row came from, as far as its layer holds it."""
    kind = Kind(row[1])
    if kind is Kind.TOOL:
        if layer is Layer.CONVERSATION:
            return Item(kind, label=row[2], status=Status(row[3]), at_ms=row[4])
        return Item(kind, input=row[2], output=row[3])
    if kind is Kind.PROCESS:
        return Item(kind, command=row[2], output=row[3], at_ms=row[4])
    return Item(kind, text=row[2], at_ms=row[3])


def merged(conversation: Iterable[Row], detail: Iterable[Row]) -> list[tuple[int, Item]]:
    """The items of a turn, with their indexes, from the rows of both layers."""
    items = {row[0]: item_of(row, Layer.CONVERSATION) for row in conversation}
    for row in detail:
        item = item_of(row, Layer.DETAIL)
        known = items.get(row[0])
        items[row[0]] = item if known is None else replace(known, input=item.input, output=item.output)
    return sorted(items.items())


def texts_of(row: Row, layer: Layer) -> Iterable[str]:
    """The texts of a row that a search looks through, in the order of reading."""
    if row[1] != Kind.TOOL and row[1] != Kind.PROCESS:
        return (row[2],)
    if layer is Layer.CONVERSATION:
        return (row[2],) if row[2] else ()
    return tuple(text for text in row[2:4] if text)


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows that make up one chunk, as JSON; what is hashed, measured and compressed."""

    first: int
    last: int
    json: bytes

    @property
    def hash(self) -> bytes:
        return blake2b(self.json, digest_size=12).digest()


def pack(rows: Sequence[Row]) -> list[Packed]:
    """Rows cut into chunks, each closed by the row with which it reaches its size."""
    packed: list[Packed] = []
    pieces: list[bytes] = []
    size = start = 0
    for place, row in enumerate(rows):
        pieces.append(orjson.dumps(row))
        size += len(pieces[-1])
        if size >= CLOSED_BYTES or place == len(rows) - 1:
            packed.append(Packed(rows[start][0], row[0], b"[" + b",".join(pieces) + b"]"))
            pieces, size, start = [], 0, place + 1
    return packed


@dataclass(frozen=True, slots=True)
class Stored:
    """A chunk as the store has it, without its body."""

    id: int
    first: int
    last: int
    hash: bytes


def rearranged(
    known: Sequence[Stored], rows: Sequence[Row], start: int, end: int | None, load: Callable[[int], list[Row]]
) -> Iterator[tuple[int | None, Packed | None]]:
    """How to store `rows` as all that a layer of a turn has from item `start` to before `end` (None: its end).

    `known` are the layer's chunks with items in that range, or where there are none the open chunk before
    it. A chunk keeps the item it began with, so that a change leaves all other chunks as they are.
    Answers pairs of a known chunk (None: a new one) and what it holds now (None: nothing any more).
    """
    firsts = [chunk.first for chunk in known]
    groups: list[list[Row]] = [[] for _ in range(len(known) + 1)]
    for row in rows:
        groups[bisect_right(firsts, row[0])].append(row)
    for packed in pack(groups[0]):
        yield None, packed
    for chunk, group in zip(known, groups[1:], strict=True):
        if chunk.first < start or (end is not None and chunk.last >= end):
            old = load(chunk.id)
            before = [row for row in old if row[0] < start]
            after = [row for row in old if end is not None and row[0] >= end]
            group = before + group + after
        pieces = pack(group)
        yield chunk.id, pieces[0] if pieces else None
        for packed in pieces[1:]:
            yield None, packed


def compress(packed: bytes) -> bytes:
    """The stored body of a chunk, from its JSON."""
    return compression.compress(packed)


def unpack(body: bytes) -> list[Row]:
    """The rows of a stored body."""
    return rows_of(json_of(body))


def json_of(body: bytes) -> bytes:
    """The JSON of a stored body."""
    return compression.decompress(body)


def rows_of(json: bytes) -> list[Row]:
    rows: list[Row] = orjson.loads(json)
    return rows
