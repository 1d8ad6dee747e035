"""What agents write into their transcripts beside the texts: as much as makes these a fifth of the bytes.

It is drawn from a stream of its own, so that the texts of an archive are the same whatever is written around them.
"""

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import IO, Any, TypeAlias
from uuid import UUID

import orjson

from bench.texts import Mix, Texts
from bench.transcripts import texts_of

Json: TypeAlias = dict[str, Any]

RAW_PER_TEXT = 5
"""Bytes of a transcript for each byte of text in it, as in real ones."""

_CODE_LINES = 2_000


@dataclass(frozen=True)
class Written:
    """What one source has in an archive, copies and subagents included."""

    sessions: int = 0
    files: int = 0
    """That a look through the folders lists: a thread of several generations has one."""
    raw_bytes: int = 0
    """Of the files as they lie on the disk."""
    text_bytes: int = 0

    def __add__(self, other: "Written") -> "Written":
        return Written(
            self.sessions + other.sessions,
            self.files + other.files,
            self.raw_bytes + other.raw_bytes,
            self.text_bytes + other.text_bytes,
        )


def text_bytes(items: Iterable[Json]) -> int:
    """The texts of items, in UTF-8."""
    return sum(len(text.encode()) for item in items for text in texts_of(item))


class Ballast:
    """Makes what is not text, and keeps account of how much of it is due."""

    def __init__(self, seed: int, mix: Mix) -> None:
        self.random = Random(f"ballast {seed}")
        self.texts = Texts(self.random, mix)
        self.raw_bytes = self.text_bytes = 0
        self._code = self.texts.code(_CODE_LINES)

    @property
    def due(self) -> int:
        """Bytes to be written until the texts are the share that they shall be; none while it is negative."""
        return self.text_bytes * RAW_PER_TEXT - self.raw_bytes

    def size(self, most: int) -> int:
        """Of one large thing: a part of what is due."""
        return min(most, max(300, int(self.due * self.random.uniform(0.2, 0.6))))

    def encoded(self, size: int) -> str:
        """About so many characters of base64 in one line, as pictures and signatures are."""
        return base64.b64encode(self.random.randbytes(size * 3 // 4)).decode()

    def file(self, size: int) -> str:
        """About so many characters of a source file."""
        start = self.random.randrange(len(self._code))
        repeated = self._code[start:] + self._code * (size // len(self._code) + 1)
        return repeated[:size]

    def uuid(self) -> str:
        return str(UUID(int=self.random.getrandbits(128), version=4))


class Lines:
    """A transcript that is being written; what is written is counted, and goes into the digest of the archive."""

    def __init__(self, file: IO[bytes], ballast: Ballast, digest: "hashlib._Hash") -> None:
        self._file = file
        self._ballast = ballast
        self._digest = digest

    def put(self, lines: Iterable[Json]) -> int:
        """Write lines, each before the next one is asked for; how many there were."""
        count = 0
        for line in lines:
            count += 1
            content = orjson.dumps(line) + b"\n"
            self._file.write(content)
            self._digest.update(content)
            self._ballast.raw_bytes += len(content)
        return count
