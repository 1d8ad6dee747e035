"""In which blocks of a file a run of bytes may be: an index of all runs of three bytes, its grams.

The file is a list of words that only grows, each with a line break before and behind it. It is taken in groups of
512 blocks of 2 KB. Each group has a record of 4096 columns of 512 bits: a gram belongs to one column by a hash, and a
bit says whether a word of that block has a gram of the column. So the blocks that may hold a longer run are those
whose bits are set in the columns of all its grams. Words that begin or end with a run are found by the same means,
as a line break is a byte of a gram.

A record is a quarter of what it tells of, takes about 0.2 seconds to make, and is never changed. What is behind the
last whole group has none yet.
"""

import hashlib
import mmap
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

GRAM_BYTES = 3
COLUMNS = 4096
BLOCK_BYTES = 2048
GROUP_BLOCKS = 512
GROUP_BYTES = GROUP_BLOCKS * BLOCK_BYTES

_COLUMN_BYTES = GROUP_BLOCKS // 8
_COLUMNS_BYTES = COLUMNS * _COLUMN_BYTES
_CHECKSUM_BYTES = 4
RECORD_BYTES = _COLUMNS_BYTES + _CHECKSUM_BYTES

Bytes = bytes | mmap.mmap


def _mixed(place: int) -> list[int]:
    """A number below `COLUMNS` for each byte at one place of a gram, as if drawn at random."""
    drawn = hashlib.shake_256(bytes([place])).digest(512)
    return [int.from_bytes(drawn[at : at + 2], "little") % COLUMNS for at in range(0, 512, 2)]


_FIRST, _SECOND, _THIRD = (_mixed(place) for place in range(GRAM_BYTES))


def _columns_of(run: bytes) -> set[int]:
    return {_FIRST[a] ^ _SECOND[b] ^ _THIRD[c] for a, b, c in set(zip(run, run[1:], run[2:], strict=False))}


def _bound(words: Bytes, at: int) -> int:
    """The line break before the word that a byte belongs to, where a block is cut; `words` begins with one."""
    return words.rfind(b"\n", 0, at + 1)


class GramsWriter:
    """Writes the records of a list, in a file beside it."""

    def __init__(self, words: int, grams: Path) -> None:
        """`words` is a descriptor of the list, to read from: its folder may go while it is open."""
        self._words = words
        self._groups = 0
        if grams.exists():
            self._groups = _sound_records(grams)
            if self._groups < whole_records(grams) or self._groups > os.fstat(words).st_size // GROUP_BYTES:
                # Damaged, or of another list. Not cut, as whoever has it mapped would be killed.
                grams.unlink()
                self._groups = 0
        self._file = grams.open("ab")
        grams.chmod(0o600)
        self._file.truncate(self._groups * RECORD_BYTES)  # what a crash cut short, which nobody reads

    def follow(self) -> None:
        """Write what is due; all of the list must be on the disk."""
        size = os.fstat(self._words).st_size
        if size // GROUP_BYTES == self._groups:
            return
        with mmap.mmap(self._words, size, access=mmap.ACCESS_READ) as words:
            while self._groups < size // GROUP_BYTES:
                columns = _record(words, self._groups * GROUP_BYTES)
                self._file.write(columns + zlib.crc32(columns).to_bytes(_CHECKSUM_BYTES, "little"))
                self._file.flush()
                os.fdatasync(self._file.fileno())  # one by one, so that a crash can only harm the last one
                self._groups += 1

    def close(self) -> None:
        self._file.close()


def _record(words: Bytes, start: int) -> bytes:
    """The columns of the group that begins at a byte, one after the other."""
    columns = bytearray(_COLUMNS_BYTES)
    for block in range(GROUP_BLOCKS):
        at = start + block * BLOCK_BYTES
        place, bit = block // 8, 1 << block % 8
        for column in _columns_of(words[_bound(words, at) : _bound(words, at + BLOCK_BYTES) + 1]):
            columns[column * _COLUMN_BYTES + place] |= bit
    return bytes(columns)


def _sound_records(grams: Path) -> int:
    """How many records there are before the first one that is not as it was written."""
    with grams.open("rb") as file:
        count = 0
        while _is_sound(file.read(RECORD_BYTES)):
            count += 1
    return count


def _is_sound(record: bytes) -> bool:
    columns, checksum = record[:_COLUMNS_BYTES], record[_COLUMNS_BYTES:]
    return zlib.crc32(columns).to_bytes(_CHECKSUM_BYTES, "little") == checksum


def whole_records(grams: Path) -> int:
    """How many records there are, without a last one that a crash cut short or left unwritten."""
    size = grams.stat().st_size
    count = size // RECORD_BYTES
    if count:
        with grams.open("rb") as file:
            file.seek((count - 1) * RECORD_BYTES)
            if not _is_sound(file.read(RECORD_BYTES)):
                count -= 1
    return count


def places(words: Bytes, end: int, records: Bytes, groups: int, wanted: bytes) -> Iterator[tuple[int, int]]:
    """Where in the first `end` bytes of a list a run of bytes may be: from and up to which byte, in order.

    Args:
        records: the records of its first `groups` groups; what is behind them may be anywhere.
        wanted: with a line break at an end where a word must begin or end; less than three bytes may be anywhere.
    """
    if len(wanted) < GRAM_BYTES:
        yield 0, end
        return
    starts = [column * _COLUMN_BYTES for column in _columns_of(wanted)]
    for group in range(groups):
        blocks = (1 << GROUP_BLOCKS) - 1
        for start in starts:
            at = group * RECORD_BYTES + start
            blocks &= int.from_bytes(records[at : at + _COLUMN_BYTES], "little")
            if not blocks:
                break
        while blocks:
            block = (blocks & -blocks).bit_length() - 1
            blocks &= blocks - 1
            at = group * GROUP_BYTES + block * BLOCK_BYTES
            yield _bound(words, at), _bound(words, at + BLOCK_BYTES) + 1
    yield _bound(words, groups * GROUP_BYTES), end
