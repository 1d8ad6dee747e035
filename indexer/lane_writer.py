"""Bringing one folder of the index up to the store, by the sequence number of each chunk's latest write."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexer.index import ChunkDocument, IndexWriter
from indexer.lanes import LANES
from indexer.order import TurnKey
from indexer.store import chunks
from indexer.vocabulary import VocabularyWriter
from indexer.words import pieces_of, terms_of
from schemas.folding import fold
from schemas.items import Kind, Layer

WORDS_FOLDER = "words"
READ_ROWS = 256
"""Chunks read from the store at a time; some MB."""

_COLUMNS = "c.id, c.session, c.turn, s.project, c.layer, t.at, c.size, b.body"
_JOINED = "JOIN bodies b ON b.chunk = c.id JOIN sessions s ON s.id = c.session"
_DUE = (
    f"SELECT {_COLUMNS}, c.sequence FROM chunks c {_JOINED}"
    " JOIN turns t ON t.session = c.session AND t.turn = c.turn"
    " WHERE c.lane = ? AND c.sequence > ? AND c.sequence <= ? ORDER BY c.sequence LIMIT ?"
)
_TURNS_BEFORE = (
    "SELECT at, session, turn FROM turns WHERE (at, session, turn) < (?, ?, ?)"
    " ORDER BY at DESC, session DESC, turn DESC LIMIT ?"
)
_OF_TURN = (
    f"SELECT {_COLUMNS} FROM turns t JOIN chunks c ON c.session = t.session AND c.turn = t.turn {_JOINED}"
    " WHERE t.session = ? AND t.turn = ?"
)


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a folder has come: what is behind it is due."""

    position: int
    """The sequence number of the last write that it has."""
    rebuild: TurnKey | None = None
    """In a rebuild the last turn that it has, on the way from the newest to the oldest."""


class LaneWriter:
    """Writes one folder of the index, from a store that is only read."""

    def __init__(self, store: sqlite3.Connection, folder: Path, lane: int, reached: Reached) -> None:
        """
        Raises:
            Unavailable: the folder cannot be opened, or another process writes to it.
        """
        self._store = store
        self._lane = lane
        self._reached = self._committed = reached
        self._index = IndexWriter(folder / LANES[lane], lane)
        self._vocabulary = VocabularyWriter(folder / WORDS_FOLDER, LANES[lane])
        self.uncommitted_bytes = 0

    @property
    def has_news(self) -> bool:
        """Whether it has come further than the last commit said."""
        return self._reached != self._committed

    def put(self, limit_bytes: int, up_to: int) -> int:
        """Hand what is due up to a sequence number to the index, about `limit_bytes` of text; the bytes handed."""
        handed = self._put_rebuilt(limit_bytes)
        while handed < limit_bytes:
            due = (self._lane, self._reached.position, up_to, READ_ROWS)
            rows = self._store.execute(_DUE, due).fetchall()
            for *chunk, sequence in rows:
                handed += self._put_chunk(chunk)
                self._reached = Reached(sequence, self._reached.rebuild)
                if handed >= limit_bytes:
                    break
            if len(rows) < READ_ROWS:
                break
        self.uncommitted_bytes += handed
        return handed

    def _put_rebuilt(self, limit_bytes: int) -> int:
        handed = 0
        while handed < limit_bytes and self._reached.rebuild is not None:
            turns = self._store.execute(_TURNS_BEFORE, (*self._reached.rebuild, READ_ROWS)).fetchall()
            for key in turns:
                for chunk in self._store.execute(_OF_TURN, key[1:]):
                    handed += self._put_chunk(chunk)
                self._reached = Reached(self._reached.position, key)
                if handed >= limit_bytes:
                    break
            if not turns:
                self._reached = Reached(self._reached.position)
        return handed

    def _put_chunk(self, row: Iterable[Any]) -> int:
        chunk, session, turn, project, layer, at_ms, size, body = row
        rows = chunks.unpack(body)
        texts = [text for row in rows for text in chunks.texts_of(row, layer)]
        kinds = {Kind(row[1]) for row in rows}
        terms = [terms_of(piece) for piece in pieces_of(fold("\n".join(texts)))]
        for piece in terms:
            self._vocabulary.add(piece.distinct, piece.joints)
        self._index.put(ChunkDocument(chunk, session, turn, project, Layer(layer), at_ms, kinds, terms))
        return int(size)

    def remove(self, chunk: int) -> None:
        self._index.remove(chunk)

    def commit(self) -> Reached:
        """Make what was handed findable; how far the folder has come, to be noted.

        Raises:
            ValueError: the index could not be written: close this writer, and put again what was handed.
        """
        self._vocabulary.flush()
        self._index.commit()
        self.uncommitted_bytes = 0
        self._committed = self._reached
        return self._reached

    def words(self) -> dict[str, int]:
        """The sizes of its files of the vocabulary."""
        return self._vocabulary.sizes()

    def close(self) -> None:
        """
        Raises:
            ValueError: the index could not be closed in order.
        """
        self._vocabulary.close()
        self._index.close()
