"""Transcripts that are one JSON document each, which is rewritten as a whole at every change.

A writer that writes over its file is met in the middle of it: the file is empty, or cut. Such a read says nothing.
A document that did not change has no parts. One that did is told from its beginning, and the store keeps what is new.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from indexer.decode import BadJson, decode_object
from indexer.files import opened
from indexer.sources.base import Append, Checkpoint, Part, SessionFacts, Skipped, Unreadable, Unsettled
from schemas.items import Item

PART_CHARS = 4_000_000
"""About how much text goes into one part."""

_READ_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class Document:
    """What a file held, all of it of one moment."""

    fields: dict[str, Any]
    signature: list[int]
    mtime_ns: int


@dataclass(slots=True)
class Turn:
    """A turn as a document tells it. `origin` and `is_copy` are as in `Append`."""

    at_ms: int
    items: list[Item] = field(default_factory=list)
    origin: str | None = None
    is_copy: bool = False


def read_document(path: Path, since: Checkpoint | None, *, list_key: str, settle_ms: int) -> Document | None:
    """The document in a file, an object that has a list `list_key`; None where it is as it was at the checkpoint.

    Raises:
        Unsettled: it was written to meanwhile, or is no such document and was changed less than `settle_ms` ago.
        Unreadable: it is no such document, and at rest.
        OSError: it cannot be read.
    """
    with opened(path) as descriptor:
        before = os.fstat(descriptor)
        if since is not None and since.get("signature") == _signature(before):
            return None
        blocks = []
        while block := os.read(descriptor, _READ_BYTES):
            blocks.append(block)
        after = os.fstat(descriptor)
    raw = b"".join(blocks)
    if _signature(before) != _signature(after) or len(raw) != after.st_size:
        raise Unsettled
    try:
        return Document(_decoded(raw, list_key), _signature(after), after.st_mtime_ns)
    except BadJson as error:
        if abs(time.time_ns() - after.st_mtime_ns) < settle_ms * 1_000_000:
            raise Unsettled from error
        raise Unreadable(error.reason) from error


def parts_of(
    document: Document,
    facts: SessionFacts,
    turns: Sequence[Turn],
    skipped: Sequence[Skipped],
    state: Mapping[str, Any] | None = None,
) -> Iterator[Part]:
    """All of a document, in parts. Only the last one's checkpoint says that it was read, and holds `state` as well."""
    changes: list[Append] = []
    size = 0
    is_first = True
    for number, turn in enumerate(turns, start=1):
        first = 0
        for index, item in enumerate(turn.items, start=1):
            size += _size(item)
            if size >= PART_CHARS:
                changes.append(_append(number, turn, first, index))
                yield Part(facts, tuple(changes), {"signature": None}, is_from_start=is_first)
                changes, size, first, is_first = [], 0, index, False
        if first < len(turn.items) or not turn.items:
            changes.append(_append(number, turn, first, len(turn.items)))
    yield Part(
        facts,
        tuple(changes),
        {**(state or {}), "signature": document.signature},
        tuple(skipped),
        turns=len(turns),
        is_from_start=is_first,
    )


def _append(number: int, turn: Turn, first: int, end: int) -> Append:
    is_whole = end == len(turn.items)
    return Append(number, turn.at_ms, first, tuple(turn.items[first:end]), is_whole, turn.origin, turn.is_copy)


def _signature(stat: os.stat_result) -> list[int]:
    return [stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_dev]


def _decoded(raw: bytes, list_key: str) -> dict[str, Any]:
    """The document.

    Raises:
        BadJson: empty, cut, or something else.
    """
    if not raw or raw.isspace():
        raise BadJson("empty")
    if not raw.rstrip().endswith(b"}"):  # tells most cut documents without parsing them
        raise BadJson("not a JSON object, or cut")
    fields = decode_object(raw)
    if not isinstance(fields.get(list_key), list):
        raise BadJson(f'no "{list_key}"')
    return fields


def _size(item: Item) -> int:
    texts = (item.text, item.label, item.input, item.output, item.command)
    return sum(len(part) for part in texts if part is not None)
