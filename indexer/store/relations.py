"""How sessions and turns belong together: twins, subagents, and copies of turns."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b

from indexer.sources.base import Call
from schemas.sources import AGENTS_OWN, CYDONIA

_OWN = ", ".join(f"'{source}'" for source in AGENTS_OWN)


def origin_key(source: str, origin: str) -> int:
    """What stands for a turn's origin in the store: 63 bits, so that two origins never meet by chance."""
    digest = blake2b(f"{source}\n{origin}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


class Relations:
    """Keeps them right, whichever of two that belong together comes first. Used within the writer's transactions."""

    def __init__(self, db: sqlite3.Connection, index_again: Callable[[int, int, int], None]) -> None:
        """`index_again` hands a turn, given by session and number, to the index in a lane."""
        self._db = db
        self._index_again = index_again

    # Twins.

    def pair(self, agent_session: str | None) -> list[tuple[int, bool]]:
        """Find the record that answers for an agent's own session: the first started of those whose files are there.

        Answers the transcripts that have another one now than before, each with whether it has one.
        """
        if agent_session is None:
            return []
        found = self._db.execute(
            "SELECT id FROM sessions WHERE source = ? AND agent_session = ? AND is_deleted = 0"
            " ORDER BY started IS NULL, started, key LIMIT 1",
            (CYDONIA, agent_session),
        ).fetchone()
        record = None if found is None else found[0]
        changed = [
            row[0]
            for row in self._db.execute(
                f"SELECT id FROM sessions WHERE id_lower = ? AND session_id = ? AND source IN ({_OWN})"
                " AND parent_id IS NULL AND twin_of IS NOT ?",
                (agent_session.lower(), agent_session, record),
            )
        ]
        self._db.executemany("UPDATE sessions SET twin_of = ? WHERE id = ?", [(record, twin) for twin in changed])
        return [(session, record is not None) for session in changed]

    def part_from_the_gone(self) -> None:
        """Give transcripts whose record has no file any more, or is not kept, another one, or else none."""
        parted = self._db.execute(
            "SELECT DISTINCT session_id FROM sessions t WHERE twin_of IS NOT NULL"
            " AND NOT EXISTS (SELECT 1 FROM sessions r WHERE r.id = t.twin_of AND r.is_deleted = 0)"
        ).fetchall()
        for (agent_session,) in parted:
            self.pair(agent_session)

    # Subagents.

    def put_calls(self, session: int, calls: Iterable[Call]) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO calls(session, id, turn, item, child_id) VALUES (?, ?, ?, ?, ?)",
            [(session, call.id, call.turn, call.index, call.session_id) for call in calls],
        )

    def cut_calls(self, session: int, turns: int) -> None:
        """Forget the calls behind so many turns."""
        self._db.execute("DELETE FROM calls WHERE session = ? AND turn > ?", (session, turns))

    # Copies.

    def settle_times(self, session: int, turns: Sequence[int], lane: int) -> None:
        """Copies have the times of their originals, whichever of the two was stored first."""
        retimed: set[int] = set()
        marks = ", ".join("?" * len(turns))
        told = self._db.execute(
            f"SELECT turn, at, origin, is_copy FROM turns WHERE session = ? AND turn IN ({marks})", (session, *turns)
        ).fetchall()
        for turn, at_ms, origin, is_copy in told:
            if origin is not None:
                retimed |= self._settle_origin(origin, lane)
            elif is_copy:
                original_ms = self._original_ms(session, turn)
                retimed |= self._retime(session, turn, at_ms, at_ms if original_ms is None else original_ms, lane)
        unnamed = [turn for turn, _, origin, _ in told if origin is None]
        if unnamed and self._forks(session):
            for turn in unnamed:
                retimed |= self._settle_forks(session, turn, lane)
        for one in retimed:
            self._db.execute(
                "UPDATE sessions SET is_retimed = 1, (first_at, last_at) ="
                " (SELECT min(at), max(at) FROM turns WHERE session = ?1) WHERE id = ?1",
                (one,),
            )

    def _settle_origin(self, origin: int, lane: int) -> set[int]:
        (owner, _, at_ms), *others = self._db.execute(
            "SELECT t.session, t.turn, t.at FROM turns t JOIN sessions s ON s.id = t.session WHERE t.origin = ?"
            f" ORDER BY {FIRST_IS_ORIGINAL}",
            (origin,),
        ).fetchall()
        retimed: set[int] = set()
        for session, turn, copied_ms in others:
            if session != owner:
                retimed |= self._retime(session, turn, copied_ms, at_ms, lane)
        return retimed

    def _original_ms(self, session: int, turn: int) -> int | None:
        """The time of the same turn in the session that this one was forked from."""
        row = self._db.execute(
            "SELECT t.at FROM sessions s JOIN sessions o ON o.id_lower = lower(s.forked_from)"
            " AND o.session_id = s.forked_from AND o.source = s.source AND o.project = s.project"
            " JOIN turns t ON t.session = o.id AND t.turn = ? WHERE s.id = ?",
            (turn, session),
        ).fetchone()
        return None if row is None else int(row[0])

    def _forks(self, session: int) -> list[int]:
        return [
            row[0]
            for row in self._db.execute(
                "SELECT f.id FROM sessions s JOIN sessions f ON f.forked_from = s.session_id"
                " AND f.source = s.source AND f.project = s.project AND f.id <> s.id WHERE s.id = ?",
                (session,),
            )
        ]

    def _settle_forks(self, session: int, turn: int, lane: int) -> set[int]:
        """Give a turn's time to its copies in forks, and in forks of these."""
        retimed: set[int] = set()
        waiting, seen = [session], {session}
        while waiting:
            original = waiting.pop()
            at_ms = self._db.execute(
                "SELECT at FROM turns WHERE session = ? AND turn = ?", (original, turn)
            ).fetchone()[0]
            for fork in self._forks(original):
                copy = self._db.execute(
                    "SELECT at FROM turns WHERE session = ? AND turn = ? AND is_copy AND origin IS NULL", (fork, turn)
                ).fetchone()
                if copy is not None and fork not in seen:
                    retimed |= self._retime(fork, turn, copy[0], at_ms, lane)
                    waiting.append(fork)
                    seen.add(fork)
        return retimed

    def _retime(self, session: int, turn: int, from_ms: int, to_ms: int, lane: int) -> set[int]:
        """Give a turn another time; its session, where that is another one."""
        if from_ms == to_ms:
            return set()
        self._db.execute("UPDATE turns SET at = ? WHERE session = ? AND turn = ?", (to_ms, session, turn))
        self._index_again(session, turn, lane)
        return {session}


