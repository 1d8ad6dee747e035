"""Watching folders: which paths may have changed. The only module that talks to watchfiles.

Events are hints, and some get lost: files that are written right after their folder is made, an overflow
of the system's queue, a name that is no UTF-8. So what watches also says when it began to watch, and
whoever listens looks through the folders themselves then, and now and then without any event.
"""

import logging
import threading
from collections.abc import Callable, Collection
from pathlib import Path

import watchfiles

log = logging.getLogger(__name__)

DEBOUNCE_MS = 40
"""Changes that come within this time of the first one come together."""
STEP_MS = 20
"""How often watchfiles looks whether anything came; it sleeps in between."""
RETRY_SECONDS = 2.0


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


class _Watch:
    def __init__(self, watcher: Watcher, *, is_recursive: bool) -> None:
        self._watcher = watcher
        self._is_recursive = is_recursive
        self._paths: frozenset[Path] = frozenset()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.failure: str | None = None

    def watch(self, paths: frozenset[Path]) -> None:
        if paths == self._paths and (self._thread is None) == (not paths):
            return
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None
        self._paths = paths
        self.failure = None
        if paths:
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(paths, self._stop), name="turndex-watch", daemon=True)
            self._thread.start()

    def _run(self, paths: frozenset[Path], stop: threading.Event) -> None:
        while not stop.is_set():
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
                    self._watcher._on_change([Path(path) for _, path in changes])
            except (OSError, RuntimeError, UnicodeError) as error:
                # No watches left, a folder that went meanwhile, or a name that is no UTF-8.
                if self.failure is None:
                    log.warning("watching failed, the folders are looked through instead: %s", error)
                self.failure = str(error)
                self._watcher._on_restart()
                stop.wait(RETRY_SECONDS)
