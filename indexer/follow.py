"""How the index follows the store: by the sequence number of each chunk's latest write.

The store is written first, then the index, then how far the index has come. A crash between two of them
repeats work and loses none, since writing a chunk twice is writing it once. An index that is missing,
damaged or of another version is made anew in a folder of its own, newest turns first, and every search
goes on over what it holds so far.
"""

import logging
import shutil
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orjson

from indexer.index import BULK, INDEX_VERSION, LANES, LIVE, ChunkDocument, IndexWriter
from indexer.order import AFTER_ALL, TurnKey
from indexer.store import chunks
from indexer.store.writer import POSITIONS, StoreWriter
from indexer.vocabulary import WORDS_FILE, VocabularyWriter
from indexer.words import terms_of
from schemas.errors import Unavailable
from schemas.folding import fold
from schemas.items import Kind, Layer

log = logging.getLogger(__name__)

FOLDER_PREFIX = "index-"
WORDS_FOLDER = "words"
READ_ROWS = 256
"""Chunks read from the store at a time; some MB."""

REBUILD_POSITION = "rebuild_position"
WORDS_BYTES = "words_bytes"
"""How large the vocabulary was at the last commit: a smaller one was damaged."""

_COLUMNS = "c.id, c.session, c.turn, s.project, c.layer, t.at, c.size, b.body"
_JOINED = "JOIN bodies b ON b.chunk = c.id JOIN sessions s ON s.id = c.session"
_DUE = (
    f"SELECT {_COLUMNS}, c.sequence FROM chunks c {_JOINED}"
    " JOIN turns t ON t.session = c.session AND t.turn = c.turn"
    " WHERE c.lane = ? AND c.sequence > ? ORDER BY c.sequence LIMIT ?"
)
_TURNS_BEFORE = (
    "SELECT at, session, turn FROM turns WHERE (at, session, turn) < (?, ?, ?)"
    " ORDER BY at DESC, session DESC, turn DESC LIMIT ?"
)
_OF_TURN = (
    f"SELECT {_COLUMNS} FROM turns t JOIN chunks c ON c.session = t.session AND c.turn = t.turn {_JOINED}"
    " WHERE t.session = ? AND t.turn = ?"
)


