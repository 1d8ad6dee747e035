"""Sessions that are to be forgotten: what the store holds of them, and the tombstones that keep them away."""

import os
import secrets
import sqlite3
from collections.abc import Sequence
from hashlib import blake2b

from indexer.sources.base import SessionFacts
from indexer.store.chunks import row_of
from indexer.store.files import KnownFile
from indexer.store.relations import family
from indexer.store.writer import StoreWriter
from schemas.items import Item, Layer

_BY_SESSION = ("turns", "calls", "numbers", "deletions", "aliases")
_SALT_BYTES = 16


class Forgotten:
    """Removes sessions, and knows those whose transcripts are not to be read again. For the writer's thread."""

    def __init__(self, store: StoreWriter) -> None:
        self._store = store
        self._db: sqlite3.Connection = store.connection

    def remove(self, sessions: Sequence[int], *, keeps_away: bool) -> tuple[int, int]:
        """Remove sessions, as part of a transaction; how many sessions and turns that were.

        What lies in the file of one goes with it. With `keeps_away` so does all that it started, wherever that lies,
        and a transcript that is still there, or turns up elsewhere, does not bring them back; without, each goes by
        its own file, which would be read again.
        """
        removed = turns = 0
        left: set[int] = set()
        for session in dict.fromkeys(one for named in sessions for one in self._with(named, keeps_away)):
            row = self._db.execute(
                "SELECT source, key, session_id, turns, project FROM sessions WHERE id = ?", (session,)
            ).fetchone()
            if row is None:
                continue
            removed, turns = removed + 1, turns + row[3]
            left.add(row[4])
            if keeps_away:
                self._bury(session, row[:3], self._store.contents.first_item(session))
            self._remove_rows(session, keeps_away=keeps_away)
        self._store.projects.settle_open(left)
        self._store.part_from_the_gone()
        return removed, turns

    def _with(self, session: int, keeps_away: bool) -> list[int]:
        return family(self._db, session) if keeps_away else [session, *self._store.sides(session)]

    def _bury(self, session: int, identity: tuple[str, str, str], first: Item | None) -> None:
        salt = secrets.token_bytes(_SALT_BYTES)
        self._db.execute(
            "INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?, ?, ?, ?)",
            (session, *identity, salt, _hash(first, salt)),
        )

    def _remove_rows(self, session: int, *, keeps_away: bool) -> None:
        self._db.execute(
            "DELETE FROM skipped WHERE (source, path) IN (SELECT source, path FROM files WHERE session = ?)", (session,)
        )
        if keeps_away:
            # A file that is there stays known, so that a look at the folders does not find it new each time.
            self._db.execute("DELETE FROM files WHERE session = ? AND is_gone", (session,))
            self._db.execute("UPDATE files SET checkpoint = NULL WHERE session = ?", (session,))
        else:
            self._db.execute("DELETE FROM files WHERE session = ?", (session,))
        self._db.execute("DELETE FROM bodies WHERE chunk IN (SELECT id FROM chunks WHERE session = ?)", (session,))
        self._db.execute("DELETE FROM chunks WHERE session = ?", (session,))
        for table in _BY_SESSION:
            self._db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
        self._db.execute("DELETE FROM sessions WHERE id = ?", (session,))

    def gone_since(self, at_ms: int) -> list[int]:
        """Sessions that have had no file since then, or for longer, and have none now."""
        rows = self._db.execute("SELECT session FROM deletions WHERE at <= ? ORDER BY session", (at_ms,)).fetchall()
        return [
            session
            for (session,) in rows
            if not any(os.path.lexists(file.path) for file in self._store.files.of_session(session))
        ]

    def earliest_deletion(self) -> int | None:
        """Since when the session that has had no file for the longest time has none."""
        at_ms: int | None = self._db.execute("SELECT min(at) FROM deletions").fetchone()[0]
        return at_ms

    # Keeping away.

    def is_of(self, file: KnownFile) -> bool:
        """Whether a file was the transcript of a session that is forgotten."""
        found = self._db.execute("SELECT 1 FROM tombstones WHERE session = ?", (file.session,))
        return found.fetchone() is not None

    def may_be(self, source: str, facts: SessionFacts) -> bool:
        """Whether a session of the same identity or id was, or its parent: it is then to be read to know."""
        found = self._db.execute(
            "SELECT 1 FROM tombstones WHERE source = ?1 AND (key = ?2 OR session_id = ?3)",
            (source, facts.key, facts.session_id),
        )
        return found.fetchone() is not None or self.has_parent_of(source, facts)

    def has_parent_of(self, source: str, facts: SessionFacts) -> bool:
        """Whether a subagent was started by a session that is forgotten, not by a copy that is kept, or to be read."""
        if not facts.parent_id:
            return False
        keys = self._db.execute(
            "SELECT key FROM tombstones WHERE source = ? AND session_id = ?", (source, facts.parent_id)
        ).fetchall()
        if any(facts.key.startswith(f"{key}/") for (key,) in keys):
            return True
        return (facts.parent_id,) in keys and not self._store.sessions_with_id(source, facts.parent_id)

    def bury_unread(self, source: str, facts: SessionFacts, first: Item | None) -> int:
        """Keep a session away that was never stored, as part of a transaction; answers the key it is known by."""
        # A key that no session has or will have.
        self._db.execute("UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'sessions'")
        session = int(self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'sessions'").fetchone()[0])
        self._bury(session, (source, facts.key, facts.session_id), first)
        return session

    def left_behind(self) -> list[int]:
        """Subagents that are kept though the session that started them is forgotten, and no copy of it is kept.

        There are such where a subagent showed up before those between it and that session, or where that session has
        moved; to be asked when everything that was found is read.
        """
        rows = self._db.execute(
            "SELECT c.id, c.source, c.parent_id FROM tombstones t JOIN sessions c"
            " ON c.parent_id = t.session_id AND c.source = t.source GROUP BY c.id ORDER BY c.id"
        ).fetchall()
        return [session for session, source, parent in rows if not self._store.sessions_with_id(source, parent)]

    def covering(self, source: str, facts: SessionFacts, first: Item | None, file: KnownFile | None) -> int | None:
        """The forgotten session that a transcript of no kept session is of, if it is of one; `first` is its first item.

        That is one of the same key; of the same id where the transcript was that session's before; and of the
        same id and beginning where that session's own files are gone, so that it has moved here. A copy with
        another key is another session.
        """
        rows = self._db.execute(
            "SELECT session, key, salt, beginning FROM tombstones WHERE source = ?1 AND (key = ?2 OR session_id = ?3)",
            (source, facts.key, facts.session_id),
        ).fetchall()
        for session, key, salt, beginning in rows:
            if key == facts.key or (file is not None and file.session == session):
                return int(session)
            has_moved = not any(os.path.lexists(known.path) for known in self._store.files.of_session(session))
            if has_moved and beginning == _hash(first, salt):
                return int(session)
        return None


def _hash(item: Item | None, salt: bytes) -> bytes | None:
    row = None if item is None else row_of(0, item, Layer.CONVERSATION)
    return None if row is None else blake2b(repr(row).encode("utf-8", "replace"), key=salt, digest_size=16).digest()
