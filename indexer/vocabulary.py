"""All distinct words of the index, to find those that contain a fragment.

The words lie one a line in files that only grow, behind and before a line break each, so that a fragment
is found by a search of bytes over mapped memory. A word is written before the index commits what holds it;
one that no text holds any more, or that stands here twice, costs a little time and changes no answer.
"""

import mmap
import os
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path

from schemas.errors import Unavailable

WORDS_FILE = "words.txt"
REMEMBERED_WORDS = 300_000
"""Words that the writer knows to be written, about 30 MB of memory; forgotten all at once when they are more."""

REMEMBERED_FRAGMENTS = 64
"""Fragments whose words a reader keeps, as a query is planned in two steps and asked for in pages."""


class Fits(Enum):
    """Where in a word the fragment must stand."""

    ANYWHERE = (b"", b"")
    AT_START = (b"\n", b"")
    AT_END = (b"", b"\n")


class VocabularyWriter:
    """Adds words. One process writes; whoever reads sees what was flushed."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder / WORDS_FILE, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
        self._file = os.fdopen(descriptor, "ab")
        self._remembered: set[str] = set()
        self._new: set[str] = set()
        self._file.write(b"\n")  # the first line break, or the end of a word that a crash cut short

    def add(self, words: Iterable[str]) -> None:
        self._new |= words - self._remembered if isinstance(words, frozenset) else set(words) - self._remembered

    def flush(self) -> None:
        """Write what is new to the disk; to be done before the index commits."""
        if not self._new:
            return
        self._file.write("\n".join(sorted(self._new)).encode() + b"\n")
        self._file.flush()
        os.fdatasync(self._file.fileno())
        if len(self._remembered) + len(self._new) > REMEMBERED_WORDS:
            self._remembered = set()
        if len(self._new) <= REMEMBERED_WORDS:
            self._remembered |= self._new
        self._new = set()

    @property
    def size(self) -> int:
        """Bytes written so far; fewer than were once there mean that words were lost."""
        return os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        self._file.close()


class VocabularyReader:
    """Finds words. Not to be shared between threads."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / WORDS_FILE
        self._map: mmap.mmap | None = None
        self._size = 0
        self._found: dict[tuple[str, Fits], list[str]] = {}
        """What was found in the words as they are now."""

    def find(self, fragment: str, fits: Fits, limit: int) -> list[str] | None:
        """The words that hold a fragment, sorted; None where they are more than `limit`."""
        mapped = self._mapped()
        known = self._found.get((fragment, fits))
        if known is not None:
            return known if len(known) <= limit else None
        found: set[str] = set()
        for word in self._find(mapped, fragment, fits):
            found.add(word)
            if len(found) > limit:
                return None
        if len(self._found) >= REMEMBERED_FRAGMENTS:
            self._found.clear()
        self._found[fragment, fits] = sorted(found)
        return self._found[fragment, fits]

    def _find(self, words: mmap.mmap | None, fragment: str, fits: Fits) -> Iterator[str]:
        before, after = fits.value
        wanted = before + fragment.encode() + after
        if words is None:
            return
        end = words.rfind(b"\n") + 1  # beyond it the writer may be in the middle of a word
        at = words.find(wanted, 0, end)
        while at >= 0:
            start = words.rfind(b"\n", 0, at + len(before)) + 1
            stop = words.find(b"\n", at + len(before))
            yield words[start:stop].decode("utf-8", "replace")  # a crash may have cut the word in a character
            at = words.find(wanted, stop, end)

    def _mapped(self) -> mmap.mmap | None:
        try:
            with self._path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size != self._size:
                    self.close()
                    self._map = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else None
                    self._size = size
                    self._found.clear()
        except OSError as error:
            raise Unavailable(f"the vocabulary cannot be read: {error}; run: turndex index") from error
        return self._map

    def close(self) -> None:
        if self._map is not None:
            self._map.close()
        self._map, self._size = None, 0
