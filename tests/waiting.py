"""Waiting for what another process does: bounded, and over as soon as it happened."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

_POLL_SECONDS = 0.01


def wait_for(look: Callable[[], Found | None], what: str, *, seconds: float = 30) -> Found:
    """Ask `look` every 10 ms until it answers something true, and return that.

    Raises:
        AssertionError: it did not within `seconds`.
    """
    pause = threading.Event()
    give_up_at = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < give_up_at, f"{what}: not within {seconds} s"
        pause.wait(_POLL_SECONDS)
    return found
