"""Following a JSON Lines file: the lines added since a position, and whether the file still is the same.

Only `\\n` ends a line. Memory stays at one block plus the longest line, and a line costs its length,
however long it is.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from indexer.decode import BadJson, decode_object
from indexer.files import opened

HEAD_BYTES = 4096
"""How many bytes are remembered, by their hash, of a file's head and of what stands before the position."""

BLOCK_BYTES = 1 << 20

PEEK_BYTES = 4096
"""How much of a line's beginning is shown before it is read."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far a file was read, and what tells that it is still the same file."""

    offset: int
    """Bytes read; just past a newline, or `is_amid_line`."""
    lines: int
    """Lines that end before the offset, the last one included where `is_amid_line`."""
    is_amid_line: bool
    """Whether the last line was read before it had its line end; the rest of it, if any, is no line."""
    device: int
    inode: int
    size: int
    """The file's size when this was read; more than `offset` where the last line was torn."""
    mtime_ns: int
    head_hash: str
    """BLAKE2b of the first min(4096, offset) bytes: another one means that the file was replaced."""
    edge_hash: str
    """The same of the last min(4096, offset) bytes before the offset: it tells of cuts behind the head."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(**value)


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end, blank ones left out."""

    number: int
    """Counted from 1."""
    raw: bytes
    """Its bytes, without NULs at its ends, which a crash leaves where it cut a write."""
    has_nuls: bool = False
    """Whether NULs were taken off; with nothing else on the line `raw` is empty."""
    is_rest: bool = False
    """Whether this is what came, later, of a line that was read before it had its end."""
    is_cut: bool = False
    """Whether this is only as much of the line's beginning as is wanted."""


