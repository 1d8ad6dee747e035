"""Projects as the store knows them, and the numbers of their sessions: from their registries, or ours."""

import os
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from indexer.store.schema import inserted
from schemas.sources import CYDONIA

FIRST_NUMBER = 1
FIRST_NUMBER_BESIDE_REGISTRY = 100_001
"""Our own numbers start here in a project that has a registry, far from where that will ever get."""

_IS_OPEN = f"is_listed OR EXISTS (SELECT 1 FROM sessions WHERE project = projects.id AND source <> '{CYDONIA}')"
"""Whether a project is open: one that a source lists, or that has a session of a source that lists none."""

_IS_UNNUMBERED = f"sessions.number IS NULL AND source <> '{CYDONIA}' AND parent_id IS NULL AND twin_of IS NULL"
"""Whether a session is to have a number of ours and has none."""


class Projects:
    """Used within the writer's transactions."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._recorded: Collection[str] = ()
        self.mints_at_once = True
        """Whether what is stored gets its number with that; else it has none until `mint_missing` is called."""

    def key(self, path: Path) -> int:
        """The project's key; made known where it is new."""
        text = os.fsencode(path).decode("utf-8", "replace")
        row = self._db.execute("SELECT id FROM projects WHERE path = ?", (text,)).fetchone()
        if row is not None:
            return int(row[0])
        name = os.path.basename(text) or text
        return inserted(self._db.execute("INSERT INTO projects(path, name) VALUES (?, ?)", (text, name)))

    def set_listed(self, paths: Sequence[Path]) -> None:
        """Note which projects a source lists as open now, and what that makes open or closed."""
        listed = [self.key(path) for path in paths]
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

    def with_unnumbered(self) -> list[int]:
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

    def number_again(self, session: int) -> None:
        """Give a session that became an ordinary one the number that it had before, else a new one."""
        if self.mints_at_once:
            self._mint(session, self._former_number(session))

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

    def number_anew(self, source: str, session: int, project: int, session_id: str, *, is_new: bool = False) -> None:
        """Give a session that has come into a project the number that it has there."""
        if source == CYDONIA:
            number = self._registered_number(project, session_id)
            self._db.execute("UPDATE sessions SET number = ?, is_minted = 0 WHERE id = ?", (number, session))
            return
        self._db.execute("UPDATE projects SET is_open = 1 WHERE id = ? AND NOT is_open", (project,))
        self.settle_number(session, is_new=is_new)

    def settle_number(self, session: int, *, is_new: bool = False) -> None:
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
