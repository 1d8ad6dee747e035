"""Which lines a file has had, by their uuids, so that one which is written again is read once.

Whole histories are written again, so every uuid counts, and a checkpoint must not grow with the file. The latest 2,048
to 4,096 are remembered, as 6 bytes each: 32 KB of text at most, and 8 KB for a session of a thousand lines. (Of
69,000,000,000 new lines one would be taken for a known one.) A line that is older than all of these by its time may
be one of those that are forgotten, and so may one behind another that was forgotten or is one of the very first, as
histories are written again from their beginning: only then the uuids are looked up in the file itself, once a pass, at
8 bytes a line.
"""

import base64
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any, Self

KEPT = 4096
"""At this number the older half is forgotten."""

FIRST = 16
"""So many of the first ones are never forgotten."""

_HASH_BYTES = 6
_UUID = re.compile(rb'"uuid"\s*+:\s*+"([^"\\]{1,128})"')
_OVERLAP_BYTES = 256


class Seen:
    """The uuids of the lines of one file so far."""

    def __init__(self) -> None:
        self._first: dict[bytes, None] = {}
        self._recent: dict[bytes, None] = {}
        self._is_history = False
        """Whether the line before was one that is written again."""
        self._newest_ms = 0
        self._half_ms = 0
        """The newest time when the younger half began."""
        self._forgotten_ms = -1
        """No line that is forgotten has a later time."""
        self._earlier: array[int] | None = None

    def is_new(self, uuid: str, at_ms: int | None, blocks_before: Callable[[], Iterable[bytes]]) -> bool:
        """Note a uuid; whether it was not there before. `blocks_before` are the bytes before its line."""
        key = _hash(uuid.encode(), _HASH_BYTES)
        if key in self._first:
            self._is_history = True
            return False
        if key in self._recent:
            return False
        may_be_forgotten = self._is_history or (at_ms is not None and at_ms <= self._forgotten_ms)
        self._is_history = may_be_forgotten and self._forgotten_ms >= 0 and self._was_earlier(uuid, blocks_before)
        if self._is_history:
            return False
        if at_ms is not None:
            self._newest_ms = max(self._newest_ms, at_ms)
        if len(self._first) < FIRST:
            self._first[key] = None
        self._recent[key] = None
        if len(self._recent) == KEPT // 2:
            self._half_ms = self._newest_ms
        elif len(self._recent) >= KEPT:
            self._recent = dict.fromkeys(list(self._recent)[KEPT // 2 :])
            self._forgotten_ms, self._half_ms = self._half_ms, self._newest_ms
            self._earlier = None
        return True

    def has(self, uuid: str, blocks_before: Callable[[], Iterable[bytes]]) -> bool:
        """Whether a line with it was there."""
        is_recent = _hash(uuid.encode(), _HASH_BYTES) in self._recent
        return is_recent or (self._forgotten_ms >= 0 and self._was_earlier(uuid, blocks_before))

    def as_json(self) -> dict[str, Any]:
        return {
            "first": _written(self._first),
            "recent": _written(self._recent),
            "is_history": self._is_history,
            "times": [self._newest_ms, self._half_ms, self._forgotten_ms],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        seen = cls()
        seen._first, seen._recent = _read(value["first"]), _read(value["recent"])
        seen._is_history = value["is_history"]
        seen._newest_ms, seen._half_ms, seen._forgotten_ms = value["times"]
        return seen

    def _was_earlier(self, uuid: str, blocks_before: Callable[[], Iterable[bytes]]) -> bool:
        if self._earlier is None:
            self._earlier = array("Q", sorted(_uuids(blocks_before())))
        key = int.from_bytes(_hash(uuid.encode(), 8), "big")
        place = bisect_left(self._earlier, key)
        return place < len(self._earlier) and self._earlier[place] == key


def _written(keys: Iterable[bytes]) -> str:
    return base64.b64encode(b"".join(keys)).decode()


def _read(written: str) -> dict[bytes, None]:
    raw = base64.b64decode(written)
    return dict.fromkeys(raw[at : at + _HASH_BYTES] for at in range(0, len(raw), _HASH_BYTES))


def _uuids(blocks: Iterable[bytes]) -> Iterable[int]:
    """Hashes of the uuids in some bytes.

    A quote within a text is escaped, so that what a tool printed is never taken for one.
    """
    before = b""
    for block in blocks:
        text = before + block
        for found in _UUID.finditer(text):
            yield int.from_bytes(_hash(found[1], 8), "big")
        before = text[-_OVERLAP_BYTES:]


def _hash(uuid: bytes, size: int) -> bytes:
    return blake2b(uuid, digest_size=size).digest()
