"""How the index follows the store: by the sequence number of each chunk's latest write.

The store is written first, then the index, then how far the index has come. A crash between two of them
repeats work and loses none, since writing a chunk twice is writing it once. An index that is missing,
damaged or of another version is made anew in a folder of its own, newest turns first, and every search
goes on over what it holds so far.

An index that must not be in use any more, as it holds what was forgotten, is replaced: another follower makes
one beside it, while every search goes on over the old one, and takes its place when it has all that the old
one has.
"""

import logging
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from indexer.bulk import COMMIT_BYTES, BulkProcess, Report
from indexer.index import INDEX_VERSION, IndexWriter
from indexer.lane_writer import WORDS_FOLDER, LaneWriter, Reached
from indexer.lanes import BULK, LANES, LIVE
from indexer.order import AFTER_ALL
from indexer.store.contents import NEXT, POSITIONS
from indexer.store.writer import StoreWriter
from indexer.vocabulary import WORDS_BYTES, VocabularyWriter
from schemas.errors import Unavailable

log = logging.getLogger(__name__)

FOLDER_PREFIX = "index-"

GONE_SUFFIX = ".gone"
"""Ends the name of one that is being removed."""

FOLDER = "index_folder"
VERSION = "index_version"
REBUILD_POSITION = "rebuild_position"

_NOTES = (FOLDER, VERSION, REBUILD_POSITION, WORDS_BYTES, *POSITIONS)

PROCESS_CHUNKS = 8_000
"""With more chunks due for `bulk` a process of its own is worth its start."""

AHEAD_CHUNKS = 300_000
"""How far a scan may store ahead of what is found; some 300 MB of text, or three commits of `bulk`."""


