"""When the registries of projects are read, from which Cydonia's sessions have their numbers."""

import time
from pathlib import Path

import orjson

from indexer.registry import read_registry, registry_signature
from indexer.store.writer import StoreWriter

AGAIN_SECONDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""How long after one look at the registry of a project with unnumbered sessions the next one follows."""


class Registries:
    """Reads them when they changed. For the thread that writes the store."""

    def __init__(self, store: StoreWriter, scratch: Path) -> None:
        """`scratch` is where they are copied to."""
        self._store = store
        self._scratch = scratch
        self._due: dict[Path, tuple[float, int]] = {}

    def expect(self, project: Path) -> None:
        """A session of the project was read: its row may come a moment later."""
        self._due.setdefault(project, (time.monotonic(), 0))

    def step(self) -> None:
        """Read those that are due; what still has sessions without a number is due again."""
        now = time.monotonic()
        for project, (due, tries) in list(self._due.items()):
            if due <= now:
                self.read(project)
                del self._due[project]
                key = self._store.projects.key(project)
                if tries < len(AGAIN_SECONDS) and self._store.projects.has_unnumbered(key):
                    self._due[project] = (now + AGAIN_SECONDS[tries], tries + 1)

    def next_due(self) -> float | None:
        """When `step` has something to do again, on the monotonic clock."""
        return min((due for due, _ in self._due.values()), default=None)

    def read(self, project: Path) -> None:
        """Bring the store up to a project's registry, if it has one."""
        stats = registry_signature(project)
        if not any(stats):
            return  # there is none, or none any more: the numbers that are known stay
        signature = orjson.dumps(stats)
        key = self._store.projects.key(project)
        if self._store.projects.registry_signature(key) == signature:
            return
        numbers = read_registry(project, self._scratch)
        if numbers is not None:
            with self._store.transaction():
                self._store.projects.set_registry(key, numbers, signature)
