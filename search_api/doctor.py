"""What `turndex doctor` looks at, and what it says about it."""

import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from schemas.answers import SourceStatus
from schemas.errors import TurndexError
from schemas.settings import Settings
from search_api.address import read_address, running_server
from search_api.archive import Archive


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    is_fine: bool
    says: str

    def __str__(self) -> str:
        return f"{'ok' if self.is_fine else 'amiss'}: {self.what}: {self.says}"


def findings(settings: Settings) -> Iterator[Finding]:
    """Look at everything, one after the other; what is amiss hides nothing after it."""
    yield _data_dir(settings.data_dir)
    yield _server(settings.data_dir)
    try:
        with closing(Archive.open(settings)) as archive:
            status = archive.status()
    except TurndexError as error:
        yield Finding("store and index", False, error.detail)
        return
    yield Finding("store and index", True, f"{status.sessions:,} sessions, {status.turns:,} turns")
    for source in status.sources:
        yield _source(source)


def _data_dir(data_dir: Path) -> Finding:
    try:
        mode = stat.S_IMODE(data_dir.stat().st_mode)
    except OSError as error:
        return Finding("data directory", False, f"{data_dir}: {error.strerror}")
    if mode & 0o077:
        return Finding("data directory", False, f"{data_dir} can be read by others (mode {mode:o}); chmod 700 it")
    return Finding("data directory", True, str(data_dir))


def _server(data_dir: Path) -> Finding:
    running = running_server(data_dir)
    if running is not None:
        return Finding("server", True, f"{running.url}, process {running.pid}")
    if read_address(data_dir) is not None:
        return Finding("server", False, f"{data_dir} names one that does not answer; the next `turndex serve` mends it")
    return Finding("server", True, "none is running")


def _source(source: SourceStatus) -> Finding:
    if source.unavailable:
        return Finding(source.source, False, f"cannot be read now: {', '.join(source.unavailable)}")
    skipped = sum(source.skipped.values())
    says = f"{source.files:,} files, {source.sessions:,} sessions"
    return Finding(source.source, True, says + (f", {skipped:,} records or lines skipped" if skipped else ""))