class IndexFollower:
    """Brings the index up to the store. Used by the thread that writes the store."""

    def __init__(
        self, data_dir: Path, store: StoreWriter, wake: Callable[[], None], *, is_successor: bool = False
    ) -> None:
        """`wake` is called, by another thread, when there is more to do for `step_bulk`.

        `is_successor`: whether it makes an index that is to take the place of the one in use, or goes on with that.
        """
        self._data_dir = data_dir
        self._store = store
        self._notes = NEXT if is_successor else ""
        self._wake = wake
        self._live: LaneWriter | None = None
        self._bulk: LaneWriter | BulkProcess | None = None
        """Open while there is something to do."""
        self._is_much_expected = False
        self._open_or_start_anew()

    @property
    def folder(self) -> Path:
        return self._data_dir / str(self._noted(FOLDER))

    def _noted(self, name: str) -> Any:
        return self._store.meta(self._notes + name)

    def _note(self, name: str, value: Any) -> None:
        self._store.set_meta(self._notes + name, value)

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
        name = self._noted(FOLDER)
        if name is None or self._noted(VERSION) != INDEX_VERSION:
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
            self._note(FOLDER, name)
            self._note(VERSION, INDEX_VERSION)
            self._note(WORDS_BYTES, orjson.dumps(sizes))
            self._note(POSITIONS[BULK], self._store.contents.sequence)
            self._note(POSITIONS[LIVE], self._store.contents.sequence)
            self._note(REBUILD_POSITION, orjson.dumps(AFTER_ALL) if self._store.contents.sequence else None)

    def _open(self) -> None:
        folder = self.folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for other in other_folders(self._data_dir, self._store):
            remove_folder(other, ignore_errors=True)
        rebuild = self._noted(REBUILD_POSITION)
        self._reached = Reached(
            int(self._noted(POSITIONS[BULK])), None if rebuild is None else tuple(orjson.loads(rebuild))
        )
        self._live = self._opened(LIVE, Reached(int(self._noted(POSITIONS[LIVE]))))
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

    def share_rebuilt(self) -> float:
        """How much of the store's turns is in an index that is made anew, from 0 to 1."""
        if self._reached.rebuild is None:
            return 1.0
        turns, left = self._store.contents.count_turns(self._reached.rebuild)
        return 1 - left / turns if turns else 1.0

    def check(self) -> None:
        """See whether the index is still as it was left; where it is not, what is done next makes it anew."""
        if self._live is not None and not self._is_usable():
            log.warning("the index in %s was damaged meanwhile, it is rebuilt from the store", self.folder)
            self.close()

    # The folder `live`.

    def put_live(self, limit_bytes: int) -> int:
        """Hand what is due to `live`, about `limit_bytes` of text; returns the bytes handed.

        Raises:
            Unavailable: the index can be neither opened nor made anew.
        """
        if self._live is None:
            self._open_or_start_anew()
        assert self._live is not None
        return self._live.put(limit_bytes, self._store.contents.sequence)

    def commit_live(self) -> None:
        """Make what was handed to `live` findable, and what was removed from the store no more.

        Raises:
            ValueError: the index could not be written; what was handed is handed again.
        """
        assert self._live is not None
        removed = self._store.contents.removed_chunks()
        for chunk in removed:
            self._live.remove(chunk)
        with self._closed_on_failure():
            reached = self._live.commit()
        with self._store.transaction():
            # What `bulk` still says of a chunk that is gone is a candidate that verification drops.
            self._store.contents.forget_removed(removed)
            self._note(POSITIONS[LIVE], reached.position)
            self._note_words(self._live.words())

    # The folder `bulk`.

    def expect_much(self) -> None:
        """What comes for `bulk` now is so much that a process of its own is to index it."""
        self._is_much_expected = True

    @property
    def is_bulk_due(self) -> bool:
        """Whether the store holds what is not yet found through `bulk`."""
        return self.is_rebuilding or self._store.contents.has_chunks_past(BULK, self._reached.position)

    @property
    def is_due(self) -> bool:
        """Whether the store holds what is not yet found, through either folder."""
        if self._live is None:
            return True
        return self.is_bulk_due or self._store.contents.has_chunks_past(LIVE, int(self._noted(POSITIONS[LIVE])))

    @property
    def is_bulk_far_behind(self) -> bool:
        """Whether the store holds so much of that that it had better wait."""
        return self._store.contents.has_chunks_past(BULK, self._reached.position, AHEAD_CHUNKS)

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
                self._let_end(self._bulk)
            return False
        self._choose_writer_of_bulk()
        if isinstance(self._bulk, BulkProcess):
            return self._step_process(self._bulk, is_last)
        assert self._bulk is not None
        return self._step_here(self._bulk, limit_bytes, is_last)

    def _let_end(self, process: BulkProcess) -> None:
        self._is_much_expected = False
        if not process.is_ending:
            process.end()
        elif process.has_ended:
            process.close()
            self._bulk = None

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
        return self._is_much_expected or self._store.contents.has_chunks_past(BULK, position, PROCESS_CHUNKS)

    def finish_bulk(self) -> None:
        """Make what was handed to `bulk` by this process findable.

        Raises:
            ValueError: the index could not be written; what was handed is handed again.
        """
        if isinstance(self._bulk, LaneWriter) and self._bulk.uncommitted_bytes:
            self._commit_here(self._bulk)

    def _step_here(self, writer: LaneWriter, limit_bytes: int, is_last: bool) -> bool:
        handed = writer.put(limit_bytes, self._store.contents.sequence)
        if writer.uncommitted_bytes >= COMMIT_BYTES or (is_last and not handed):
            self._commit_here(writer)
            return True
        return handed > 0

    def _commit_here(self, writer: LaneWriter) -> None:
        with self._closed_on_failure():
            reached = writer.commit()
        self._note_bulk(Report(reached, writer.words()))

    def _step_process(self, process: BulkProcess, is_last: bool) -> bool:
        process.follow(self._store.contents.sequence, is_last=is_last)
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
            self._note(POSITIONS[BULK], report.reached.position)
            self._note(REBUILD_POSITION, None if rebuild is None else orjson.dumps(rebuild))
            self._note_words(report.words)

    def _words_bytes(self) -> dict[str, int]:
        sizes: dict[str, int] = orjson.loads(self._noted(WORDS_BYTES) or b"{}")
        return sizes

    def _note_words(self, sizes: dict[str, int]) -> None:
        noted = self._words_bytes()
        # A file that is smaller than it was has lost words, which must not be forgotten.
        largest = {name: max(size, noted.get(name, 0)) for name, size in sizes.items()}
        self._note(WORDS_BYTES, orjson.dumps(noted | largest))

    # The place of another one.

    def has_all_of(self, other: "IndexFollower") -> bool:
        """Whether what was found through `bulk` of another follower's index is found through that of this one's."""
        return not self.is_rebuilding and (self._reached.position >= other._reached.position or not self.is_bulk_due)

    def take_over(self) -> None:
        """Bring a successor's `live` up to the store, and have its index be the one in use.

        Raises:
            ValueError: the index could not be written; what was handed is handed again.
            Unavailable: the index can be neither opened nor made anew.
        """
        while self.put_live(COMMIT_BYTES):
            self.commit_live()
        with self._store.transaction():
            for name in _NOTES:
                self._store.set_meta(name, self._noted(name))
                self._store.drop_meta(self._notes + name)
        self._notes = ""

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


def other_folders(data_dir: Path, store: StoreWriter) -> list[Path]:
    """Folders of an index that is neither in use nor made to be."""
    kept = {store.meta(FOLDER), store.meta(NEXT + FOLDER)}
    return [folder for folder in data_dir.glob(f"{FOLDER_PREFIX}*") if folder.name not in kept]


def remove_folder(folder: Path, *, ignore_errors: bool = False) -> None:
    """Remove a folder of an index at once; readers that still have it open keep their mapping.

    Raises:
        OSError: it cannot be removed, and that is not to be ignored.
    """
    gone = folder if folder.suffix == GONE_SUFFIX else folder.with_suffix(GONE_SUFFIX)
    with suppress(OSError):
        folder.rename(gone)  # whoever is about to open it finds all of it or nothing
    for path in (gone, folder):
        if path.exists():
            shutil.rmtree(path, ignore_errors=ignore_errors)


def has_successor(store: StoreWriter) -> bool:
    """Whether an index is being made that is to take the place of the one in use."""
    return store.meta(NEXT + FOLDER) is not None


def drop_successor(store: StoreWriter) -> None:
    """Forget what was begun of a successor; its folder goes with the others that are not in use."""
    with store.transaction():
        for name in _NOTES:
            store.drop_meta(NEXT + name)
