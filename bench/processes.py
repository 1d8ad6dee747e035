"""What processes need of memory, as Linux counts it."""

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

SAMPLE_SECONDS = 0.25
"""A look at all processes of a machine takes some milliseconds, which what is measured should not feel."""

_FIELDS = {"VmHWM": "peak", "VmRSS": "resident", "RssAnon": "anonymous", "RssFile": "mapped", "RssShmem": "shared"}


def memory_of(pid: int) -> dict[str, int]:
    """Bytes of a process: `peak` resident so far, `resident` now, and of these `anonymous`, `mapped`, `shared`.

    Empty where the process is gone, or the system has no /proc.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    named = dict(line.split(":", 1) for line in lines if ":" in line)
    return {name: int(named[field].split()[0]) * 1024 for field, name in _FIELDS.items() if field in named}


def with_descendants(pid: int) -> list[int]:
    """A process and all that it has started, directly or not, and that still runs."""
    parents = {int(entry.name): _parent(entry) for entry in Path("/proc").glob("[0-9]*")}
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def _parent(process: Path) -> int | None:
    try:
        stat = (process / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(stat.rpartition(")")[2].split()[1])  # the name before it, in brackets, may hold anything


@dataclass
class PeakMemory:
    """Looks at a process and its descendants again and again while the block runs."""

    pid: int
    anonymous_bytes: int = 0
    """The most that all of them had at one time, pages of files not counted; from samples."""
    _peaks: dict[int, int] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)

    @property
    def bytes(self) -> int:
        """The sum of what each of them had resident at its own peak: never less than what all had at one time."""
        return sum(self._peaks.values())

    @property
    def processes(self) -> int:
        return len(self._peaks)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, name="peak-memory")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            self._look()
            self._over.wait(SAMPLE_SECONDS)

    def _look(self) -> None:
        anonymous = 0
        for pid in with_descendants(self.pid):
            memory = memory_of(pid)
            if "peak" in memory:  # a process that has ended but was not waited for has none
                self._peaks[pid] = max(self._peaks.get(pid, 0), memory["peak"])
                anonymous += memory["anonymous"]
        self.anonymous_bytes = max(self.anonymous_bytes, anonymous)


def drop_from_page_cache(folder: Path) -> None:
    """Ask the system to forget the pages of all files below a folder; those that a process maps stay."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
