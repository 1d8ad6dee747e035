"""Lines of a file that was compressed as a whole, which happens to threads that nobody touches any more."""

import io
import os
from collections.abc import Iterator

import zstandard

from indexer.sources.base import Unreadable
from indexer.tail import BLOCK_BYTES, Position, Tail

MAX_WINDOW_BYTES = 1 << 27


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
        skipped, at = self._offset, 0
        unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
        with (
            io.FileIO(os.dup(self._descriptor)) as file,
            unpacker.stream_reader(file, read_size=BLOCK_BYTES, read_across_frames=True) as reader,
        ):
            file.seek(0)
            while self._until is None or at < self._until:
                try:
                    block = reader.read(BLOCK_BYTES if self._until is None else min(BLOCK_BYTES, self._until - at))
                except zstandard.ZstdError as error:
                    raise Unreadable("damaged zstd") from error
                if not block:
                    return
                at += len(block)
                if at <= skipped:
                    continue
                block = block[max(0, len(block) - (at - skipped)) :]
                self._block, self._block_offset = block, at - len(block)
                yield block
