"""Who writes to a data directory: one process at a time, known to all others."""

import fcntl
import os
from pathlib import Path

import orjson

from schemas.errors import Unavailable

LOCK_FILE = "writer.lock"


class Held(Exception):
    """Another process writes; `holder` has its `pid`."""

    def __init__(self, holder: dict[str, object]) -> None:
        super().__init__(f"held by {holder}")
        self.holder = holder


class DataLock:
    """The right to write, until it is released or the process ends."""

    def __init__(self, data_dir: Path) -> None:
        """
        Raises:
            Held: another process has it.
            Unavailable: the data directory cannot be made or written.
        """
        self._path = data_dir / LOCK_FILE
        try:
            data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unavailable(f"the data directory {data_dir} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(os.read(self._descriptor, 4096))
            os.close(self._descriptor)
            raise Held(holder) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, orjson.dumps({"pid": os.getpid()}), 0)

    def is_ours(self) -> bool:
        """Whether the lock is still the one of the directory that is there now."""
        try:
            found = self._path.stat()
        except OSError:
            return False
        held = os.fstat(self._descriptor)
        return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)

    def release(self) -> None:
        os.close(self._descriptor)


def _holder(raw: bytes) -> dict[str, object]:
    try:
        holder = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return {}
    return holder if isinstance(holder, dict) else {}
