"""The turns of sessions in the store: their items in chunks, and in which order these are handed to the index."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from indexer.order import TurnKey
from indexer.sources.base import Append, Patch
from indexer.store import chunks
from indexer.store.chunks import Row
from indexer.store.relations import origin_key
from schemas.items import Item, Kind, Layer, Status

POSITIONS = ("bulk_position", "live_position")
"""The names under which the index notes, for each of its folders, up to which sequence number it has followed."""

NEXT = "next_"
"""Stands before the names of what is noted of an index that is made to take the place of the one in use."""

MAX_TURN_TIME_MS = 253_402_300_799_999
"""The end of the year 9999: what the edges can print."""

_ALL_POSITIONS = POSITIONS + tuple(NEXT + name for name in POSITIONS)
_PAST_ALL = 2**62
_T = TypeVar("_T")


class Contents:
    """Used within the writer's transactions. Every chunk that is written gets the next sequence number of its lane."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        # The index may have come further than any chunk that is still there: the latest ones may have been removed.
        self._sequence: int = self._db.execute(
            "SELECT max(coalesce((SELECT max(sequence) FROM chunks WHERE lane = 0), 0),"
            " coalesce((SELECT max(sequence) FROM chunks WHERE lane = 1), 0),"
            " coalesce((SELECT max(sequence) FROM removed), 0),"
            f" coalesce((SELECT max(value) FROM meta WHERE key IN {_ALL_POSITIONS}), 0))"
        ).fetchone()[0]
        last = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'").fetchone()
        self._last_chunk: int = 0 if last is None else last[0]
        self._new_chunks: list[tuple[Any, ...]] = []
        self._new_bodies: list[tuple[int, bytes]] = []

    def change(self, session: int, changes: Iterable[Append | Patch], turns: int | None, lane: int) -> list[int]:
        """Store changes of a session, and drop all turns past a number, where there is one.

        Answers the turns that are new, or of which it was told anew where they come from.
        """
        retold: set[int] = set()
        for change in changes:
            if isinstance(change, Append):
                if self._append(session, change, lane):
                    retold.add(change.turn)
            else:
                self._patch(session, change, lane)
        self._insert_new_chunks()
        if turns is not None:
            past = "SELECT id FROM chunks WHERE session = ? AND turn > ?"
            self._remove_chunks(self._db.execute(past, (session, turns)).fetchall())
            self._db.execute("DELETE FROM turns WHERE session = ? AND turn > ?", (session, turns))
        self._db.execute(
            "UPDATE sessions SET (turns, first_at, last_at) ="
            " (SELECT coalesce(max(turn), 0), min(at), max(at) FROM turns WHERE session = ?1) WHERE id = ?1",
            (session,),
        )
        return sorted(retold)

    def abandon(self) -> None:
        """Drop what was to be written in a transaction that failed."""
        self._new_chunks, self._new_bodies = [], []

    def first_item(self, session: int) -> Item | None:
        """The first item of the first turn, as its conversation holds it."""
        row = self._db.execute(
            "SELECT id FROM chunks WHERE session = ? AND turn = 1 AND layer = 0 ORDER BY first LIMIT 1", (session,)
        ).fetchone()
        return None if row is None else chunks.item_of(self._rows(row[0])[0], Layer.CONVERSATION)

    def _append(self, session: int, change: Append, lane: int) -> bool:
        """Store items of a turn; whether the turn is new, or where it comes from was told anew."""
        at_ms = min(max(change.at_ms, 0), MAX_TURN_TIME_MS)
        origin = None if change.origin is None else origin_key(self._source_of(session), change.origin)
        inserted = self._db.execute(
            "INSERT OR IGNORE INTO turns(session, turn, at, origin, is_copy) VALUES (?, ?, ?, ?, ?)",
            (session, change.turn, at_ms, origin, change.is_copy),
        )
        is_new = is_retold = inserted.rowcount > 0
        if not is_new:
            told = self._db.execute(
                "UPDATE turns SET origin = ?1, is_copy = ?2 WHERE session = ?3 AND turn = ?4"
                " AND (origin IS NOT ?1 OR is_copy <> ?2)",
                (origin, change.is_copy, session, change.turn),
            )
            is_retold = told.rowcount > 0
        end = None if change.is_whole else change.first + len(change.items)
        for layer in Layer:
            rows = [
                row
                for index, item in enumerate(change.items, change.first)
                if (row := chunks.row_of(index, item, layer)) is not None
            ]
            if is_new:
                for packed in chunks.pack(rows):
                    self._write_chunk(None, (session, change.turn, layer), packed, lane)
            else:
                self._replace(session, change.turn, layer, change.first, end, rows, lane)
        return is_retold

    def _source_of(self, session: int) -> str:
        return str(self._db.execute("SELECT source FROM sessions WHERE id = ?", (session,)).fetchone()[0])

    def _patch(self, session: int, change: Patch, lane: int) -> None:
        self._insert_new_chunks()
        for layer in Layer:
            row = self._row(session, change.turn, layer, change.index)
            if layer is Layer.CONVERSATION:
                if row is None or row[1] != Kind.TOOL:
                    return  # the file was rewritten meanwhile; reading it anew brings the item as it is
                at_ms = row[4]
                tool = Item(Kind.TOOL, label=row[2], status=Status(row[3]), at_ms=at_ms)
                tool = replace(tool, label=_given(change.label, tool.label), status=_given(change.status, tool.status))
            else:
                tool = Item(
                    Kind.TOOL,
                    input=_given(change.input, row[2] if row else None),
                    output=_given(change.output, row[3] if row else None),
                )
            new = chunks.row_of(change.index, tool, layer)
            self._replace(session, change.turn, layer, change.index, change.index + 1, [new] if new else [], lane)

    def _row(self, session: int, turn: int, layer: Layer, index: int) -> Row | None:
        found = self._db.execute(
            "SELECT id FROM chunks WHERE session = ? AND turn = ? AND layer = ? AND first <= ? AND last >= ?",
            (session, turn, layer, index, index),
        ).fetchone()
        rows = [] if found is None else self._rows(found[0])
        return next((row for row in rows if row[0] == index), None)

    def _replace(
        self, session: int, turn: int, layer: Layer, start: int, end: int | None, rows: list[Row], lane: int
    ) -> None:
        self._insert_new_chunks()
        place = (session, turn, layer)
        columns = "SELECT id, first, last, hash, size FROM chunks WHERE session = ? AND turn = ? AND layer = ?"
        found = self._db.execute(
            f"{columns} AND first < ? AND last >= ? ORDER BY first", (*place, _PAST_ALL if end is None else end, start)
        ).fetchall()
        if not found:
            found = self._db.execute(f"{columns} ORDER BY first DESC LIMIT 1", place).fetchall()
            # A closed chunk is not opened again by what follows it, nor any chunk by what stands before it.
            found = [chunk for chunk in found if chunk[2] < start and chunk[4] < chunks.CLOSED_BYTES]
        known = [chunks.Stored(*chunk[:4]) for chunk in found]
        hashes = {chunk.id: chunk.hash for chunk in known}
        for chunk, packed in list(chunks.rearranged(known, rows, start, end, self._rows)):
            if packed is None:
                self._remove_chunks([(chunk,)])
            elif chunk is None or hashes[chunk] != packed.hash:
                self._write_chunk(chunk, place, packed, lane)

    def _rows(self, chunk: int) -> list[Row]:
        return chunks.unpack(self._db.execute("SELECT body FROM bodies WHERE chunk = ?", (chunk,)).fetchone()[0])

    def _write_chunk(self, chunk: int | None, place: tuple[int, int, Layer], packed: chunks.Packed, lane: int) -> None:
        fields = (*place, packed.first, packed.last, lane, self._next_sequence(), len(packed.json), packed.hash)
        body = chunks.compress(packed.json)
        if chunk is None:
            self._last_chunk += 1
            self._new_chunks.append((self._last_chunk, *fields))
            self._new_bodies.append((self._last_chunk, body))
            return
        self._db.execute(
            "UPDATE chunks SET (session, turn, layer, first, last, lane, sequence, size, hash)"
            " = (?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE id = ?",
            (*fields, chunk),
        )
        self._db.execute("UPDATE bodies SET body = ? WHERE chunk = ?", (body, chunk))

    def _insert_new_chunks(self) -> None:
        """Many at once, as that takes half the time; to be done before any chunk is asked for."""
        self._db.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._new_chunks)
        self._db.executemany("INSERT INTO bodies VALUES (?, ?)", self._new_bodies)
        self._new_chunks, self._new_bodies = [], []

    def _remove_chunks(self, removed: Sequence[tuple[int | None]]) -> None:
        self._db.executemany("DELETE FROM chunks WHERE id = ?", removed)
        self._db.executemany("DELETE FROM bodies WHERE chunk = ?", removed)
        self._db.executemany(
            "INSERT OR REPLACE INTO removed VALUES (?, ?)", [(chunk, self._next_sequence()) for (chunk,) in removed]
        )

    def index_again(self, session: int, lane: int) -> None:
        """The index keys chunks by project: one that moved is handed to it once more."""
        self._hand_again(self._db.execute("SELECT id FROM chunks WHERE session = ?", (session,)).fetchall(), lane)

    def index_turn_again(self, session: int, turn: int, lane: int) -> None:
        self._insert_new_chunks()
        place = (session, turn)
        self._hand_again(
            self._db.execute("SELECT id FROM chunks WHERE session = ? AND turn = ?", place).fetchall(), lane
        )

    def _hand_again(self, handed: Sequence[tuple[int]], lane: int) -> None:
        for (chunk,) in handed:
            self._db.execute(
                "UPDATE chunks SET lane = ?, sequence = ? WHERE id = ?", (lane, self._next_sequence(), chunk)
            )

    def has_chunks_past(self, lane: int, sequence: int | None, count: int = 0) -> bool:
        """Whether more than `count` chunks of a lane were written after a sequence number; None: chunks of any lane."""
        where, values = ("1", ()) if sequence is None else ("lane = ? AND sequence > ?", (lane, sequence))
        found = self._db.execute(f"SELECT 1 FROM chunks WHERE {where} LIMIT 1 OFFSET ?", (*values, count))
        return found.fetchone() is not None

    def removed_chunks(self) -> list[int]:
        """Chunks that are gone from here and not yet from the index."""
        return [row[0] for row in self._db.execute("SELECT chunk FROM removed ORDER BY sequence")]

    def forget_removed(self, chunks_: Sequence[int]) -> None:
        self._db.executemany("DELETE FROM removed WHERE chunk = ?", [(chunk,) for chunk in chunks_])

    @property
    def sequence(self) -> int:
        """The sequence number of the latest write."""
        return self._sequence

    def _next_sequence(self) -> int:
        self._sequence += 1
        return self._sequence

    def count_turns(self, before: TurnKey) -> tuple[int, int]:
        """How many turns there are, and how many of them stand before a place in the order."""
        turns: int = self._db.execute("SELECT count(*) FROM turns").fetchone()[0]
        left: int = self._db.execute(
            "SELECT count(*) FROM turns WHERE (at, session, turn) < (?, ?, ?)", before
        ).fetchone()[0]
        return turns, left


def _given(new: _T | None, old: _T | None) -> _T | None:
    return old if new is None else new
