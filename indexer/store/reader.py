"""What the store knows, for those who ask: plain rows of projects, sessions, turns and chunks.

Every question goes through views, `visible_projects`, `visible_sessions` and the like: what the settings
hide from callers is not there for anyone who asks here.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import orjson

from indexer.order import Order, TurnKey
from indexer.store.relations import FIRST_IS_ORIGINAL, PARENT_FIRST, family
from indexer.store.schema import open_for_reading
from schemas.errors import Unavailable
from schemas.folding import fold
from schemas.items import Layer

K = TypeVar("K")
V = TypeVar("V")

_BATCH = 500
"""Values bound in one statement."""

_REMEMBERED = 16
"""Conditions of which an answer is kept that goes through all sessions; the largest, on a million turns, 0.5 MB."""

_LAYERS = tuple(Layer)
"""By their numbers; `Layer(number)` takes ten times as long as a look into a tuple."""


@dataclass(frozen=True, slots=True)
class Project:
    id: int
    path: str
    name: str
    is_open: bool
    is_listed: bool


@dataclass(frozen=True, slots=True)
class Session:
    id: int
    """The first-seen sequence."""
    source: str
    project: Project
    session_id: str
    handle: str
    number: int | None
    is_minted: bool
    title: str
    agent: str | None
    is_archived: bool
    is_deleted: bool
    forked_from: str | None
    parent_id: str | None
    """Of a subagent: what its source calls its parent, empty where that is not known."""
    parent_call: str | None
    twin_of: int | None
    """The session of the record that answers for this one."""
    is_retimed: bool
    """Whether the index may have turns of it under times that they had once."""
    turns: int
    first_ms: int | None
    last_ms: int | None


class Member(NamedTuple):
    """One of the sessions that are forgotten together."""

    session: int
    turns: int
    has_file: bool


class ChunkBody(NamedTuple):
    """Of a search by the ten thousand, so a tuple, which is made in a fifth of the time."""

    chunk: int
    session: int
    turn: int
    layer: Layer
    body: bytes


@dataclass(frozen=True, slots=True)
class Origins:
    """Where a turn may have been copied from."""

    turns: Sequence[tuple[int, int]] = ()
    """Turns of other sessions, each by its session and number, the original first."""
    are_whole: bool = False
    """Whether only whole turns are copied, and never one that goes on."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A part of a WHERE clause over sessions `s` and projects `p`, with its values."""

    sql: str = "1"
    values: tuple[Any, ...] = ()

    def __and__(self, other: "Condition") -> "Condition":
        return Condition(f"{self.sql} AND {other.sql}", self.values + other.values)


@dataclass(frozen=True, slots=True)
class Extent:
    """How much a condition lets through."""

    sessions: int
    turns: int
    last_ms: int | None


@dataclass(frozen=True, slots=True)
class Choice:
    """The sessions that a condition lets through, told by the fewer keys."""

    only: tuple[int, ...] | None
    """None: all but these:"""
    without: tuple[int, ...] = ()


_SESSION = (
    "SELECT s.id, s.source, p.id, p.path, p.name, p.is_open, p.is_listed, s.session_id, s.handle, s.number,"
    " s.is_minted, s.title, s.agent, s.is_archived, s.is_deleted, s.forked_from, s.parent_id, s.parent_call,"
    " s.twin_of, s.is_retimed, s.turns, s.first_at, s.last_at"
    " FROM visible_sessions s JOIN projects p ON p.id = s.project"
)