PARENT_FIRST = "substr(c.key, 1, length(s.key) + 1) = s.key || '/' DESC, s.project = c.project DESC, s.id"
"""Orders sessions `s` with the id that a subagent `c` gives of its parent: the one whose key its own begins with."""


def family(db: sqlite3.Connection, session: int) -> list[int]:
    """A session and all that it started, itself first: subagents, theirs in turn, and what lies in its file."""
    found = {session: None}
    waiting = [session]
    while waiting:
        started = db.execute(
            "SELECT child.id FROM sessions o JOIN sessions child"
            " ON child.parent_id = o.session_id AND child.source = o.source WHERE o.id = ?1 AND o.session_id <> ''"
            # The child once more, as an ORDER BY cannot name it from outside. The plus keeps SQLite from going through
            # all sessions of the source.
            " AND o.id = (SELECT s.id FROM sessions c JOIN sessions s ON +s.source = c.source"
            "  AND s.id_lower = o.id_lower AND s.session_id = c.parent_id AND s.id <> c.id"
            f"  WHERE c.id = child.id ORDER BY {PARENT_FIRST} LIMIT 1)"
            " UNION SELECT id FROM sessions WHERE side_of = ?1",
            (waiting.pop(),),
        ).fetchall()
        new = [one for (one,) in started if one not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return list(found)


FIRST_IS_ORIGINAL = "t.is_copy, s.forked_from IS NOT NULL, s.started IS NULL, s.started, s.id, t.turn"
"""Orders turns `t` of one origin, in sessions `s`: what was not brought along, what is in no fork, the older."""
