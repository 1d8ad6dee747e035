"""The names that users gave to threads, from `session_index.jsonl`."""

import os
from pathlib import Path

from indexer.decode import BadJson, decode_object
from indexer.sources.values import in_calendar, text
from indexer.tail import Tail
from schemas.times import parse_iso

FILE = "session_index.jsonl"


class SessionIndex:
    """`{id, thread_name, updated_at}` a line, appended to; the newest of an id wins."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._signature: tuple[int, int, int] | None = None
        self._names: dict[str, tuple[str, int]] = {}

    def name_of(self, thread: str) -> tuple[str, int] | None:
        """The name, empty where it was taken away, and when it was given."""
        self._refresh()
        return self._names.get(thread)

    def _refresh(self) -> None:
        try:
            found = os.stat(self.path)
        except OSError:
            return  # a file that cannot be read now changes nothing
        signature = found.st_size, found.st_mtime_ns, found.st_ino
        if signature == self._signature:
            return
        try:
            self._names = _read(self.path)
        except OSError:
            return
        self._signature = signature


def _read(path: Path) -> dict[str, tuple[str, int]]:
    names: dict[str, tuple[str, int]] = {}
    with Tail(path, settle_ms=0) as tail:
        for line in tail:
            try:
                entry = decode_object(line.raw)
            except BadJson:
                continue
            thread, name, at = text(entry.get("id")), text(entry.get("thread_name")), text(entry.get("updated_at"))
            at_ms = (in_calendar(parse_iso(at)) if at else None) or 0
            if thread is not None and at_ms >= names.get(thread, ("", 0))[1]:
                names[thread] = name or "", at_ms
    return names


def newest(*names: tuple[str, int] | None) -> str:
    """The name that was given last, empty where there is none."""
    given = [name for name in names if name is not None]
    return max(given, key=lambda name: name[1])[0].strip() if given else ""
