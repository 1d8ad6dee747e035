"""What a tool must be able to do to be compared: build its index, and be asked for a literal."""

import os
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeAlias

from bench.results import folder_bytes
from bench.transcripts import Transcript

FIRST = 20
"""A first page is so many results, in the tool's own unit, where it can be told to stop there."""

CALL_SECONDS = 120.0
"""A tool that does not answer a call for so long has failed."""

Turn: TypeAlias = tuple[str, int]
"""A session's key and the number of a turn in it, from 1."""


class Unusable(Exception):
    """The tool cannot be measured here; the message says why."""


@dataclass(frozen=True)
class Bench:
    """What every tool is given."""

    archive: Path
    """As `bench.corpus` made it."""
    claude: Path
    """The same sessions as Claude Code keeps them: a folder such as `~/.claude`."""
    transcripts: Sequence[Transcript]
    """All of them, oldest first."""
    session_of: dict[str, str]
    """The key of a session by its id in `claude`."""
    scratch: Path
    """A folder of the tool's own, which it shares with those that ask the same index."""
    build_seconds: float
    """A tool that needs longer for its index is given up."""


@dataclass(frozen=True)
class Found:
    """All that a tool finds for a literal."""

    sessions: frozenset[str]
    turns: frozenset[Turn] | None = None
    """None where it answers with sessions alone."""
    since_ms: int | None = None
    """Where asking for everything took too long: turns that started at this time or before were not asked for."""
    is_all: bool = True
    """False where it took too long and nothing can be said about what is missing."""


class Peer(ABC):
    """A tool under measurement; made, built unless another one shares its index, asked, closed."""

    name: ClassVar[str]
    unit: ClassVar[str]
    """What one result is: a turn, a session, a message, a line."""
    timed: ClassVar[str]
    """What the time of a search includes."""
    fairness: ClassVar[str]
    """What is fair in comparing it with turndex, and what is not."""
    has_index: ClassVar[bool] = True
    shares_index_of: ClassVar[str | None] = None
    """The name of the tool whose index this is another way to ask; it is built once."""
    asks_words: ClassVar[bool] = False
    """Whether it looks for words, and so for something else than the literal anywhere in a text."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    @abstractmethod
    def version(self) -> str:
        """
        Raises:
            Unusable: it is not installed.
        """

    @abstractmethod
    def build(self) -> None:
        """Make the index of an archive that the tool has never seen.

        Raises:
            Unusable: it failed, or took too long.
        """

    @abstractmethod
    def disk_bytes(self) -> int:
        """What the index and what belongs to it take on disk."""

    @abstractmethod
    def first(self, literal: str) -> None:
        """Ask for the first page; this is what is timed."""

    @abstractmethod
    def every(self, literal: str, until: float) -> Found:
        """Ask for everything, however many pages that takes, but not beyond `until` (`time.monotonic`)."""

    @abstractmethod
    def close(self) -> None:
        """End what was started."""


class Program(Peer):
    """A tool that is a program: it is run with a home of its own, in which `.claude` is the archive."""

    program: ClassVar[str]
    unit = "session"
    timed = "the whole process, start included"

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        found = shutil.which(self.program)
        if found is None:
            raise Unusable(f"not installed: there is no {self.program} on PATH")
        self.path = Path(found)
        self.home = bench.scratch / "home"
        if not self.home.is_dir():
            self.home.mkdir()
            (self.home / ".claude").symlink_to(bench.claude)

    def version(self) -> str:
        words = self.run(["--version"]).decode().split()
        return next((word for word in words if any(map(str.isdigit, word))), "unknown").lstrip("v")

    def disk_bytes(self) -> int:
        return folder_bytes(self.home)

    def close(self) -> None:
        """Nothing of it runs between the calls."""

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of the user's but where programs are."""
        path = os.environ.get("PATH", os.defpath)
        return {"PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1"}

    def run(self, arguments: Sequence[str], *, codes: Iterable[int] = (0,), seconds: float = CALL_SECONDS) -> bytes:
        """What it prints.

        Raises:
            Unusable: it ended with another code than `codes`, or not in time.
        """
        try:
            done = subprocess.run(
                [self.path, *arguments],
                env=self.environment,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            raise Unusable(f"{self.program} {arguments[0]} took more than {seconds:.0f} s") from None
        if done.returncode not in codes:
            last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise Unusable(f"{self.program} {arguments[0]} ended with {done.returncode}: {last[:200]}")
        return done.stdout

    def keys(self, ids: Iterable[str]) -> frozenset[str]:
        """The sessions of ids in the Claude Code form."""
        return frozenset(self.bench.session_of[session] for session in ids)


def is_late(until: float) -> bool:
    return time.monotonic() > until


def quoted(literal: str) -> str:
    """As a person would type it where words are searched for: with quotes if it has spaces."""
    return f'"{literal}"' if " " in literal else literal
