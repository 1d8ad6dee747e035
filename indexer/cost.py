"""What it will cost to read transcripts that were found, told before anything of them is copied.

Measured on two cores: the whole mix of texts took 1.6 bytes of store, index and vocabulary a byte of text and was
indexed at 4 MB of text a second (200,000 turns, 2026-11-30); lines without text were passed over at some 60 MB/s.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from indexer.sources.base import Source, Transcript

DISK_PER_TEXT = 1.6
TEXT_BYTES_PER_SECOND = 4_000_000
RAW_BYTES_PER_SECOND = 60_000_000
START_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Of some transcripts."""

    raw_bytes: int = 0
    """The size of the files;"""
    text_bytes: int = 0
    """what of it is text that is kept, as their sources expect."""

    @property
    def disk_bytes(self) -> int:
        """What store and index will take."""
        return int(self.text_bytes * DISK_PER_TEXT)

    @property
    def seconds(self) -> float:
        """What reading and indexing will take."""
        return self.text_bytes / TEXT_BYTES_PER_SECOND + self.raw_bytes / RAW_BYTES_PER_SECOND

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.raw_bytes + other.raw_bytes, self.text_bytes + other.text_bytes)


def cost_of(found: Iterable[tuple[Source, Transcript]]) -> Cost:
    raw = text = 0
    for source, transcript in found:
        raw += transcript.size
        text += source.text_bytes(transcript)
    return Cost(raw, text)
