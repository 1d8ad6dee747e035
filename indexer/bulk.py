"""The process that brings the folder `bulk` up to the store, so that a large scan uses two processors.

One process reads transcripts and writes the store; this one reads the store and writes the index. They talk in
lines of JSON: how far the store may be followed on its standard input, how far the index has come, after each
commit, on its standard output. It ends when its standard input does.
"""

import os
import select
import sqlite3
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from indexer.lane_writer import LaneWriter, Reached
from indexer.lanes import BULK
from indexer.order import TurnKey
from indexer.store.schema import open_for_reading
from schemas.errors import Unavailable

COMMIT_BYTES = 100_000_000
"""Text handed to the index between two commits, and so what a crash makes it do again: few large commits leave few
segments, which need not be merged, and are searched faster."""

FIRST_COMMIT_BYTES = 10_000_000
"""The same of the first one, as there is nothing to search before it; doubled with each."""

SLICE_BYTES = 2_000_000
"""Text handed to it between two looks at standard input."""

READ_BYTES = 65_536

_GIVES_MEMORY_BACK = {"MALLOC_MMAP_THRESHOLD_": "1000000", "MALLOC_TRIM_THRESHOLD_": "4000000"}
"""For glibc, which else keeps what segments took that are written out: 70 MB in a first scan. Others ignore it."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a commit brought."""

    reached: Reached
    words: dict[str, int]
    """Sizes of the files of the vocabulary, by name."""


class BulkProcess:
    """The process, as the one that writes the store sees it."""

    def __init__(self, data_dir: Path, folder: Path, reached: Reached, wake: Callable[[], None]) -> None:
        """`wake` is called by another thread whenever there is something to take."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "indexer.bulk", data_dir, folder, str(reached.position), _written(reached.rebuild)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**_GIVES_MEMORY_BACK, **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # a key that interrupts the command is not for it
        )
        self._wake = wake
        self._reports: deque[Report] = deque()
        self._told: tuple[int, bool] | None = None
        self.is_ending = False
        """Whether it was told to end."""
        self._reader = threading.Thread(target=self._read, name="turndex-bulk")
        self._reader.start()

    def follow(self, up_to: int, *, is_last: bool) -> None:
        """Let it follow the store up to a sequence number, and commit there where that is the last for now."""
        if self._told == (up_to, is_last):
            return
        self._told = (up_to, is_last)
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # where it has ended `take` says so
            self._process.stdin.write(orjson.dumps(self._told) + b"\n")
            self._process.stdin.flush()

    def take(self) -> Report | None:
        """The next report, if there is one.

        Raises:
            ValueError: the process has ended; what it did not report is to be done again.
        """
        has_ended = not self._reader.is_alive()  # asked first, as the last thing that it does is to report
        if self._reports:
            return self._reports.popleft()
        if has_ended:
            raise ValueError(f"the process that writes the index ended with {self._process.wait()}")
        return None

    def end(self) -> None:
        """Let it end when it is done with what it has in hand, without waiting for it."""
        assert self._process.stdin is not None
        self.is_ending = True
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    @property
    def has_ended(self) -> bool:
        return not self._reader.is_alive() and self._process.poll() is not None

    def close(self) -> None:
        """Let it end, and wait for that; what it did not report is to be done again."""
        assert self._process.stdout is not None
        self.end()
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            position, rebuild, words = orjson.loads(line)
            self._reports.append(Report(Reached(position, _read_key(rebuild)), words))
            self._wake()
        self._wake()


def _written(key: TurnKey | None) -> str:
    return orjson.dumps(key).decode()


def _read_key(value: list[int] | None) -> TurnKey | None:
    return None if value is None else (value[0], value[1], value[2])


class _Orders:
    """What comes on standard input."""

    def __init__(self) -> None:
        self.up_to = 0
        self.is_last = False
        self.has_ended = False
        self._rest = b""

    def read(self, *, is_waiting: bool) -> None:
        """Take what has come, or wait for something to come."""
        while not self.has_ended and select.select([0], [], [], None if is_waiting else 0)[0]:
            is_waiting = False
            read = os.read(0, READ_BYTES)
            self.has_ended = not read
            *lines, self._rest = (self._rest + read).split(b"\n")
            for line in lines:
                self.up_to, self.is_last = orjson.loads(line)


def _run(writer: LaneWriter, orders: _Orders) -> None:
    commit_bytes = FIRST_COMMIT_BYTES
    is_idle = True
    while True:
        orders.read(is_waiting=is_idle)
        if orders.has_ended:
            return
        handed = writer.put(SLICE_BYTES, orders.up_to)
        is_due = writer.uncommitted_bytes >= commit_bytes or (not handed and orders.is_last and writer.has_news)
        if is_due:
            commit_bytes = min(2 * commit_bytes, COMMIT_BYTES)
            reached = writer.commit()
            sys.stdout.buffer.write(orjson.dumps([reached.position, reached.rebuild, writer.words()]) + b"\n")
            sys.stdout.buffer.flush()
        is_idle = not handed and not is_due


def main() -> None:
    data_dir, folder, position, rebuild = sys.argv[1:]
    reached = Reached(int(position), _read_key(orjson.loads(rebuild)))
    orders = _Orders()
    try:
        with closing(LaneWriter(open_for_reading(Path(data_dir)), Path(folder), BULK, reached)) as writer:
            _run(writer, orders)
    except (OSError, ValueError, sqlite3.Error, Unavailable):
        orders.read(is_waiting=False)
        if not orders.has_ended:
            raise  # else nobody waits for it any more, and somebody else may be making the index anew


if __name__ == "__main__":
    main()
