"""The archive as callers see it: the one object behind HTTP, MCP and the command line."""

import os
import queue
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Self

import orjson

from indexer.index import INDEX_VERSION, IndexReader
from indexer.lane_writer import WORDS_FOLDER
from indexer.store.reader import StoreReader
from indexer.store.schema import STORE_FILE
from indexer.vocabulary import WORDS_BYTES, VocabularyReader
from schemas.answers import (
    Indexing,
    ProjectsAnswer,
    ReadAnswer,
    SearchAnswer,
    SessionsAnswer,
    StatusAnswer,
)
from schemas.errors import Unavailable
from schemas.requests import ReadRequest, SearchRequest, SessionsRequest
from schemas.settings import Settings, resolved
from search_api import read, search, sessions
from search_api.caller import Caller
from search_api.forgetting import Doomed, sessions_to_forget
from search_api.ranked_lists import RankedLists
from search_api.render import indexing_note
from search_api.walk import Tools

WORKTREES = "/.cydonia/worktrees/"
"""A directory below `<project>/.cydonia/worktrees/` belongs to `<project>`."""


class _Handles:
    """One thread's connections: the store, and the index folder that it names."""

    def __init__(self, data_dir: Path, allowed_projects: list[str] | None) -> None:
        self.store = StoreReader(data_dir, allowed_projects)
        self._data_dir = data_dir
        self._folder: Path | None = None
        self._index: IndexReader | None = None
        self._vocabulary: VocabularyReader | None = None

    def tools(self) -> Tools:
        """The index as it is now; to be asked for inside the snapshot of the store that it is used with."""
        name, built_by = self.store.meta("index_folder"), self.store.meta("index_version")
        if name is None:
            raise Unavailable(f"nothing is indexed yet in {self._data_dir}; run: turndex index")
        if built_by != INDEX_VERSION:
            raise Unavailable(f"the index has version {built_by}, not {INDEX_VERSION}; run: turndex index")
        folder = self._data_dir / str(name)
        if self._index is None or self._vocabulary is None or folder != self._folder:
            self._close_index()
            self._index, self._vocabulary = IndexReader(folder), VocabularyReader(folder / WORDS_FOLDER)
            self._folder = folder
        self._index.reload()
        self._vocabulary.check(orjson.loads(self.store.meta(WORDS_BYTES) or b"{}"))
        return Tools(self.store, self._index, self._vocabulary)

    def _close_index(self) -> None:
        if self._vocabulary is not None:
            self._vocabulary.close()
        self._index = self._vocabulary = None

    def close(self) -> None:
        self._close_index()
        self.store.close()


