"""Servers that `turndex mcp` starts where none is running, and how they make way for one that a person starts.

They are like any other server but that they end by themselves: some minutes after the last call, or when a full
server wants to write.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from indexer.lock import Held
from schemas.errors import Unavailable
from schemas.settings import Settings
from search_api.address import TIMEOUT_SECONDS, Address, Silent, find_server, is_on_demand, running_server

LOG_FILE = "on-demand.log"
MAX_LOG_BYTES = 1_000_000
"""A log that is longer is begun anew."""

START_LOCK_FILE = "start.lock"
"""Held by the client that has a server started; the others wait for that one."""

START_SECONDS = 30
"""How long a server may take to answer after it was started."""

END_SECONDS = 15
"""How long an on-demand server may take to end once it is told to."""

SILENT_SECONDS = 3
"""How long who writes may be silent: a server that is starting cannot be asked yet what it is."""

_POLL_SECONDS = 0.05
_PROGRAM = "from search_api.cli import main; main()"


class OnDemand:
    """Finds the server of a data directory, or starts one. Threads that start one wait for each other."""

    def __init__(self, settings: Settings, words: Sequence[str]) -> None:
        """`words` are the options of the command line that the settings were read with."""
        self._data_dir = settings.data_dir
        self._words = words
        self._is_over = threading.Event()
        self._started: subprocess.Popen[bytes] | None = None

    def server(self) -> Address:
        """The running server; where there is none, the one that is started now, by us or by someone else.

        Raises:
            Unavailable: none could be started, the log says why; or there is one that hangs.
        """
        give_up_at = time.monotonic() + START_SECONDS
        address = self._found()
        while address is None and time.monotonic() < give_up_at:
            with self._alone() as is_alone:
                if is_alone:
                    return self._found() or self._started_server()
            # Another client has one started.
            if self._is_over.wait(_POLL_SECONDS):
                break
            address = self._found()
        if address is None:
            raise self._unavailable()
        return address

    def _found(self) -> Address | None:
        try:
            return find_server(self._data_dir)
        except Silent as silent:
            if not _is_alive(silent.address.pid):
                return None  # someone else listens at its port now
            raise Unavailable(
                f"the server at {silent.address.url} (process {silent.address.pid}) takes calls and does not answer: "
                f"not within {TIMEOUT_SECONDS} s; end that process, and the next call starts another"
            ) from silent

    def _started_server(self) -> Address:
        self._start()
        give_up_at = time.monotonic() + START_SECONDS
        while time.monotonic() < give_up_at and not self._is_over.wait(_POLL_SECONDS):
            address = self._found()
            if address is not None:
                return address
            if self._has_failed():
                # A server that someone else has started may be the one that took its place, and answers soon.
                give_up_at = min(give_up_at, time.monotonic() + START_SECONDS / 3)
                self._started = None
        raise self._unavailable()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[bool]:
        """Whether, as long as this lasts, no other client starts a server for the data directory."""
        try:
            self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._data_dir / START_LOCK_FILE, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._cannot_start(error) from error
        try:
            yield _is_taken(lock)
        finally:
            os.close(lock)

    def _unavailable(self) -> Unavailable:
        return Unavailable(f"no server could be started: {self._last_words()}; run: turndex serve")

    def _cannot_start(self, error: OSError) -> Unavailable:
        return Unavailable(f"no server could be started in {self._data_dir}: {error.strerror or error}")

    def keep_alive(self) -> None:
        """Tell the server that there is still a client; one that is gone is left alone until it is needed."""
        running_server(self._data_dir)

    def stop_waiting(self) -> None:
        """Nobody waits for a server any more."""
        self._is_over.set()

    def _start(self) -> None:
        try:
            self._spawn()
        except OSError as error:
            raise self._cannot_start(error) from error

    def _spawn(self) -> None:
        path = self._data_dir / LOG_FILE
        is_long = path.exists() and path.stat().st_size > MAX_LOG_BYTES
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if is_long else 0)
        command = [sys.executable, "-P", "-c", _PROGRAM, "serve", "--on-demand", *self._words]
        with open(os.open(path, flags, 0o600), "wb") as log:
            # A session of its own: what ends the client's programs, an editor being closed, does not end the server.
            self._started = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True
            )
        # Until somebody has waited for it, a process that has ended looks to everyone as if it were there.
        threading.Thread(target=self._started.wait, name="server on demand", daemon=True).start()

    def _has_failed(self) -> bool:
        """Whether the server that we started has ended."""
        started = self._started
        return started is not None and started.poll() is not None

    def _last_words(self) -> str:
        try:
            lines = (self._data_dir / LOG_FILE).read_text(encoding="utf-8", errors="replace").split("\n")
        except FileNotFoundError:
            lines = []
        said = [line for line in lines if line.strip()]
        return said[-1].removeprefix("Error ") if said else "it said nothing"


def _is_taken(lock: int) -> bool:
    """Take a lock unless someone else has it; whether it is ours now."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_alive(pid: int) -> bool:
    """Whether a process of ours has that id."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def displacing(data_dir: Path, start: Callable[[], None]) -> None:
    """Start what wants to write; an on-demand server that does so already is told to end, and waited for.

    Raises:
        Held: someone else writes.
    """
    began = time.monotonic()
    told: Address | None = None
    while True:
        try:
            start()
            return
        except Held:
            found = running_server(data_dir)
            if found is not None and found != told:
                if not is_on_demand(data_dir):
                    raise
                with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                    os.kill(found.pid, signal.SIGTERM)
                told = found
            if time.monotonic() - began > (SILENT_SECONDS if told is None else END_SECONDS):
                raise
        time.sleep(_POLL_SECONDS)
