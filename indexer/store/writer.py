"""The one writer of the store: what sources read goes in here, each part in one transaction."""

import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import orjson

from indexer.order import TurnKey
from indexer.sources.base import Append, Checkpoint, Part, Patch, SessionFacts, Side, Skipped, Transcript
from indexer.store import chunks
from indexer.store.chunks import Row
from indexer.store.relations import Relations, origin_key
from indexer.store.schema import BUSY_MS, create_or_open
from schemas.folding import fold
from schemas.items import Item, Kind, Layer, Status
from schemas.sources import AGENTS_OWN, CYDONIA
from schemas.texts import collapsed

FIRST_NUMBER = 1
FIRST_NUMBER_BESIDE_REGISTRY = 100_001
"""Our own numbers start here in a project that has a registry, far from where that will ever get."""

POSITIONS = ("bulk_position", "live_position")
"""The names under which the index notes, for each of its folders, up to which sequence number it has followed."""

NEXT = "next_"
"""Stands before the names of what is noted of an index that is made to take the place of the one in use."""

_ALL_POSITIONS = POSITIONS + tuple(NEXT + name for name in POSITIONS)

UNREAD_NS = -1
"""Stands for a file's mtime until it was read to its end, so that a look at the folders finds it changed."""

TURNS_AT_ONCE = 500
"""Turns that one statement names."""

_IS_OPEN = f"is_listed OR EXISTS (SELECT 1 FROM sessions WHERE project = projects.id AND source <> '{CYDONIA}')"
"""Whether a project is open: one that a source lists, or that has a session of a source that lists none."""

_IS_UNNUMBERED = f"sessions.number IS NULL AND source <> '{CYDONIA}' AND parent_id IS NULL AND twin_of IS NULL"
"""Whether a session is to have a number of ours and has none."""

_T = TypeVar("_T")

MAX_TURN_TIME_MS = 253_402_300_799_999
"""The end of the year 9999: what the edges can print."""


@dataclass(frozen=True, slots=True)
class KnownFile:
    """What the store knows of a transcript file."""

    path: bytes
    session: int | None
    checkpoint: Checkpoint | None
    signature: tuple[int, int, int, int]
    is_gone: bool


