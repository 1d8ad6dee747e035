"""Opening files that belong to others, without touching them."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A descriptor for reading a regular file.

    Raises:
        OSError: it cannot be opened, or is a pipe, a device or a folder.
    """
    # O_NONBLOCK: a named pipe in the place of a transcript must not hold the reader.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)