class Archive:
    """Store and index, opened for reading. Safe to call from several threads; it never writes.

    Every call raises a `TurndexError` where it is refused or fails.
    """

    def __init__(self, settings: Settings) -> None:
        self._data_dir = resolved(settings.data_dir)
        self._limits = settings.limits
        self._ranked = RankedLists()
        allowed = settings.access.projects
        self._allowed = None if allowed is None else [str(resolved(path)) for path in allowed]
        self._idle: queue.SimpleQueue[_Handles] = queue.SimpleQueue()
        with self._handles():
            pass

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """
        Raises:
            Unavailable: there is no store yet, or it cannot be opened.
        """
        return cls(settings)

    def close(self) -> None:
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    @contextmanager
    def _handles(self) -> Iterator[_Handles]:
        """Connections that nobody else uses meanwhile, in one state of the store."""
        try:
            handles = self._idle.get_nowait()
        except queue.Empty:
            handles = _Handles(self._data_dir, self._allowed)
        try:
            with handles.store.snapshot():
                yield handles
        finally:
            self._idle.put(handles)

    def search(self, request: SearchRequest, caller: Caller) -> SearchAnswer:
        while True:
            answer = self._search(request, caller)
            if answer is not None:
                return answer

    def _search(self, request: SearchRequest, caller: Caller) -> SearchAnswer | None:
        """The answer; None where another index took the place of the one that was searched, and that is gone."""
        started = time.monotonic()
        deadline = started + (self._limits.regex_seconds if request.mode == "regex" else self._limits.search_seconds)
        now_ms = _now_ms()

        def is_late() -> bool:
            return time.monotonic() > deadline

        with self._handles() as handles:
            try:
                tools = handles.tools()
                if request.mode == "words":
                    from search_api import words_search  # a command that searches for a text does without

                    order = request.order or "best"
                    answer = words_search.search_words(
                        tools, request, caller, order=order, now_ms=now_ms, is_late=is_late, lists=self._ranked
                    )
                else:
                    answer = search.search(tools, request, caller, now_ms=now_ms, is_late=is_late)
            except Unavailable:
                if self._is_index_in_use(handles.store.meta("index_folder")):
                    raise
                return None
            took_ms = round((time.monotonic() - started) * 1000, 3)
            return replace(answer, indexing=indexing(handles.store), took_ms=took_ms)

    def _is_index_in_use(self, name: str | None) -> bool:
        with self._handles() as now:
            return bool(now.store.meta("index_folder") == name)

    def read(self, request: ReadRequest, caller: Caller) -> ReadAnswer:
        """`request.max_chars` None means uncut: a door sets its own default before it calls."""
        with self._handles() as handles:
            answer = read.read(handles.store, request, caller)
            return answer if answer.more else replace(answer, notes=answer.notes + _scan_notes(handles.store))

    def sessions(self, request: SessionsRequest, caller: Caller) -> SessionsAnswer:
        with self._handles() as handles:
            answer = sessions.list_sessions(handles.store, request, caller, now_ms=_now_ms())
            return replace(answer, notes=answer.notes + _scan_notes(handles.store))

    def sessions_to_forget(
        self, references: Sequence[str], deleted_before: str | None, project: str | None, caller: Caller
    ) -> list[Doomed]:
        with self._handles() as handles:
            return sessions_to_forget(handles.store, references, deleted_before, project, caller, now_ms=_now_ms())

    def projects(self) -> ProjectsAnswer:
        with self._handles() as handles:
            return sessions.list_projects(handles.store)

    def status(self) -> StatusAnswer:
        """What the store knows; a server adds what only it knows (uptime, lag)."""
        with self._handles() as handles:
            store = handles.store
            projects, session_count, turns, chunks = store.counts()
            folder = self._data_dir / str(store.meta("index_folder"))
            vocabulary_bytes = sessions.size_of(folder / WORDS_FOLDER)
            running = indexing(store)
            return StatusAnswer(
                version=version("turndex"),
                uptime_s=None,
                is_ready=running is None and store.meta("scanned_at") is not None,
                indexing=running,
                projects=projects,
                sessions=session_count,
                turns=turns,
                chunks=chunks,
                store_bytes=sum(path.stat().st_size for path in self._data_dir.glob(f"{STORE_FILE}*")),
                index_bytes=sessions.size_of(folder) - vocabulary_bytes,
                vocabulary_bytes=vocabulary_bytes,
                data_dir=str(self._data_dir),
                sources=sessions.source_statuses(store),
            )

    def enclosing_project(self, directory: str) -> str | None:
        """The open project that is, or most closely encloses, a directory."""
        path = os.path.realpath(directory) + "/"
        if WORKTREES in path:
            path = path[: path.index(WORKTREES)] + "/"
        with self._handles() as handles:
            enclosing = [
                project.path
                for project in handles.store.open_projects()
                if path.startswith(project.path.rstrip("/") + "/")
            ]
        return max(enclosing, key=len, default=None)


def indexing(store: StoreReader) -> Indexing | None:
    """How far a first scan or rebuild is, as the process that writes noted it last; None where none runs."""
    noted = store.meta("progress")
    return None if noted is None else Indexing(**orjson.loads(noted))


def _scan_notes(store: StoreReader) -> list[str]:
    """How far a first scan or rebuild is, where one is running: what is asked for may be on its way."""
    running = indexing(store)
    return [] if running is None else [indexing_note(running)]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
