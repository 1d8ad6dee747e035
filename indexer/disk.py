"""How much of the disk is to stay free: the rest of the machine needs it more than a new index does."""

import logging
import shutil
import time
from pathlib import Path

from schemas.settings import LimitsSettings

log = logging.getLogger(__name__)

CHECK_SECONDS = 1.0


class DiskFloor:
    """Knows whether there is room on the disk of a directory, as of a second ago."""

    def __init__(self, directory: Path, limits: LimitsSettings) -> None:
        self._directory = directory
        self._limits = limits
        self._checked = 0.0
        self.stands_still: str | None = None
        """Why nothing new is stored, in words, where there is no room."""
        self.free_share = 1.0
        """How much is free, against the least that shall be."""

    @property
    def is_check_due(self) -> bool:
        return time.monotonic() - self._checked >= CHECK_SECONDS

    def check(self) -> None:
        """Ask the disk."""
        self._checked = time.monotonic()
        usage = shutil.disk_usage(self._directory)
        floor = max(self._limits.min_free_bytes, int(self._limits.min_free_share * usage.total))
        self.free_share = usage.free / floor if floor else 1.0
        why = None
        if usage.free < floor:
            free_gb, floor_gb = usage.free / 1e9, floor / 1e9
            why = f"indexing stands still: {free_gb:.1f} GB of the disk are free, it stops below {floor_gb:.1f}"
        if why is not None and self.stands_still is None:
            log.error("%s; it goes on when there is room", why)
        self.stands_still = why