class StoreReader:
    """One connection to the store, read only; used by one thread at a time."""

    def __init__(self, data_dir: Path, allowed_projects: Collection[str] | None = None) -> None:
        self._db = open_for_reading(data_dir)
        self._extents: dict[Condition, Extent] = {}
        self._choices: dict[tuple[Condition, Condition], Choice] = {}
        self._state: int | None = None
        """The state of the store that these are of, as SQLite counts what other connections commit."""
        self._db.create_function("fold", 1, _fold_value, deterministic=True)
        visible = "1"
        if allowed_projects is not None:
            self._db.execute("CREATE TEMP TABLE allowed(path TEXT PRIMARY KEY)")
            self._db.executemany("INSERT OR IGNORE INTO allowed VALUES (?)", [(path,) for path in allowed_projects])
            visible = "path IN (SELECT path FROM allowed)"
        self._db.execute(f"CREATE TEMP VIEW visible_projects AS SELECT * FROM main.projects WHERE {visible}")
        within = "1" if allowed_projects is None else "project IN (SELECT id FROM visible_projects)"
        self._db.execute(f"CREATE TEMP VIEW visible_sessions AS SELECT * FROM main.sessions WHERE {within}")
        seen = "1" if allowed_projects is None else "session IN (SELECT id FROM visible_sessions)"
        self._db.execute(f"CREATE TEMP VIEW visible_chunks AS SELECT * FROM main.chunks WHERE {seen}")
        self._db.execute(f"CREATE TEMP VIEW visible_files AS SELECT * FROM main.files WHERE {seen}")
        # What could not be read, and folders that cannot be: of no session, and so of nobody where not all are seen.
        shown = "1" if allowed_projects is None else "(source, path) IN (SELECT source, path FROM visible_files)"
        self._db.execute(f"CREATE TEMP VIEW visible_skipped AS SELECT * FROM main.skipped WHERE {shown}")
        roots = "1" if allowed_projects is None else "path IN (SELECT root FROM visible_files)"
        self._db.execute(f"CREATE TEMP VIEW visible_roots AS SELECT * FROM main.roots WHERE {roots}")

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All questions inside see one state of the store.

        Raises:
            Unavailable: the store cannot be read.
        """
        try:
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise Unavailable(f"the store cannot be read: {error}; run: turndex doctor") from error

    def meta(self, key: str) -> Any:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    # Projects.

    def project(self, path: str) -> Project | None:
        found = self._projects("path = ?", (path,))
        return found[0] if found else None

    def projects_named(self, name: str) -> list[Project]:
        """Open and closed, the open ones first."""
        return self._projects("name = ? ORDER BY is_open DESC, path", (name,))

    def open_projects(self) -> list[Project]:
        return self._projects("is_open ORDER BY path", ())

    def all_projects(self) -> list[Project]:
        return self._projects("1 ORDER BY path", ())

    def _projects(self, where: str, values: tuple[Any, ...]) -> list[Project]:
        rows = self._db.execute(
            f"SELECT id, path, name, is_open, is_listed FROM visible_projects WHERE {where}", values
        )
        return [Project(id, path, name, bool(is_open), bool(is_listed)) for id, path, name, is_open, is_listed in rows]

    def project_totals(self) -> Iterator[tuple[int, str, int, int, int | None]]:
        """(project, source, sessions, turns, last turn's time) of every project and source with sessions."""
        return iter(
            self._db.execute(
                "SELECT project, source, count(*), sum(turns), max(last_at) FROM visible_sessions"
                " GROUP BY project, source ORDER BY project, source"
            ).fetchall()
        )

    def entry_kind(self, project: int, number: int) -> tuple[str, str | None] | None:
        """What a project's registry has at a number: its kind and id, the id None for a tombstone."""
        row = self._db.execute(
            "SELECT kind, id FROM entries WHERE project = ? AND number = ?", (project, number)
        ).fetchone()
        return None if row is None else (row[0], row[1])

    # Sessions.

    def session(self, session: int, condition: Condition = Condition()) -> Session | None:
        """A session by its key, if the condition holds for it."""
        found = self.sessions(Condition("s.id = ?", (session,)) & condition)
        return found[0] if found else None

    def sessions(self, condition: Condition, suffix: str = "") -> list[Session]:
        rows = self._db.execute(f"{_SESSION} WHERE {condition.sql} {suffix}", condition.values)
        return [_session(row) for row in rows]

    def sessions_of(self, keys: Collection[int], condition: Condition) -> dict[int, Session]:
        """Those of some sessions, by their keys, for which the condition holds."""
        found: dict[int, Session] = {}
        for some in _batches(sorted(keys)):
            named = Condition(f"s.id IN ({_marks(some)})", tuple(some))
            found.update((session.id, session) for session in self.sessions(named & condition))
        return found

    def choice(self, among: Condition, condition: Condition) -> Choice:
        """Which of some sessions a condition lets through, none that may not be seen; it goes through all of them."""
        asked = among, condition
        return self._remembered(self._choices, asked, lambda: self._choice(*asked))

    def _choice(self, among: Condition, condition: Condition) -> Choice:
        # Two rows for all of them: between two rows another thread may take the interpreter, and keep it for 5 ms.
        rows = self._db.execute(
            f"SELECT ({condition.sql} AND p.id IN (SELECT id FROM visible_projects)) IS TRUE AS is_in,"
            " json_group_array(s.id) FROM main.sessions s JOIN main.projects p ON p.id = s.project"
            f" WHERE {among.sql} GROUP BY is_in",
            condition.values + among.values,
        )
        keys = {is_in: tuple(orjson.loads(json)) for is_in, json in rows}
        inside, outside = keys.get(1, ()), keys.get(0, ())
        return Choice(inside) if len(inside) < len(outside) else Choice(None, outside)

    def _remembered(self, kept: dict[K, V], key: K, ask: Callable[[], V]) -> V:
        """An answer for as long as the store stays as it is."""
        state = self._db.execute("PRAGMA data_version").fetchone()[0]
        if state != self._state:
            self._state = state
            self._extents.clear()
            self._choices.clear()
        if key not in kept:
            if len(kept) >= _REMEMBERED:
                kept.clear()
            kept[key] = ask()
        return kept[key]

    def any_session(self, condition: Condition) -> bool:
        """Whether a session fits; the condition names what few do that have an index of their own."""
        # `CROSS JOIN` looks at sessions first: left to itself, SQLite would go through all those of each project.
        found = self._db.execute(
            f"SELECT 1 FROM visible_sessions s CROSS JOIN projects p ON p.id = s.project WHERE {condition.sql} LIMIT 1",
            condition.values,
        )
        return found.fetchone() is not None

    def parent_of(self, session: Session) -> Session | None:
        """The session that started a subagent: of several with that id the one whose key its own begins with."""
        if not session.parent_id:
            return None
        first = (
            # The plus keeps SQLite from going through all sessions of the source.
            "s.id = (SELECT s.id FROM main.sessions c JOIN visible_sessions s ON +s.source = c.source"
            " AND s.id_lower = ? AND s.session_id = c.parent_id AND s.id <> c.id WHERE c.id = ?"
            f" ORDER BY {PARENT_FIRST} LIMIT 1)"
        )
        return next(iter(self.sessions(Condition(first, (session.parent_id.lower(), session.id)))), None)

    def family(self, session: int) -> list[Member]:
        """A session and all that it started, itself first, whoever may see that: they are forgotten together."""
        members = family(self._db, session)
        found: dict[int, Member] = {}
        for some in _batches(members):
            rows = self._db.execute(
                f"SELECT id, turns, is_deleted = 0 FROM main.sessions WHERE id IN ({_marks(some)})", some
            )
            found.update((id, Member(id, turns, bool(has_file))) for id, turns, has_file in rows)
        return [found[member] for member in members]

    def subagents_called(self, session: Session, turn: int) -> dict[int, Session]:
        """The subagents that tool items of a turn started, by the index of the item."""
        called: dict[int, Session] = {}
        calls = self._db.execute(
            "SELECT id, item, child_id FROM calls WHERE session = ? AND turn = ?", (session.id, turn)
        ).fetchall()
        for call, item, child_id in calls:
            started = Condition("s.source = ? AND s.parent_id = ?", (session.source, session.session_id))
            if child_id is not None:
                started &= Condition("s.id_lower = ? AND s.session_id = ?", (child_id.lower(), child_id))
            else:
                started &= Condition("s.parent_call = ?", (call,))
            for child in self.sessions(started, "ORDER BY s.id"):
                parent = self.parent_of(child)
                if parent is not None and parent.id == session.id:
                    called[item] = child
        return called

    def extent(self, condition: Condition) -> Extent:
        """It goes through all sessions."""
        return self._remembered(self._extents, condition, lambda: self._extent(condition))

    def _extent(self, condition: Condition) -> Extent:
        row = self._db.execute(
            "SELECT count(*), coalesce(sum(s.turns), 0), max(s.last_at) FROM visible_sessions s"
            f" JOIN projects p ON p.id = s.project WHERE {condition.sql}",
            condition.values,
        ).fetchone()
        return Extent(*row)

    def extent_of_turns(
        self, condition: Condition, times: tuple[int, int], turns: tuple[int, int] = (1, 2**62)
    ) -> Extent:
        """The same of turns that lie in a range of times, and of numbers, both included."""
        row = self._db.execute(
            "SELECT count(DISTINCT t.session), count(*), max(t.at) FROM turns t"
            " JOIN visible_sessions s ON s.id = t.session JOIN projects p ON p.id = s.project"
            f" WHERE t.at BETWEEN ? AND ? AND t.turn BETWEEN ? AND ? AND {condition.sql}",
            (*times, *turns, *condition.values),
        ).fetchone()
        return Extent(*row)

    # Turns and chunks.

    def turn_ms(self, session: int, turn: int) -> int | None:
        """When a turn began; None where there is none of that number."""
        row = self._db.execute("SELECT at FROM turns WHERE session = ? AND turn = ?", (session, turn)).fetchone()
        return None if row is None else int(row[0])

    def origins_of(self, session: int, turn: int) -> Origins:
        """The turns that this one may be a copy of, by what the transcripts say."""
        told = self._db.execute(
            "SELECT origin, is_copy FROM turns WHERE session = ? AND turn = ?", (session, turn)
        ).fetchone()
        if told is None or (told[0] is None and not told[1]):
            return Origins()
        if told[0] is None:
            return Origins([(one, turn) for one in reversed(self._forked_from(session, turn))], are_whole=True)
        rows = self._db.execute(
            "SELECT t.session, t.turn FROM turns t JOIN visible_sessions s ON s.id = t.session WHERE t.origin = ?"
            f" ORDER BY {FIRST_IS_ORIGINAL}",
            (told[0],),
        )
        return Origins(list(takewhile(lambda row: row[0] != session, rows)))

    def _forked_from(self, session: int, turn: int) -> list[int]:
        """The sessions that a turn was copied through, the nearest first."""
        found: list[int] = []
        while True:
            row = self._db.execute(
                "SELECT o.id, t.is_copy AND t.origin IS NULL FROM main.sessions s JOIN visible_sessions o"
                " ON o.id_lower = lower(s.forked_from) AND o.session_id = s.forked_from AND o.source = s.source"
                " AND o.project = s.project JOIN turns t ON t.session = o.id AND t.turn = ? WHERE s.id = ?",
                (turn, session),
            ).fetchone()
            if row is None or row[0] in found or row[0] == session:
                return found
            session = row[0]
            found.append(session)
            if not row[1]:
                return found

    def turns_past(
        self, key: TurnKey, order: Order, limit: int, session: int | None = None, turns: tuple[int, int] | None = None
    ) -> list[TurnKey]:
        """The next turns after a place in the order, of one session or of all."""
        if session is not None:
            first, last = turns or (1, 2**62)
            rows: Iterable[TurnKey] = self._db.execute(
                "SELECT at, session, turn FROM turns WHERE session = ? AND turn BETWEEN ? AND ?",
                (session, first, min(last, 2**62)),
            )
            if order == "newest":
                return sorted((row for row in rows if row < key), reverse=True)[:limit]
            return sorted(row for row in rows if row > key)[:limit]
        return self._db.execute(f"{_past(order)} LIMIT ?", (*key, limit)).fetchall()

    def turn_at_distance(self, key: TurnKey, order: Order, distance: int) -> TurnKey | None:
        """The turn that stands so many turns after a place in the order; None past the end."""
        row: TurnKey | None = self._db.execute(f"{_past(order)} LIMIT 1 OFFSET ?", (*key, distance - 1)).fetchone()
        return row

    def bodies(self, chunks: Collection[int]) -> Iterator[ChunkBody]:
        for some in _batches(sorted(chunks)):
            rows = self._db.execute(
                "SELECT c.id, c.session, c.turn, c.layer, b.body FROM chunks c JOIN bodies b ON b.chunk = c.id"
                f" WHERE c.id IN ({_marks(some)})",
                some,
            )
            for chunk, session, turn, layer, body in rows:
                yield ChunkBody(chunk, session, turn, _LAYERS[layer], body)

    def bodies_of_turn(self, session: int, turn: int, layers: Collection[Layer]) -> list[ChunkBody]:
        """A turn's chunks, in the order of its items."""
        rows = self._db.execute(
            "SELECT c.id, c.layer, b.body FROM chunks c JOIN bodies b ON b.chunk = c.id"
            " WHERE c.session = ? AND c.turn = ? ORDER BY c.layer, c.first",
            (session, turn),
        )
        return [ChunkBody(row[0], session, turn, _LAYERS[row[1]], row[2]) for row in rows if row[1] in layers]

    def bodies_of_turns(self, turns: Sequence[tuple[int, int]], layers: Collection[Layer]) -> Iterator[ChunkBody]:
        """The chunks of turns, each given by its session and number."""
        for start in range(0, len(turns), _BATCH):
            some = turns[start : start + _BATCH]
            rows = self._db.execute(
                f"WITH wanted(session, turn) AS (VALUES {','.join(['(?, ?)'] * len(some))})"
                " SELECT c.id, c.session, c.turn, c.layer, b.body FROM wanted w CROSS JOIN chunks c"
                " ON c.session = w.session AND c.turn = w.turn JOIN bodies b ON b.chunk = c.id",
                [value for turn in some for value in turn],
            )
            for chunk, session, turn, layer, body in rows:
                if layer in layers:
                    yield ChunkBody(chunk, session, turn, _LAYERS[layer], body)

    # Status.

    def counts(self) -> tuple[int, int, int, int]:
        """Projects, sessions, turns and chunks."""
        projects = self._db.execute("SELECT count(*) FROM visible_projects").fetchone()[0]
        sessions, turns = self._db.execute("SELECT count(*), coalesce(sum(turns), 0) FROM visible_sessions").fetchone()
        chunks = self._db.execute("SELECT count(*) FROM visible_chunks").fetchone()[0]
        return projects, sessions, turns, chunks

    def source_totals(self) -> dict[str, tuple[int, int]]:
        """Sessions and turns of each source."""
        rows = self._db.execute("SELECT source, count(*), sum(turns) FROM visible_sessions GROUP BY source")
        return {source: (sessions, turns) for source, sessions, turns in rows}

    def file_totals(self) -> dict[str, tuple[int, int]]:
        """Files and their bytes of each source, those that are there."""
        rows = self._db.execute(
            "SELECT source, count(*), sum(size) FROM visible_files WHERE is_gone = 0 GROUP BY source"
        )
        return {source: (files, size) for source, files, size in rows}

    def skipped(self, source: str, limit: int) -> tuple[dict[str, int], list[tuple[bytes, int | None, str, int]]]:
        """What could not be read: counts by reason, and the latest with file, line, reason and count."""
        counts = dict(
            self._db.execute(
                "SELECT reason, sum(count) FROM visible_skipped WHERE source = ? GROUP BY reason ORDER BY 2 DESC",
                (source,),
            ).fetchall()
        )
        latest = self._db.execute(
            "SELECT path, line, reason, count FROM visible_skipped WHERE source = ?"
            " ORDER BY at DESC, path, reason LIMIT ?",
            (source, limit),
        ).fetchall()
        return counts, latest

    def unreadable(self, session: int) -> int:
        """How much of a session's transcripts could not be read, in lines and records. Unknown keys are no loss."""
        row = self._db.execute(
            "SELECT coalesce(sum(s.count), 0) FROM visible_files f JOIN visible_skipped s"
            " ON s.source = f.source AND s.path = f.path WHERE f.session = ? AND s.reason NOT LIKE '%unknown %'",
            (session,),
        ).fetchone()
        return int(row[0])

    def unavailable_roots(self, source: str) -> list[tuple[bytes, str]]:
        return self._db.execute(
            "SELECT path, why_unavailable FROM visible_roots"
            " WHERE source = ? AND why_unavailable IS NOT NULL ORDER BY path",
            (source,),
        ).fetchall()


def _fold_value(value: str | None) -> str | None:
    return None if value is None else fold(value)


def _past(order: Order) -> str:
    if order == "newest":
        return (
            "SELECT at, session, turn FROM turns WHERE (at, session, turn) < (?, ?, ?)"
            " ORDER BY at DESC, session DESC, turn DESC"
        )
    return "SELECT at, session, turn FROM turns WHERE (at, session, turn) > (?, ?, ?) ORDER BY at, session, turn"


def _session(row: Sequence[Any]) -> Session:
    id, source, project, path, name, is_open, is_listed, session_id, handle, number, is_minted, title = row[:12]
    agent, is_archived, is_deleted, forked_from, parent_id, parent_call, twin_of, is_retimed = row[12:20]
    turns, first_ms, last_ms = row[20:]
    return Session(
        id=id,
        source=source,
        project=Project(project, path, name, bool(is_open), bool(is_listed)),
        session_id=session_id,
        handle=handle,
        number=number,
        is_minted=bool(is_minted),
        title=title,
        agent=agent,
        is_archived=bool(is_archived),
        is_deleted=bool(is_deleted),
        forked_from=forked_from,
        parent_id=parent_id,
        parent_call=parent_call,
        twin_of=twin_of,
        is_retimed=bool(is_retimed),
        turns=turns,
        first_ms=first_ms,
        last_ms=last_ms,
    )


def _batches(values: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(values), _BATCH):
        yield values[start : start + _BATCH]


def _marks(values: Sequence[int]) -> str:
    return ",".join("?" * len(values))