class Tail:
    """One pass over the lines of a file that came after a position.

    It reads no further than the file's size when it was opened. Use it as a context, iterate over
    it, and ask for the `position` behind the line that came last.

        with Tail(path, since) as tail:
            for line in tail: ...

    Raises, on entering and while iterating:
        OSError: the file cannot be read.
    """

    def __init__(
        self,
        path: Path,
        since: Position | None = None,
        *,
        settle_ms: int = 2000,
        until: int | None = None,
        wanted: Callable[[bytes], int | None] | None = None,
    ) -> None:
        """`until` is where to stop, in bytes, just past a newline.

        `wanted` is shown the beginning of each line, 4 KiB or all of it, once the lines before it were
        yielded. It says how many bytes of that are enough, 0 for a line that is not to be yielded at all, or
        None for the whole line. What is not wanted is never put together, however long it is.
        """
        self._path = path
        self._since = since
        self._settle_ms = settle_ms
        self._until = until
        self._opened = opened(path)
        self.is_anew = since is None
        """Whether the pass starts at the file's beginning: there was no position, or the file was replaced."""
        self.is_torn = False
        """After the pass: whether an unfinished last line is left that was touched less than `settle_ms` ago."""
        self.wanted = wanted
        """As above; it may also be set when the pass has been entered."""

    def __enter__(self) -> Self:
        self._descriptor = self._opened.__enter__()
        self._stat = os.fstat(self._descriptor)
        since = self._since
        if since is not None and not self._continues(since):
            since, self.is_anew = None, True
        self._offset = since.offset if since else 0
        self._lines = since.lines if since else 0
        self._is_amid_line = since.is_amid_line if since else False
        self._block, self._block_offset = b"", self._offset
        self._edge_of_earlier = b""
        self._remember()
        self.line_offset = self._offset
        """Where the line begins that came last."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.__exit__(kind, error, trace)

    def __iter__(self) -> Iterator[Line]:
        pieces: list[bytes] = []
        is_judged = False
        """Whether enough was seen, of the line that a block cut, to know how much of it is wanted: `enough`."""
        enough: int | None = None
        for block in self._blocks():
            start = 0
            while (stop := block.find(b"\n", start)) >= 0:
                raw = block[start:stop]
                if pieces:
                    raw = b"".join([*pieces, raw])
                    pieces.clear()
                start = stop + 1
                is_rest = self._is_amid_line
                if not is_judged and not is_rest:
                    enough = self._enough(raw)
                self.line_offset = self._offset
                self._offset, self._is_amid_line = self._block_offset + start, False
                self._lines += not is_rest
                if enough is not None:
                    raw = raw[:enough]
                if raw and not raw.isspace():
                    yield self._line(raw, is_rest=is_rest, is_cut=enough is not None)
                is_judged, enough = False, None
            pieces.append(block[start:])
            if not is_judged and not self._is_amid_line and self.wanted is not None:
                beginning = b"".join(pieces)[:PEEK_BYTES]
                if len(beginning) == PEEK_BYTES:
                    is_judged, enough = True, self._enough(beginning)
            if enough is not None:
                pieces[:] = [b"".join(pieces)[:enough]]
        if enough is not None:  # without its end nobody knows whether it is whole
            self.is_torn = not self._is_quiet()
            return
        last = b"".join(pieces)
        if self._is_amid_line or not last or last.isspace():
            return
        if not self._is_quiet():
            self.is_torn = True
        elif _is_object(last):
            enough = None if is_judged else self._enough(last)
            self.line_offset = self._offset
            self._offset += len(last)
            self._is_amid_line = True
            self._lines += 1
            if enough is None or enough > 0:
                yield self._line(last[:enough], is_cut=enough is not None)

    @property
    def position(self) -> Position:
        """Behind the line that came last, from the bytes as they were read in this pass.

        Were head or edge read again here, a file that is rewritten meanwhile would get the hashes of what
        it holds now for lines of what it held before, and nobody would ever notice.
        """
        return Position(
            offset=self._offset,
            lines=self._lines,
            is_amid_line=self._is_amid_line,
            device=self._stat.st_dev,
            inode=self._stat.st_ino,
            size=self._stat.st_size,
            mtime_ns=self._stat.st_mtime_ns,
            head_hash=_hash(self._head[: self._offset]),
            edge_hash=_hash(self._edge()),
        )

    def _edge(self) -> bytes:
        """The last bytes before the offset."""
        used = self._offset - self._block_offset
        if used >= HEAD_BYTES:
            return self._block[used - HEAD_BYTES : used]
        if used >= 0:
            return (self._before + self._block[:used])[-HEAD_BYTES:]
        return self._edge_of_earlier  # an unfinished line began in an earlier block

    def _remember(self) -> None:
        self._head = self._pread(min(HEAD_BYTES, self._offset), 0)
        self._before = self._pread(min(HEAD_BYTES, self._offset), max(0, self._offset - HEAD_BYTES))

    def _blocks(self) -> Iterator[bytes]:
        at = self._offset
        end = self._stat.st_size if self._until is None else min(self._until, self._stat.st_size)
        while at < end:
            block = self._pread(min(BLOCK_BYTES, end - at), at)
            if not block:  # cut while it was read: the next pass sees a shorter file
                return
            self._edge_of_earlier = self._edge()
            self._before = (self._before + self._block[-HEAD_BYTES:])[-HEAD_BYTES:]
            self._block, self._block_offset = block, at
            if len(self._head) < HEAD_BYTES:
                self._head += block[: HEAD_BYTES - len(self._head)]
            yield block
            at += len(block)

    def _continues(self, since: Position) -> bool:
        """Whether the file still begins with what was read up to a position.

        A device number alone says nothing, as some file systems get another at every mount. A file of the
        same size that was written since was changed in place.
        """
        if self._stat.st_size < since.offset or self._stat.st_ino != since.inode:
            return False
        if self._stat.st_size == since.size and self._stat.st_mtime_ns != since.mtime_ns:
            return False
        length = min(HEAD_BYTES, since.offset)
        return (
            _hash(self._pread(length, 0)) == since.head_hash
            and _hash(self._pread(length, since.offset - length)) == since.edge_hash
        )

    def blocks_before(self, end: int) -> Iterator[bytes]:
        """The file's bytes up to an offset, as they are now, in blocks."""
        for offset in range(0, end, BLOCK_BYTES):
            yield self._pread(min(BLOCK_BYTES, end - offset), offset)

    def _enough(self, raw: bytes) -> int | None:
        return None if self.wanted is None else self.wanted(raw[:PEEK_BYTES])

    def _pread(self, length: int, offset: int) -> bytes:
        return os.pread(self._descriptor, length, offset)

    def _is_quiet(self) -> bool:
        # A clock that runs ahead, as on a network disk, must not keep a last line waiting for ever.
        return abs(time.time_ns() - self._stat.st_mtime_ns) >= self._settle_ms * 1_000_000

    def _line(self, raw: bytes, *, is_rest: bool = False, is_cut: bool = False) -> Line:
        bare = raw.removesuffix(b"\r")
        text = bare.strip(b"\0")
        return Line(self._lines, text, len(text) < len(bare), is_rest, is_cut)


def _is_object(raw: bytes) -> bool:
    """Whether a line without an end is complete all the same: no beginning of an object is an object."""
    if not raw.rstrip().endswith(b"}"):
        return False
    try:
        decode_object(raw)
    except BadJson:
        return False
    return True


def _hash(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()
