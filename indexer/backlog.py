"""What a scan found and has not read yet."""

import time
from collections.abc import Sequence

from indexer.sources.base import Source, Transcript
from schemas.answers import Indexing


class Backlog:
    """Transcripts to be read, the newest first, and how many of them there were since the first scan began."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Source, Transcript]] = []
        """The newest last, as they are taken from the end."""
        self._since = 0.0
        self._total = self._bytes_total = self._bytes_done = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, found: Sequence[tuple[Source, Transcript]]) -> list[tuple[Source, Transcript]]:
        """Take what was found, but for what waits already; answers what was taken."""
        waiting = {transcript.file for _, transcript in self._waiting}
        new = [one for one in found if one[1].file not in waiting]
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting = sorted([*self._waiting, *new], key=lambda one: one[1].mtime_ns)
        self._total += len(new)
        self._bytes_total += sum(transcript.size for _, transcript in new)
        return new

    def pop(self) -> tuple[Source, Transcript]:
        """The newest one, which counts as done from now on."""
        source, transcript = self._waiting.pop()
        self._bytes_done += transcript.size
        return source, transcript

    def waiting_since(self, source: str) -> float | None:
        """Since when transcripts of a source wait, on the monotonic clock; None where there are none."""
        return self._since if any(one.name == source for one, _ in self._waiting) else None

    def progress(self) -> Indexing:
        return Indexing(self._total - len(self._waiting), self._total, self._bytes_done, self._bytes_total)
