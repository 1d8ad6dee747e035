"""The one writer of the store: what sources read goes in here, each part in one transaction."""

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

from indexer.sources.base import Part, SessionFacts, Side
from indexer.store.contents import Contents
from indexer.store.files import Files
from indexer.store.projects import Projects
from indexer.store.relations import Relations
from indexer.store.schema import BUSY_MS, create_or_open, inserted
from schemas.folding import fold
from schemas.sources import AGENTS_OWN, CYDONIA
from schemas.texts import collapsed

TURNS_AT_ONCE = 500
"""Turns that one statement names."""


class StoreWriter:
    """Writes the store. There is one, used by one thread; `transaction` makes what is in it one step."""

    def __init__(self, data_dir: Path) -> None:
        self._db = create_or_open(data_dir)
        self.files = Files(self._db)
        self.projects = Projects(self._db)
        self.contents = Contents(self._db)
        self._relations = Relations(self._db, self.contents.index_turn_again)

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            self.contents.abandon()
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

    def part_from_the_gone(self) -> None:
        """To be called when records, or their files, are gone: what was a twin of one is an ordinary session then."""
        self._relations.part_from_the_gone()
        if self.projects.mints_at_once:
            for project in self.projects.with_unnumbered():
                self.projects.mint_missing(project)

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

    def put_session(self, source: str, facts: SessionFacts, session: int | None, *, key: str, lane: int) -> int:
        """Store what a transcript says about its session: a new one, or the one that is known."""
        project = self.projects.key(facts.project)
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
            session = inserted(
                self._db.execute(
                    f"INSERT INTO sessions({', '.join(names)}) VALUES ({marks})",
                    (source, self._free_handle(source, key), *values.values()),
                )
            )
            self._put_aliases(session, facts.aliases)
            self._relate(source, facts, None)
            self.projects.number_anew(source, session, project, facts.session_id, is_new=True)
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
            self.projects.number_anew(source, session, project, facts.session_id)
            self.projects.settle_open([before["project"]])
            self.contents.index_again(session, lane)
        elif before["parent_id"] != facts.parent_id:
            self.projects.settle_number(session)
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
                self.projects.settle_number(changed)
            else:
                self.projects.number_again(changed)

    def _free_handle(self, source: str, key: str) -> str:
        """`s` and 12 hex digits of the identity; of two that agree in them the later one gets others."""
        for salt in range(1000):
            digest = blake2b(f"{source}\n{key}".encode(), digest_size=6, salt=salt.to_bytes(2, "big")).hexdigest()
            if self._db.execute("SELECT 1 FROM sessions WHERE handle = ?", (f"s{digest}",)).fetchone() is None:
                return f"s{digest}"
        raise RuntimeError("no free handle in 1000 tries")

    def set_back(self, session: int) -> None:
        """The file of a session that was marked deleted is there again, as it was."""
        self._db.execute("UPDATE sessions SET is_deleted = 0 WHERE id = ?1 OR side_of = ?1", (session,))
        self._pair(self._db.execute("SELECT agent_session FROM sessions WHERE id = ?", (session,)).fetchone()[0])

    def apply(self, session: int, part: Part | Side, lane: int) -> int:
        """Store the changes of a part; returns how many chunks were written."""
        before = self.contents.sequence
        retold = self.contents.change(session, part.changes, part.turns, lane)
        if part.turns is not None:
            self._relations.cut_calls(session, part.turns)
        if isinstance(part, Part):
            self._relations.put_calls(session, part.calls)
        for start in range(0, len(retold), TURNS_AT_ONCE):
            self._relations.settle_times(session, retold[start : start + TURNS_AT_ONCE], lane)
        return self.contents.sequence - before