class IndexFollower:
    """Brings the index up to the store. Used by the thread that writes the store."""

    def __init__(self, data_dir: Path, store: StoreWriter) -> None:
        self._data_dir = data_dir
        self._store = store
        self._writers: list[IndexWriter] = []
        self.is_rebuilding = False
        """Whether what the store held when the index was made anew is not yet all in it."""
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
        words = folder / WORDS_FOLDER / WORDS_FILE
        return (
            words.is_file()
            and words.stat().st_size >= (self._store.meta(WORDS_BYTES) or 0)
            and all((folder / lane / "meta.json").is_file() for lane in LANES)
        )

    def _start_anew(self) -> None:
        """A new folder; everything the store holds now is due for `bulk`, the newest turn first."""
        name = FOLDER_PREFIX + uuid.uuid4().hex[:12]
        # Empty, but there, before anybody is sent to it.
        VocabularyWriter(self._data_dir / name / WORDS_FOLDER).close()
        for number, lane in enumerate(LANES):
            IndexWriter(self._data_dir / name / lane, number).close()
        with self._store.transaction():
            self._store.set_meta("index_folder", name)
            self._store.set_meta("index_version", INDEX_VERSION)
            self._store.set_meta(WORDS_BYTES, 0)
            self._store.set_meta(POSITIONS[BULK], self._store.sequence)
            self._store.set_meta(POSITIONS[LIVE], self._store.sequence)
            self._store.set_meta(REBUILD_POSITION, orjson.dumps(AFTER_ALL) if self._store.sequence else None)

    def _open(self) -> None:
        folder = self.folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for other in self._data_dir.glob(f"{FOLDER_PREFIX}*"):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)  # readers that still have it open keep their mapping
        self._vocabulary = VocabularyWriter(folder / WORDS_FOLDER)
        for number, lane in enumerate(LANES):
            self._writers.append(IndexWriter(folder / lane, number))
        self._positions = [int(self._store.meta(name)) for name in POSITIONS]
        rebuild = self._store.meta(REBUILD_POSITION)
        self._rebuild: TurnKey | None = None if rebuild is None else tuple(orjson.loads(rebuild))
        self.is_rebuilding = self._rebuild is not None
        self.uncommitted_bytes = [0, 0]
        self._removed: list[int] = []

    @property
    def is_open(self) -> bool:
        """Whether nothing failed since the last `put`; after a failure the next one opens the index again."""
        return bool(self._writers)

    def put(self, lane: int, limit_bytes: int) -> int:
        """Hand what is due to a folder's writer, about `limit_bytes` of text; returns the bytes handed.

        Raises:
            Unavailable: the index can be neither opened nor made anew.
        """
        if not self._writers:
            self._open_or_start_anew()
        handed = self._put_rebuilt(limit_bytes) if lane == BULK and self._rebuild is not None else 0
        while handed < limit_bytes:
            rows = self._store.connection.execute(_DUE, (lane, self._positions[lane], READ_ROWS)).fetchall()
            for *chunk, sequence in rows:
                handed += self._put_chunk(lane, chunk)
                self._positions[lane] = sequence
                if handed >= limit_bytes:
                    break
            if len(rows) < READ_ROWS:
                break
        self.uncommitted_bytes[lane] += handed
        return handed

    def _put_rebuilt(self, limit_bytes: int) -> int:
        handed = 0
        while handed < limit_bytes and self._rebuild is not None:
            turns = self._store.connection.execute(_TURNS_BEFORE, (*self._rebuild, READ_ROWS)).fetchall()
            for key in turns:
                for chunk in self._store.connection.execute(_OF_TURN, key[1:]):
                    handed += self._put_chunk(BULK, chunk)
                self._rebuild = key
                if handed >= limit_bytes:
                    break
            if not turns:
                self._rebuild = None
        return handed

    def _put_chunk(self, lane: int, row: Iterable[Any]) -> int:
        chunk, session, turn, project, layer, at_ms, size, body = row
        rows = chunks.unpack(body)
        texts = [text for row in rows for text in chunks.texts_of(row, layer)]
        kinds = {Kind(row[1]) for row in rows}
        terms = terms_of(fold("\n".join(texts)))
        self._vocabulary.add(terms.distinct)
        self._writers[lane].put(ChunkDocument(chunk, session, turn, project, Layer(layer), at_ms, kinds, terms))
        return int(size)

    def commit(self, lane: int) -> None:
        """Make what was handed findable, then note how far this folder has come.

        Raises:
            ValueError: the index could not be written; what was handed is handed again.
        """
        failure: BaseException | None = None
        try:
            self.begin_commit(lane)()
        except ValueError as error:
            failure = error
        self.finish_commit(lane, failure)

    def begin_commit(self, lane: int) -> Callable[[], None]:
        """The part of a commit that takes its time: another thread may call it, while nothing is put in this lane."""
        self._removed = self._store.removed_chunks() if lane == LIVE else []
        for chunk in self._removed:
            self._writers[LIVE].remove(chunk)
        self._vocabulary.flush()
        return self._writers[lane].commit

    def finish_commit(self, lane: int, failure: BaseException | None) -> None:
        """Note how far a folder has come after its commit; where that failed, go back to where it was.

        Raises:
            ValueError: it failed.
        """
        if failure is not None:
            # A writer that failed once goes on as if nothing were wrong, and stores nothing. What is put next opens
            # the index again, and goes on where the last commit was.
            self.close()
            self.uncommitted_bytes = [0, 0]
            raise failure
        self.uncommitted_bytes[lane] = 0
        with self._store.transaction():
            if lane == LIVE:
                # What `bulk` still says of a chunk that is gone is a candidate that verification drops.
                self._store.forget_removed(self._removed)
            self._store.set_meta(POSITIONS[lane], self._positions[lane])
            self._store.set_meta(WORDS_BYTES, self._vocabulary.size)
            if lane == BULK:
                rebuild = None if self._rebuild is None else orjson.dumps(self._rebuild)
                self._store.set_meta(REBUILD_POSITION, rebuild)
        if lane == BULK:
            self.is_rebuilding = self._rebuild is not None

    def close(self) -> None:
        while self._writers:
            try:
                self._writers.pop().close()
            except ValueError as error:
                log.warning("an index folder could not be closed: %s", error)
        self._vocabulary.close()