class StoreWriter:
    """Writes the store. There is one, used by one thread; `transaction` makes what is in it one step."""

    def __init__(self, data_dir: Path) -> None:
        self._db = create_or_open(data_dir)
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
        self._relations = Relations(self._db, self._index_turn_again)
        self._recorded: Collection[str] = ()
        self.mints_at_once = True
        """Whether what is stored gets its number with that; else it has none until `mint_missing` is called."""

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            self._new_chunks, self._new_bodies = [], []
            # A full disk makes SQLite roll back by itself, or leaves a transaction open that failed to commit.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def durably(self) -> Iterator[None]:
        """What is committed inside is on the disk then; else that may take until the next checkpoint."""
        self._db.execute("PRAGMA synchronous = FULL")
        try:
            yield
        finally:
            self._db.execute("PRAGMA synchronous = NORMAL")

    def purge(self) -> None:
        """Write the database anew, so that no byte in it is of what was removed; it takes twice its size of disk.

        Zeroing what is deleted is not enough: SQLite leaves copies of rows in pages whose rows it moved.
        """
        self._db.execute("VACUUM")

    def empty_log(self) -> bool:
        """Bring all of the write-ahead log into the database and cut it; whether no reader was in the way."""
        self._db.execute("PRAGMA busy_timeout = 100")
        try:
            return bool(self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")

    # Facts about the store itself.

    def meta(self, key: str) -> Any:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def set_meta(self, key: str, value: Any) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def drop_meta(self, key: str) -> None:
        self._db.execute("DELETE FROM meta WHERE key = ?", (key,))

    @property
    def connection(self) -> sqlite3.Connection:
        """For the readers that share the writer's thread."""
        return self._db

    # Projects and numbers.

    def project(self, path: Path) -> int:
        """The project's key; made known where it is new."""
        text = os.fsencode(path).decode("utf-8", "replace")
        row = self._db.execute("SELECT id FROM projects WHERE path = ?", (text,)).fetchone()
        if row is not None:
            return int(row[0])
        name = os.path.basename(text) or text
        return _inserted(self._db.execute("INSERT INTO projects(path, name) VALUES (?, ?)", (text, name)))

    def set_listed(self, paths: Sequence[Path]) -> None:
        """Note which projects a source lists as open now, and what that makes open or closed."""
        listed = [self.project(path) for path in paths]
        self._db.execute("UPDATE projects SET is_listed = 0 WHERE is_listed")
        self._db.executemany("UPDATE projects SET is_listed = 1 WHERE id = ?", [(project,) for project in listed])
        self._db.execute(f"UPDATE projects SET is_open = {_IS_OPEN}")

    def settle_open(self, projects: Iterable[int]) -> None:
        """To be called when sessions have left projects, which the last one of them closes."""
        self._db.executemany(
            f"UPDATE projects SET is_open = {_IS_OPEN} WHERE id = ?", [(project,) for project in projects]
        )

    def registry_signature(self, project: int) -> bytes | None:
        row = self._db.execute("SELECT registry FROM projects WHERE id = ?", (project,)).fetchone()
        return None if row is None else row[0]

    def set_registry(self, project: int, entries: Mapping[int, tuple[str, str | None]], signature: bytes) -> None:
        """Replace what is known of a project's registry; what it says now wins over numbers given before."""
        self._db.execute("UPDATE projects SET registry = ? WHERE id = ?", (signature, project))
        known = {
            number: (kind, id)
            for number, kind, id in self._db.execute(
                "SELECT number, kind, id FROM entries WHERE project = ?", (project,)
            )
        }
        changed = [(project, number, *entry) for number, entry in entries.items() if known.get(number) != entry]
        gone = [(project, number) for number in known.keys() - entries.keys()]
        self._db.executemany("DELETE FROM entries WHERE project = ? AND number = ?", gone)
        self._db.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)", changed)
        self._db.executemany(
            "UPDATE sessions SET number = ?, is_minted = 0"
            " WHERE project = ? AND source = 'cydonia' AND session_id = ? AND number IS NOT ?",
            [(number, project, id, number) for _, number, kind, id in changed if kind == "session" and id is not None],
        )

    def _registered_number(self, project: int, session_id: str) -> int | None:
        row = self._db.execute(
            "SELECT number FROM entries WHERE project = ? AND kind = 'session' AND id = ?", (project, session_id)
        ).fetchone()
        return None if row is None else int(row[0])

    def has_unnumbered(self, project: int) -> bool:
        """Whether a session waits for its row in the registry."""
        return (
            self._db.execute(
                "SELECT 1 FROM sessions WHERE project = ? AND source = 'cydonia' AND number IS NULL AND is_deleted = 0",
                (project,),
            ).fetchone()
            is not None
        )

    def projects_with_unnumbered(self) -> list[int]:
        """The projects with sessions that are to have a number of ours and have none."""
        found = self._db.execute(f"SELECT project, session_id FROM sessions WHERE {_IS_UNNUMBERED}")
        return list({project for project, session_id in found if session_id not in self._recorded})

    def mint_missing(self, project: int) -> None:
        """Give numbers to all sessions of a project that are to have one of ours and have none.

        The oldest start first, whatever their sources. Among those that started at the same time, or do not tell
        when, source and key decide, so that the order does not depend on which was found first.
        """
        # Looked up once: a project's numbers have no order by session.
        missing = self._db.execute(
            "WITH former AS (SELECT session, max(number) AS number FROM numbers WHERE project = ?1 GROUP BY session)"
            " SELECT id, session_id, former.number FROM sessions LEFT JOIN former ON former.session = sessions.id"
            f" WHERE project = ?1 AND {_IS_UNNUMBERED}"
            " ORDER BY started IS NULL, started, source, key",
            (project,),
        ).fetchall()
        for session, session_id, former in missing:
            if session_id not in self._recorded:
                self._mint(session, former)

    def _former_number(self, session: int) -> int | None:
        """The number that a session had in its project before."""
        number: int | None = self._db.execute(
            "SELECT max(n.number) FROM sessions s JOIN numbers n ON n.project = s.project AND n.session = s.id"
            " WHERE s.id = ?",
            (session,),
        ).fetchone()[0]
        return number

    def _mint(self, session: int, former: int | None) -> None:
        """Give a number to a session that has none: the one that it had in its project before, else a new one."""
        project, number = self._db.execute("SELECT project, number FROM sessions WHERE id = ?", (session,)).fetchone()
        if number is None:
            self._db.execute(
                "UPDATE sessions SET number = ?, is_minted = 1 WHERE id = ?",
                (self._next_number(project) if former is None else former, session),
            )

    def part_from_the_gone(self) -> None:
        """To be called when records, or their files, are gone: what was a twin of one is an ordinary session then."""
        self._relations.part_from_the_gone()
        if self.mints_at_once:
            for project in self.projects_with_unnumbered():
                self.mint_missing(project)

    def expect_records(self, agent_sessions: Collection[str]) -> None:
        """Name the agents' own sessions of which records were seen that are not read yet: they get no numbers."""
        self._recorded = agent_sessions

    def number_unrecorded(self, agent_session: str) -> None:
        """Give a number to a session of which a record was expected that turned out to be none, or of another."""
        if agent_session in self._recorded or not self.mints_at_once:
            return
        unnumbered = self._db.execute(
            f"SELECT id FROM sessions WHERE id_lower = ? AND session_id = ? AND {_IS_UNNUMBERED}",
            (agent_session.lower(), agent_session),
        ).fetchall()
        for (session,) in unnumbered:
            self._mint(session, self._former_number(session))

    def _settle_number(self, session: int, *, is_new: bool = False) -> None:
        """Subagents and twins take no number; every other session whose source gives none gets one of ours."""
        source, session_id, is_without = self._db.execute(
            "SELECT source, session_id, parent_id IS NOT NULL OR twin_of IS NOT NULL FROM sessions WHERE id = ?",
            (session,),
        ).fetchone()
        if source == CYDONIA:
            return
        if is_without:
            self._db.execute("UPDATE sessions SET number = NULL WHERE id = ? AND number IS NOT NULL", (session,))
        elif self.mints_at_once and session_id not in self._recorded:
            self._mint(session, None if is_new else self._former_number(session))

    def _next_number(self, project: int) -> int:
        number = self._db.execute("SELECT next_number FROM projects WHERE id = ?", (project,)).fetchone()[0]
        has_registry = self.registry_signature(project) is not None
        number = max(number or FIRST_NUMBER, FIRST_NUMBER_BESIDE_REGISTRY if has_registry else FIRST_NUMBER)
        self._db.execute("UPDATE projects SET next_number = ? WHERE id = ?", (number + 1, project))
        return int(number)

    # Sessions.

    def session_with_key(self, source: str, key: str) -> int | None:
        row = self._db.execute("SELECT id FROM sessions WHERE source = ? AND key = ?", (source, key)).fetchone()
        return None if row is None else int(row[0])

    def key_of(self, session: int) -> str:
        return str(self._db.execute("SELECT key FROM sessions WHERE id = ?", (session,)).fetchone()[0])

    def sessions_with_id(self, source: str, session_id: str) -> list[int]:
        return [
            row[0]
            for row in self._db.execute(
                "SELECT id FROM sessions WHERE source = ? AND id_lower = ? AND session_id = ?",
                (source, session_id.lower(), session_id),
            )
        ]

    def first_item(self, session: int) -> Item | None:
        """The first item of the first turn, as its conversation holds it."""
        row = self._db.execute(
            "SELECT id FROM chunks WHERE session = ? AND turn = 1 AND layer = 0 ORDER BY first LIMIT 1", (session,)
        ).fetchone()
        return None if row is None else chunks.item_of(self._rows(row[0])[0], Layer.CONVERSATION)

    def put_session(self, source: str, facts: SessionFacts, session: int | None, *, key: str, lane: int) -> int:
        """Store what a transcript says about its session: a new one, or the one that is known."""
        project = self.project(facts.project)
        values = {
            "key": key,
            "project": project,
            "session_id": facts.session_id,
            "id_lower": facts.session_id.lower(),
            "title": facts.title,
            "title_folded": fold(collapsed(facts.title)),
            "agent": facts.agent,
            "agent_id": facts.agent_id,
            "is_archived": int(facts.is_archived),
            "is_deleted": 0,
            "forked_from": facts.forked_from,
            "agent_session": facts.agent_session,
            "parent_id": facts.parent_id,
            "parent_call": facts.parent_call,
            "started": facts.started_ms,
        }
        if session is None:
            names = ["source", "handle", *values]
            marks = ", ".join("?" * len(names))
            session = _inserted(
                self._db.execute(
                    f"INSERT INTO sessions({', '.join(names)}) VALUES ({marks})",
                    (source, self._free_handle(source, key), *values.values()),
                )
            )
            self._put_aliases(session, facts.aliases)
            self._relate(source, facts, None)
            self._number_anew(source, session, project, facts.session_id, is_new=True)
            return session
        self._put_aliases(session, facts.aliases)
        old = self._db.execute(f"SELECT {', '.join(values)} FROM sessions WHERE id = ?", (session,)).fetchone()
        if old == tuple(values.values()):
            return session
        settings = ", ".join(f"{name} = ?" for name in values)
        self._db.execute(f"UPDATE sessions SET {settings} WHERE id = ?", (*values.values(), session))
        before = dict(zip(values, old, strict=True))
        self._relate(source, facts, before["agent_session"])
        if before["project"] != project:
            self._db.execute("UPDATE sessions SET number = NULL WHERE id = ?", (session,))
            self._number_anew(source, session, project, facts.session_id)
            self.settle_open([before["project"]])
            self._index_again(session, lane)
        elif before["parent_id"] != facts.parent_id:
            self._settle_number(session)
        return session

    def _put_aliases(self, session: int, aliases: Collection[str]) -> None:
        told = {alias.lower() for alias in aliases}
        known = {row[0] for row in self._db.execute("SELECT id_lower FROM aliases WHERE session = ?", (session,))}
        if told != known:
            self._db.execute("DELETE FROM aliases WHERE session = ?", (session,))
            self._db.executemany("INSERT INTO aliases VALUES (?, ?)", [(alias, session) for alias in sorted(told)])

    def side(self, session: int, session_id: str) -> int | None:
        """The session of that id that lies in the file of another one."""
        row = self._db.execute(
            "SELECT id FROM sessions WHERE side_of = ? AND session_id = ?", (session, session_id)
        ).fetchone()
        return None if row is None else int(row[0])

    def sides(self, session: int) -> list[int]:
        """The sessions that lie in the file of another one."""
        return [row[0] for row in self._db.execute("SELECT id FROM sessions WHERE side_of = ?", (session,))]

    def set_side(self, side: int, session: int) -> None:
        """Note that a session lies in the file of another one, with which it goes and comes back."""
        self._db.execute("UPDATE sessions SET side_of = ? WHERE id = ? AND side_of IS NOT ?", (session, side, session))

    def _relate(self, source: str, facts: SessionFacts, agent_session_before: str | None) -> None:
        """Find out which transcripts are twins, now that this is known of a record or of a transcript."""
        if source in AGENTS_OWN:
            ids: set[str | None] = {facts.session_id}
        else:
            ids = {facts.agent_session, agent_session_before} if source == CYDONIA else set()
        for agent_session in ids:
            self._pair(agent_session)

    def _pair(self, agent_session: str | None) -> None:
        for changed, is_twin in self._relations.pair(agent_session):
            if is_twin:
                self._settle_number(changed)
            elif self.mints_at_once:
                self._mint(changed, self._former_number(changed))

    def _free_handle(self, source: str, key: str) -> str:
        """`s` and 12 hex digits of the identity; of two that agree in them the later one gets others."""
        for salt in range(1000):
            digest = blake2b(f"{source}\n{key}".encode(), digest_size=6, salt=salt.to_bytes(2, "big")).hexdigest()
            if self._db.execute("SELECT 1 FROM sessions WHERE handle = ?", (f"s{digest}",)).fetchone() is None:
                return f"s{digest}"
        raise RuntimeError("no free handle in 1000 tries")

    def _number_anew(self, source: str, session: int, project: int, session_id: str, *, is_new: bool = False) -> None:
        if source == CYDONIA:
            number = self._registered_number(project, session_id)
            self._db.execute("UPDATE sessions SET number = ?, is_minted = 0 WHERE id = ?", (number, session))
            return
        self._db.execute("UPDATE projects SET is_open = 1 WHERE id = ? AND NOT is_open", (project,))
        self._settle_number(session, is_new=is_new)

    def _index_again(self, session: int, lane: int) -> None:
        """The index keys chunks by project: one that moved is handed to it once more."""
        self._hand_again(self._db.execute("SELECT id FROM chunks WHERE session = ?", (session,)).fetchall(), lane)

    def _index_turn_again(self, session: int, turn: int, lane: int) -> None:
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

    def set_back(self, session: int) -> None:
        """The file of a session that was marked deleted is there again, as it was."""
        self._db.execute("UPDATE sessions SET is_deleted = 0 WHERE id = ?1 OR side_of = ?1", (session,))
        self._pair(self._db.execute("SELECT agent_session FROM sessions WHERE id = ?", (session,)).fetchone()[0])

    def apply(self, session: int, part: Part | Side, lane: int) -> int:
        """Store the changes of a part; returns how many chunks were written."""
        before = self._sequence
        retold: set[int] = set()
        for change in part.changes:
            if isinstance(change, Append):
                if self._append(session, change, lane):
                    retold.add(change.turn)
            else:
                self._patch(session, change, lane)
        self._insert_new_chunks()
        if part.turns is not None:
            self._remove_chunks(
                self._db.execute(
                    "SELECT id FROM chunks WHERE session = ? AND turn > ?", (session, part.turns)
                ).fetchall()
            )
            self._db.execute("DELETE FROM turns WHERE session = ? AND turn > ?", (session, part.turns))
            self._relations.cut_calls(session, part.turns)
        if isinstance(part, Part):
            self._relations.put_calls(session, part.calls)
        self._db.execute(
            "UPDATE sessions SET (turns, first_at, last_at) ="
            " (SELECT coalesce(max(turn), 0), min(at), max(at) FROM turns WHERE session = ?1) WHERE id = ?1",
            (session,),
        )
        turns = sorted(retold)
        for start in range(0, len(turns), TURNS_AT_ONCE):
            self._relations.settle_times(session, turns[start : start + TURNS_AT_ONCE], lane)
        return self._sequence - before

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

    # Files.

    def file(self, source: str, path: Path) -> KnownFile | None:
        rows = self._files("source = ? AND path = ?", (source, os.fsencode(path)))
        return rows[0] if rows else None

    def files_titled_otherwise(self, source: str, titles: Mapping[str, str]) -> list[bytes]:
        """The files that are there of sessions whose titles are others than these, given by session id."""
        return [
            path
            for session_id, title, path in self._db.execute(
                "SELECT s.session_id, s.title, f.path FROM files f JOIN sessions s ON s.id = f.session"
                " WHERE f.source = ? AND f.is_gone = 0",
                (source,),
            )
            if titles.get(session_id, title) != title
        ]

    def is_read(self, source: str, path: Path) -> bool:
        """Whether a file was read to its end as it was then, also where it turned out to be no transcript."""
        rows = self._files("source = ? AND path = ?", (source, os.fsencode(path)))
        return bool(rows) and rows[0].signature[1] != UNREAD_NS

    def paths_of_root(self, source: str, root: Path) -> list[bytes]:
        """The files that a root had when it was last looked at."""
        rows = self._db.execute(
            "SELECT path FROM files WHERE source = ? AND root = ? AND is_gone = 0", (source, os.fsencode(root))
        )
        return [path for (path,) in rows]

    def files_of_session(self, session: int) -> list[KnownFile]:
        return self._files("session = ?", (session,))

    def _files(self, where: str, values: tuple[Any, ...]) -> list[KnownFile]:
        return [
            KnownFile(path, session, None if checkpoint is None else orjson.loads(checkpoint), tuple(signature), gone)
            for path, session, checkpoint, gone, *signature in self._db.execute(
                f"SELECT path, session, checkpoint, is_gone, size, mtime_ns, inode, device FROM files WHERE {where}",
                values,
            )
        ]

    def signatures(self, source: str) -> dict[bytes, tuple[int, int, int, int]]:
        """Path and signature of every file that is known and there; for a rescan."""
        return {
            path: (size, mtime_ns, inode, device)
            for path, size, mtime_ns, inode, device in self._db.execute(
                "SELECT path, size, mtime_ns, inode, device FROM files WHERE source = ? AND is_gone = 0", (source,)
            )
        }

    def put_file(
        self,
        source: str,
        transcript: Transcript,
        session: int | None,
        checkpoint: Checkpoint | None,
        *,
        is_read: bool = True,
    ) -> None:
        """Note a file as it was when it was looked at; one that was not read to its end is looked at again."""
        size, mtime_ns, inode, device = transcript.signature
        self._db.execute(
            "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
            (
                source,
                os.fsencode(transcript.path),
                os.fsencode(transcript.root.path),
                session,
                None if checkpoint is None else orjson.dumps(checkpoint),
                *(size, mtime_ns if is_read else UNREAD_NS, inode, device),
            ),
        )

    def set_read(self, source: str, transcript: Transcript) -> None:
        """The file, of which parts were stored, was read to its end."""
        self._db.execute(
            "UPDATE files SET mtime_ns = ? WHERE source = ? AND path = ?",
            (transcript.mtime_ns, source, os.fsencode(transcript.path)),
        )

    def set_gone(self, source: str, path: bytes) -> None:
        """The file is no longer there; what was read from it stays, marked deleted.

        The twin of a record becomes an ordinary session by `part_from_the_gone`, which is to be called when all
        that is gone is known: numbers are given in the order in which sessions were started.
        """
        self._db.execute("UPDATE files SET is_gone = 1 WHERE source = ? AND path = ?", (source, path))
        self._db.execute(
            "WITH gone AS (SELECT session FROM files f WHERE source = ? AND path = ?"
            " AND NOT EXISTS (SELECT 1 FROM files WHERE session = f.session AND is_gone = 0))"
            " UPDATE sessions SET is_deleted = 1 WHERE id IN (SELECT session FROM gone)"
            " OR side_of IN (SELECT session FROM gone)",
            (source, path),
        )

    def forget_file(self, source: str, path: bytes) -> None:
        """Drop what is known of a file whose session goes on under another one."""
        self._db.execute("DELETE FROM files WHERE source = ? AND path = ?", (source, path))

    def put_skipped(
        self, source: str, path: Path, skipped: Sequence[Skipped], *, is_from_start: bool, now_ms: int
    ) -> None:
        place = (source, os.fsencode(path))
        if is_from_start:
            self._db.execute("DELETE FROM skipped WHERE source = ? AND path = ?", place)
        self._db.executemany(
            "INSERT INTO skipped VALUES (?, ?, ?, ?, 1, ?) ON CONFLICT DO UPDATE"
            " SET count = count + 1, line = excluded.line, at = excluded.at",
            [(*place, one.reason, one.line, now_ms) for one in skipped],
        )

    # Roots.

    def device_of_root(self, source: str, root: Path) -> int | None:
        """The device that a root lay on when it was last there."""
        row = self._db.execute(
            "SELECT device FROM roots WHERE source = ? AND path = ?", (source, os.fsencode(root))
        ).fetchone()
        return None if row is None else row[0] or None

    def put_root(self, source: str, root: Path, device: int) -> None:
        self._db.execute("INSERT OR REPLACE INTO roots VALUES (?, ?, ?, NULL)", (source, os.fsencode(root), device))

    def set_root_unavailable(self, source: str, root: Path, why: str) -> None:
        self._db.execute(
            "INSERT INTO roots VALUES (?, ?, 0, ?)"
            " ON CONFLICT DO UPDATE SET why_unavailable = excluded.why_unavailable",
            (source, os.fsencode(root), why),
        )

    def forget_roots(self, source: str, kept: Sequence[Path]) -> None:
        """Drop what is known of folders that the source names no more."""
        known = {row[0] for row in self._db.execute("SELECT path FROM roots WHERE source = ?", (source,))}
        gone = known - {os.fsencode(root) for root in kept}
        self._db.executemany("DELETE FROM roots WHERE source = ? AND path = ?", [(source, path) for path in gone])


_PAST_ALL = 2**62


def _inserted(cursor: sqlite3.Cursor) -> int:
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _given(new: _T | None, old: _T | None) -> _T | None:
    return old if new is None else new
