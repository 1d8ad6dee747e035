"""Lines of a file that was compressed as a whole, which happens to threads that nobody touches any more."""

import io
import os
from collections.abc import Iterator

import zstandard

from indexer.sources.base import Unreadable
from indexer.tail import BLOCK_BYTES, Position, Tail

MAX_WINDOW_BYTES = 1 << 27
_SMALL_BYTES = 1 << 10


class CompressedTail(Tail):
    """A `Tail` whose offsets are those of the unpacked file, of one or more zstd frames.

    A compressed file is never appended to. Going on amid one unpacks what stands before again, but puts
    none of it together.

    Raises, beyond what `Tail` does:
        Unreadable: it is no zstd, or damaged; the lines before the damage were yielded.
    """

    def _remember(self) -> None:
        self._head = self._before = b""

    def _continues(self, since: Position) -> bool:
        stat = self._stat
        return (stat.st_ino, stat.st_size, stat.st_mtime_ns) == (since.inode, since.size, since.mtime_ns)

    def _blocks(self) -> Iterator[bytes]:
        start, at = self._offset, 0
        try:
            for block in self._unpacked(BLOCK_BYTES):
                at += len(block)
                if at > start:
                    yield self._shown(block[max(0, len(block) - (at - start)) :], at)
        except zstandard.ZstdError:
            # Nothing of the block that holds the damage came out; small ones bring what stands before it.
            start, at = max(start, at), 0
            try:
                for block in self._unpacked(_SMALL_BYTES):
                    at += len(block)
                    if at > start:
                        yield self._shown(block[max(0, len(block) - (at - start)) :], at)
            except zstandard.ZstdError as error:
                raise Unreadable("damaged zstd") from error

    def _shown(self, block: bytes, end: int) -> bytes:
        self._block, self._block_offset = block, end - len(block)
        return block

    def _unpacked(self, size: int) -> Iterator[bytes]:
        """The unpacked file up to where it is to be read, in blocks of at most `size` bytes."""
        left = self._until
        unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
        with (
            io.FileIO(os.dup(self._descriptor)) as file,
            unpacker.stream_reader(file, read_size=BLOCK_BYTES, read_across_frames=True) as reader,
        ):
            file.seek(0)
            while left is None or left > 0:
                block = reader.read1(size if left is None else min(size, left))
                if not block:
                    return
                left = None if left is None else left - len(block)
                yield block
