"""Watching folders: which paths may have changed. The only module that talks to watchfiles.

Events are hints, and some get lost: files that are written right after their folder is made, an overflow
of the system's queue, a name that is no UTF-8. So whoever listens looks through the folders themselves
once they are watched, and now and then without any event.
"""

import logging
import threading
from collections.abc import Callable, Collection
from pathlib import Path

import watchfiles

log = logging.getLogger(__name__)
logging.getLogger("watchfiles").setLevel(logging.WARNING)  # it logs every change

DEBOUNCE_MS = 40
"""Changes that come within this time of the first one come together."""
STEP_MS = 20
"""How often watchfiles looks whether anything came; it sleeps in between."""
RETRY_SECONDS = 2.0
BEGIN_SECONDS = 10.0
"""How long to wait for folders to be watched; where that takes longer, the next look finds what was missed."""


class Watcher:
    """Watches folders, some with all below them, some by themselves, on two threads of its own."""

    def __init__(self, on_change: Callable[[Collection[Path]], None], on_restart: Callable[[], None]) -> None:
        """`on_change` gets the paths that may have changed, `on_restart` says that some may have been missed."""
        self._on_change = on_change
        self._on_restart = on_restart
        self._deep = _Watch(self, is_recursive=True)
        self._flat = _Watch(self, is_recursive=False)

    def watch(self, deep: Collection[Path], flat: Collection[Path]) -> None:
        """Watch these from now on, and nothing else."""
        self._deep.watch(frozenset(deep))
        self._flat.watch(frozenset(flat))

    def stop(self) -> None:
        self._deep.watch(frozenset())
        self._flat.watch(frozenset())

    @property
    def failure(self) -> str | None:
        """Why events do not come, where they do not."""
        return self._deep.failure or self._flat.failure


class _Ending(threading.Event):
    """Ends a watch. A watch asks whether it is to end only once its folders are watched, which `has_begun` tells."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun = threading.Event()

    def is_set(self) -> bool:
        self.has_begun.set()
        return super().is_set()


class _Watch:
    def __init__(self, watcher: Watcher, *, is_recursive: bool) -> None:
        self._watcher = watcher
        self._is_recursive = is_recursive
        self._paths: frozenset[Path] = frozenset()
        self._stop = _Ending()
        self._thread: threading.Thread | None = None
        self._has_lost_folder = False
        self.failure: str | None = None

    def watch(self, paths: frozenset[Path]) -> None:
        """Watch these; once it returns, what changes is told."""
        if paths == self._paths and not self._has_lost_folder:
            return
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None
        self._paths = paths
        self._has_lost_folder = False
        self.failure = None
        if paths:
            self._stop = _Ending()
            self._thread = threading.Thread(
                target=self._run, args=(paths, self._stop), name="turndex-watch", daemon=True
            )
            self._thread.start()
            self._stop.has_begun.wait(BEGIN_SECONDS)

    def _run(self, paths: frozenset[Path], stop: _Ending) -> None:
        is_stopping = False
        while not is_stopping:
            try:
                for changes in watchfiles.watch(
                    *paths,
                    watch_filter=None,  # the default one hides .git and node_modules
                    debounce=DEBOUNCE_MS,
                    step=STEP_MS,
                    stop_event=stop,
                    rust_timeout=5000,
                    raise_interrupt=False,
                    recursive=self._is_recursive,
                    ignore_permission_denied=True,
                ):
                    self.failure = None
                    gone = {Path(path) for change, path in changes if change is watchfiles.Change.deleted}
                    if not gone.isdisjoint(paths):
                        # What is made anew in its place is another folder, of which nothing would be told.
                        self._has_lost_folder = True
                    self._watcher._on_change([Path(path) for _, path in changes])
            except (OSError, RuntimeError, UnicodeError) as error:
                # No watches left, a folder that went meanwhile, or a name that is no UTF-8.
                if self.failure is None:
                    log.warning("watching failed, the folders are looked through instead: %s", error)
                self.failure = str(error)
                stop.has_begun.set()
                self._watcher._on_restart()
            is_stopping = stop.wait(RETRY_SECONDS)
