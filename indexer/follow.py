"""How the index follows the store: by the sequence number of each chunk's latest write.

The store is written first, then the index, then how far the index has come. A crash between two of them
repeats work and loses none, since writing a chunk twice is writing it once. An index that is missing,
damaged or of another version is made anew in a folder of its own, newest turns first, and every search
goes on over what it holds so far.
"""

import logging
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import orjson

from indexer.bulk import COMMIT_BYTES, BulkProcess, Report
from indexer.index import INDEX_VERSION, IndexWriter
from indexer.lane_writer import WORDS_FOLDER, LaneWriter, Reached
from indexer.lanes import BULK, LANES, LIVE
from indexer.order import AFTER_ALL
from indexer.store.writer import POSITIONS, StoreWriter
from indexer.vocabulary import VocabularyWriter
from schemas.errors import Unavailable

log = logging.getLogger(__name__)

FOLDER_PREFIX = "index-"

REBUILD_POSITION = "rebuild_position"
WORDS_BYTES = "words_bytes"
"""How large the files of the vocabulary were at the last commits: a smaller one was damaged."""

PROCESS_CHUNKS = 8_000
"""With more chunks due for `bulk` a process of its own is worth its start."""

AHEAD_CHUNKS = 100_000
"""How far a scan may store ahead of what is found; some 100 MB of text, which is three commits of `bulk`."""


