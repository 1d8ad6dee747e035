"""All distinct words and joints of the index, to find those that contain a fragment.

They lie one a line in files that only grow, behind and before a line break each, so that a fragment is found
by a search of bytes over mapped memory; in which parts of a file to search, `grams` tells. Each writer of an index
folder has its own two files, and the grams of each. A word is written before the index commits what holds it; one
that no text holds any more, or that stands here twice, costs a little time and changes no answer.
"""

import mmap
import os
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from pathlib import Path

from indexer.grams import GROUP_BYTES, GramsWriter, places, whole_records
from schemas.errors import Unavailable

WORDS, JOINTS = "words", "joints"
"""The ends of the names of the files."""

WORDS_BYTES = "words_bytes"
"""The store's note of how large the files were at the last commits: a smaller one was damaged."""

GRAMS = ".grams"
"""Behind the name of a file, that of its grams."""

REMEMBERED_WORDS = 300_000
"""Words that a writer knows to be written, about 30 MB of memory; forgotten all at once when they are more."""

REMEMBERED_FOUND = 20_000
"""Words that a reader keeps with the fragments they were found for, as a query is planned in two steps and asked for
in pages; some 2 MB."""


class Fits(Enum):
    """Where in a word the fragment must stand."""

    ANYWHERE = (b"", b"")
    AT_START = (b"\n", b"")
    AT_END = (b"", b"\n")


class VocabularyWriter:
    """Adds what one writer of the index writes; whoever reads sees what was flushed."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._words = _ListWriter(folder / f"{name}.{WORDS}")
        self._joints = _ListWriter(folder / f"{name}.{JOINTS}")

    def add(self, words: AbstractSet[str], joints: AbstractSet[str]) -> None:
        self._words.add(words)
        self._joints.add(joints)

    def flush(self) -> None:
        """Write what is new to the disk; to be done before the index commits."""
        self._words.flush()
        self._joints.flush()

    def sizes(self) -> dict[str, int]:
        """Bytes written so far by file name; fewer than were once there mean that words were lost."""
        return {one.path.name: one.size for one in (self._words, self._joints)}

    def close(self) -> None:
        self._words.close()
        self._joints.close()


class VocabularyReader:
    """Finds words. Not to be shared between threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._words = _ListReader(folder, WORDS)
        self._joints = _ListReader(folder, JOINTS)

    def check(self, sizes: Mapping[str, int]) -> None:
        """See that the files are there, and have at least so many bytes by name, as a smaller one has lost words.

        Raises:
            Unavailable: they are not, or have not.
        """
        try:
            damaged = [name for name, size in sizes.items() if (self._folder / name).stat().st_size < size]
        except OSError as error:
            raise Unavailable(f"the vocabulary cannot be read: {error}; run: turndex index") from error
        if damaged:
            raise Unavailable(f"the vocabulary in {self._folder} was cut short ({damaged[0]}); run: turndex index")

    def find(self, fragment: str, fits: Fits, limit: int) -> list[str] | None:
        """The words that hold a fragment, sorted; None where they are more than `limit`."""
        return self._words.find(fragment, fits, limit)

    def find_joints(self, fragment: str, limit: int) -> list[str] | None:
        """The joints that hold a fragment anywhere, sorted; None where they are more than `limit`."""
        return self._joints.find(fragment, Fits.ANYWHERE, limit)

    def close(self) -> None:
        self._words.close()
        self._joints.close()


class _ListWriter:
    """Adds to one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
        self._file = os.fdopen(descriptor, "ab")
        self._remembered: set[str] = set()
        self._new: set[str] = set()
        self._file.write(b"\n")  # the first line break, or the end of a word that a crash cut short
        self._grams = GramsWriter(descriptor, path.with_name(path.name + GRAMS))
        self._grams.follow()

    def add(self, words: AbstractSet[str]) -> None:
        self._new |= words - self._remembered

    def flush(self) -> None:
        if not self._new:
            return
        self._file.write("\n".join(sorted(self._new)).encode() + b"\n")
        self._file.flush()
        os.fdatasync(self._file.fileno())
        self._grams.follow()
        if len(self._remembered) + len(self._new) > REMEMBERED_WORDS:
            self._remembered = set()
        if len(self._new) <= REMEMBERED_WORDS:
            self._remembered |= self._new
        self._new = set()

    @property
    def size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        self._file.close()
        self._grams.close()


class _ListReader:
    """Searches all files of one kind."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder = folder
        self._files = [_MappedFile(path) for path in sorted(folder.glob(f"*.{kind}"))]
        self._found: dict[tuple[str, Fits], list[str]] = {}
        """What was found in the words as they are now."""

    def find(self, fragment: str, fits: Fits, limit: int) -> list[str] | None:
        if not self._files:
            raise Unavailable(f"the vocabulary in {self._folder} is missing; run: turndex index")
        for file in self._files:
            if file.refresh():
                self._found.clear()
        known = self._found.get((fragment, fits))
        if known is not None:
            return known if len(known) <= limit else None
        found: set[str] = set()
        for file in self._files:
            for word in file.find(fragment, fits):
                found.add(word)
                if len(found) > limit:
                    return None
        if sum(map(len, self._found.values()), len(self._found)) + len(found) > REMEMBERED_FOUND:
            self._found.clear()
        self._found[fragment, fits] = sorted(found)
        return self._found[fragment, fits]

    def close(self) -> None:
        for file in self._files:
            file.close()


class _MappedFile:
    """One file and its grams, as far as they were written when they were last looked at."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._grams_path = path.with_name(path.name + GRAMS)
        self._words: mmap.mmap | None = None
        self._size = 0
        self._grams: mmap.mmap | None = None
        self._groups = 0

    def refresh(self) -> bool:
        """Map what was added since; whether there was anything."""
        try:
            size = self._path.stat().st_size
            if size == self._size:
                return False
            self.close()
            self._words = _mapped(self._path)
            # A file without grams, or without the last of them, is searched all the same.
            self._groups = whole_records(self._grams_path) if self._grams_path.exists() else 0
            self._grams = _mapped(self._grams_path) if self._groups else None
            self._size = size
        except OSError as error:
            raise Unavailable(f"the vocabulary cannot be read: {error}; run: turndex index") from error
        return True

    def find(self, fragment: str, fits: Fits) -> Iterator[str]:
        words = self._words
        if words is None:
            return
        before, after = fits.value
        wanted = before + fragment.encode() + after
        size = words.rfind(b"\n") + 1  # beyond it the writer may be in the middle of a word
        groups = min(self._groups, size // GROUP_BYTES)
        for first, end in places(words, size, self._grams or b"", groups, wanted):
            at = words.find(wanted, first, end)
            while at >= 0:
                start = words.rfind(b"\n", 0, at + len(before)) + 1
                stop = words.find(b"\n", at + len(before))
                yield words[start:stop].decode("utf-8", "replace")  # a crash may have cut the word in a character
                at = words.find(wanted, stop, end)

    def close(self) -> None:
        for mapped in (self._words, self._grams):
            if mapped is not None:
                mapped.close()
        self._words = self._grams = None
        self._size = self._groups = 0


def _mapped(path: Path) -> mmap.mmap | None:
    """A file in memory; None where it is empty."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else None