class IndexFollower:
    """Brings the index up to the store. Used by the thread that writes the store."""

    def __init__(self, data_dir: Path, store: StoreWriter, wake: Callable[[], None]) -> None:
        """`wake` is called, by another thread, when there is more to do for `step_bulk`."""
        self._data_dir = data_dir
        self._store = store
        self._wake = wake
        self._live: LaneWriter | None = None
        self._bulk: LaneWriter | BulkProcess | None = None
        """Open while there is something to do."""
        self._is_much_expected = False
        self._open_or_start_anew()

    @property
    def folder(self) -> Path:
        return self._data_dir / str(self._store.meta("index_folder"))

    def _open_or_start_anew(self) -> None:
        if not self._is_usable():
            self._start_anew()
        try:
            self._open()
        except Unavailable as error:
            log.warning("the index in %s is damaged, it is rebuilt from the store: %s", self.folder, error)
            self.close()
            self._start_anew()
            self._open()

    def _is_usable(self) -> bool:
        name = self._store.meta("index_folder")
        if name is None or self._store.meta("index_version") != INDEX_VERSION:
            return False
        folder = self._data_dir / str(name)
        return all((folder / lane / "meta.json").is_file() for lane in LANES) and all(
            (words := folder / WORDS_FOLDER / file).is_file() and words.stat().st_size >= size
            for file, size in self._words_bytes().items()
        )

    def _start_anew(self) -> None:
        """A new folder; everything the store holds now is due for `bulk`, the newest turn first."""
        name = FOLDER_PREFIX + uuid.uuid4().hex[:12]
        sizes: dict[str, int] = {}
        # Empty, but there, before anybody is sent to it.
        for number, lane in enumerate(LANES):
            IndexWriter(self._data_dir / name / lane, number).close()
            with closing(VocabularyWriter(self._data_dir / name / WORDS_FOLDER, lane)) as vocabulary:
                sizes |= vocabulary.sizes()
        with self._store.transaction():
            self._store.set_meta("index_folder", name)
            self._store.set_meta("index_version", INDEX_VERSION)
            self._store.set_meta(WORDS_BYTES, orjson.dumps(sizes))
            self._store.set_meta(POSITIONS[BULK], self._store.sequence)
            self._store.set_meta(POSITIONS[LIVE], self._store.sequence)
            self._store.set_meta(REBUILD_POSITION, orjson.dumps(AFTER_ALL) if self._store.sequence else None)

    def _open(self) -> None:
        folder = self.folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for other in self._data_dir.glob(f"{FOLDER_PREFIX}*"):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)  # readers that still have it open keep their mapping
        rebuild = self._store.meta(REBUILD_POSITION)
        self._reached = Reached(
            int(self._store.meta(POSITIONS[BULK])), None if rebuild is None else tuple(orjson.loads(rebuild))
        )
        self._live = self._opened(LIVE, Reached(int(self._store.meta(POSITIONS[LIVE]))))
        # Opened before it is needed, so that a folder that cannot be is made anew with the other.
        self._bulk = self._opened(BULK, self._reached)

    def _opened(self, lane: int, reached: Reached) -> LaneWriter:
        return LaneWriter(self._store.connection, self.folder, lane, reached)

    @property
    def is_open(self) -> bool:
        """Whether nothing failed since the last step; after a failure the next one opens the index again."""
        return self._live is not None

    @property
    def is_rebuilding(self) -> bool:
        """Whether what the store held when the index was made anew is not yet all in it."""
        return self._reached.rebuild is not None

    # The folder `live`.

    def put_live(self, limit_bytes: int) -> int:
        """Hand what is due to `live`, about `limit_bytes` of text; returns the bytes handed.

        Raises:
            Unavailable: the index can be neither opened nor made anew.
        """
        if self._live is None:
            self._open_or_start_anew()
        assert self._live is not None
        return self._live.put(limit_bytes, self._store.sequence)

    def commit_live(self) -> None:
        """Make what was handed to `live` findable, and what was removed from the store no more.

        Raises:
            ValueError: the index could not be written; what was handed is handed again.
        """
        assert self._live is not None
        removed = self._store.removed_chunks()
        for chunk in removed:
            self._live.remove(chunk)
        with self._closed_on_failure():
            reached = self._live.commit()
        with self._store.transaction():
            # What `bulk` still says of a chunk that is gone is a candidate that verification drops.
            self._store.forget_removed(removed)
            self._store.set_meta(POSITIONS[LIVE], reached.position)
            self._note_words(self._live.words())

    # The folder `bulk`.

    def expect_much(self) -> None:
        """What comes for `bulk` now is so much that a process of its own is to index it."""
        self._is_much_expected = True

    @property
    def is_bulk_due(self) -> bool:
        """Whether the store holds what is not yet found through `bulk`."""
        return self.is_rebuilding or self._store.has_chunks_past(BULK, self._reached.position)

    @property
    def is_bulk_far_behind(self) -> bool:
        """Whether the store holds so much of that that it had better wait."""
        return self._store.has_chunks_past(BULK, self._reached.position, AHEAD_CHUNKS)

    def step_bulk(self, limit_bytes: int, *, is_last: bool) -> bool:
        """Bring `bulk` further, by about `limit_bytes` of text or by what its process did; whether there was anything.

        `is_last` says that nothing more is coming for now, so that all of it is to be found soon.

        Raises:
            ValueError: the index could not be written; what was handed is handed again.
            Unavailable: the index can be neither opened nor made anew.
        """
        if self._live is None:
            self._open_or_start_anew()
        if not self.is_bulk_due:
            if is_last and isinstance(self._bulk, BulkProcess):
                self._bulk.end()
                self._is_much_expected = False
            return False
        self._choose_writer_of_bulk()
        if isinstance(self._bulk, BulkProcess):
            return self._step_process(self._bulk, is_last)
        assert self._bulk is not None
        return self._step_here(self._bulk, limit_bytes, is_last)

    def _choose_writer_of_bulk(self) -> None:
        if isinstance(self._bulk, BulkProcess) and not self._bulk.is_ending:
            return
        is_much = self._is_much_due()
        if isinstance(self._bulk, LaneWriter) and not is_much:
            return
        if self._bulk is not None:
            self._bulk.close()  # two of them cannot write the folder
        if is_much:
            self._bulk = BulkProcess(self._data_dir, self.folder, self._reached, self._wake)
        else:
            self._bulk = self._opened(BULK, self._reached)

    def _is_much_due(self) -> bool:
        position = None if self.is_rebuilding else self._reached.position
        return self._is_much_expected or self._store.has_chunks_past(BULK, position, PROCESS_CHUNKS)

    def finish_bulk(self) -> None:
        """Make what was handed to `bulk` by this process findable.

        Raises:
            ValueError: the index could not be written; what was handed is handed again.
        """
        if isinstance(self._bulk, LaneWriter) and self._bulk.uncommitted_bytes:
            self._commit_here(self._bulk)

    def _step_here(self, writer: LaneWriter, limit_bytes: int, is_last: bool) -> bool:
        handed = writer.put(limit_bytes, self._store.sequence)
        if writer.uncommitted_bytes >= COMMIT_BYTES or (is_last and not handed):
            self._commit_here(writer)
            return True
        return handed > 0

    def _commit_here(self, writer: LaneWriter) -> None:
        with self._closed_on_failure():
            reached = writer.commit()
        self._note_bulk(Report(reached, writer.words()))

    def _step_process(self, process: BulkProcess, is_last: bool) -> bool:
        process.follow(self._store.sequence, is_last=is_last)
        with self._closed_on_failure():
            report = process.take()
        if report is None:
            return False
        self._note_bulk(report)
        return True

    def _note_bulk(self, report: Report) -> None:
        self._reached = report.reached
        rebuild = report.reached.rebuild
        with self._store.transaction():
            self._store.set_meta(POSITIONS[BULK], report.reached.position)
            self._store.set_meta(REBUILD_POSITION, None if rebuild is None else orjson.dumps(rebuild))
            self._note_words(report.words)

    def _words_bytes(self) -> dict[str, int]:
        sizes: dict[str, int] = orjson.loads(self._store.meta(WORDS_BYTES) or b"{}")
        return sizes

    def _note_words(self, sizes: dict[str, int]) -> None:
        self._store.set_meta(WORDS_BYTES, orjson.dumps(self._words_bytes() | sizes))

    @contextmanager
    def _closed_on_failure(self) -> Iterator[None]:
        """A writer that failed once goes on as if nothing were wrong, and stores nothing.

        What is done next opens the index again, and goes on where the last commit was.
        """
        try:
            yield
        except ValueError:
            self.close()
            raise

    def close(self) -> None:
        for writer in (self._live, self._bulk):
            try:
                if writer is not None:
                    writer.close()
            except ValueError as error:
                log.warning("an index folder could not be closed: %s", error)
        self._live = self._bulk = None
