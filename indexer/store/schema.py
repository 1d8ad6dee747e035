"""The tables of the store, and how it is opened."""

import os
import sqlite3
from pathlib import Path

from schemas.errors import Unavailable

SCHEMA_VERSION = 4
STORE_FILE = "store.sqlite"

BUSY_MS = 5000
"""How long one waits for what another connection has locked."""

# Times are Unix milliseconds. `sessions.id` is the session's first-seen sequence. Paths of files are the
# bytes the system gave, as a name need not be UTF-8; paths of projects are text to be shown.
_TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE projects(
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    is_listed INTEGER NOT NULL DEFAULT 0,     -- by a source that keeps a list of open projects
    is_open INTEGER NOT NULL DEFAULT 0,
    next_number INTEGER,                      -- the next of our own numbers; NULL before the first
    registry BLOB                             -- the signature of its registry when that was read last
);
CREATE INDEX projects_by_name ON projects(name);

CREATE TABLE entries(                         -- each project's own registry of numbers, as last read
    project INTEGER NOT NULL,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    id TEXT,                                  -- NULL: a tombstone
    PRIMARY KEY(project, number)
) WITHOUT ROWID;

CREATE TABLE numbers(                         -- every number that a session has or had
    project INTEGER NOT NULL,
    number INTEGER NOT NULL,
    session INTEGER NOT NULL,
    PRIMARY KEY(project, number, session)
) WITHOUT ROWID;

CREATE TABLE sessions(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,
    key TEXT NOT NULL,
    project INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    id_lower TEXT NOT NULL,
    handle TEXT NOT NULL UNIQUE,
    number INTEGER,
    is_minted INTEGER NOT NULL DEFAULT 0,     -- whether the number is one of ours, not the registry's
    title TEXT NOT NULL,
    title_folded TEXT NOT NULL,               -- runs of white space as one space
    agent TEXT,
    agent_id TEXT,
    is_archived INTEGER NOT NULL,
    is_deleted INTEGER NOT NULL DEFAULT 0,
    forked_from TEXT,
    agent_session TEXT,
    parent_id TEXT,                           -- of a subagent: what its source calls its parent; '' where unknown
    parent_call TEXT,
    side_of INTEGER,                          -- the session in whose file it lies; it has none of its own
    twin_of INTEGER,                          -- the session of the record that answers for it
    is_retimed INTEGER NOT NULL DEFAULT 0,    -- whether a turn was indexed with another time than it has now
    started INTEGER,
    turns INTEGER NOT NULL DEFAULT 0,
    first_at INTEGER,
    last_at INTEGER,
    UNIQUE(source, key)
);
CREATE TRIGGER number_given AFTER UPDATE OF number ON sessions WHEN new.number IS NOT NULL BEGIN
    INSERT OR IGNORE INTO numbers VALUES (new.project, new.number, new.id);
END;
CREATE INDEX sessions_by_number ON sessions(project, number);
CREATE INDEX sessions_by_id ON sessions(id_lower);
CREATE INDEX sessions_by_title ON sessions(title_folded);
CREATE INDEX sessions_by_last ON sessions(last_at, id);

CREATE TABLE turns(
    session INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    at INTEGER NOT NULL,                      -- that of its original, once that is known; else never changes
    origin INTEGER,                           -- a hash of the source and of what that calls the turn
    is_copy INTEGER NOT NULL DEFAULT 0,       -- whether the source says that it was brought along
    PRIMARY KEY(session, turn)
) WITHOUT ROWID;
CREATE INDEX turns_by_time ON turns(at, session, turn);

CREATE TABLE chunks(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    layer INTEGER NOT NULL,
    first INTEGER NOT NULL,                   -- index of its first item
    last INTEGER NOT NULL,
    lane INTEGER NOT NULL,                    -- the index folder that it goes to
    sequence INTEGER NOT NULL,                -- of its latest write; unique
    size INTEGER NOT NULL,                    -- bytes before compression
    hash BLOB NOT NULL
);
CREATE UNIQUE INDEX chunks_by_place ON chunks(session, turn, layer, first);
CREATE UNIQUE INDEX chunks_by_sequence ON chunks(lane, sequence);

CREATE TABLE bodies(chunk INTEGER PRIMARY KEY, body BLOB NOT NULL);  -- apart, so that chunks are small to scan

CREATE TABLE removed(                         -- chunks that are gone, until the index has followed
    chunk INTEGER PRIMARY KEY,
    sequence INTEGER NOT NULL
);

CREATE TABLE files(
    source TEXT NOT NULL,
    path BLOB NOT NULL,
    root BLOB NOT NULL,
    session INTEGER,
    checkpoint BLOB,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    device INTEGER NOT NULL,
    is_gone INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY(source, path)
) WITHOUT ROWID;
CREATE INDEX files_by_session ON files(session);

CREATE TABLE skipped(                         -- records and lines that could not be read
    source TEXT NOT NULL,
    path BLOB NOT NULL,
    reason TEXT NOT NULL,
    line INTEGER,
    count INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY(source, path, reason)
) WITHOUT ROWID;

CREATE TABLE roots(
    source TEXT NOT NULL,
    path BLOB NOT NULL,
    device INTEGER NOT NULL,
    why_unavailable TEXT,
    PRIMARY KEY(source, path)
) WITHOUT ROWID;
"""

# How sessions and turns belong together: subagents, twins, forks and copies.
_RELATIONS = """
CREATE INDEX sessions_by_parent ON sessions(parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX sessions_by_side ON sessions(side_of) WHERE side_of IS NOT NULL;
CREATE INDEX sessions_by_twin ON sessions(twin_of) WHERE twin_of IS NOT NULL;
CREATE INDEX sessions_by_agent_session ON sessions(agent_session) WHERE agent_session IS NOT NULL;
CREATE INDEX sessions_by_fork ON sessions(forked_from) WHERE forked_from IS NOT NULL;
CREATE INDEX turns_by_origin ON turns(origin) WHERE origin IS NOT NULL;

CREATE TABLE calls(                           -- tool items that started a subagent
    session INTEGER NOT NULL,
    id TEXT NOT NULL,
    turn INTEGER NOT NULL,
    item INTEGER NOT NULL,                    -- its index in the turn
    child_id TEXT,                            -- what the source calls the subagent, where the call tells
    PRIMARY KEY(session, id)
) WITHOUT ROWID;
"""

# What was asked to be written, and what was forgotten.
_COMMANDS = """
CREATE TABLE commands(                        -- what was asked to be written, by the id that the caller gave it
    id TEXT PRIMARY KEY,
    body TEXT NOT NULL,                       -- JSON; no text of a transcript
    step INTEGER NOT NULL,                    -- how far it was carried out
    answer TEXT                               -- JSON, from the first step on
) WITHOUT ROWID;

CREATE TABLE tombstones(                      -- sessions that were forgotten while they may still have a file
    session INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    key TEXT NOT NULL,
    session_id TEXT NOT NULL,
    salt BLOB NOT NULL,
    beginning BLOB                            -- a keyed hash of its first item; NULL: it had none
);
CREATE INDEX tombstones_by_id ON tombstones(source, session_id);
CREATE INDEX tombstones_by_key ON tombstones(source, key);

CREATE TABLE deletions(session INTEGER PRIMARY KEY, at INTEGER NOT NULL);  -- since when a session has no file
CREATE TRIGGER session_deleted AFTER UPDATE OF is_deleted ON sessions WHEN new.is_deleted AND NOT old.is_deleted BEGIN
    INSERT OR REPLACE INTO deletions VALUES (new.id, CAST(strftime('%s', 'now') AS INTEGER) * 1000);
END;
CREATE TRIGGER session_back AFTER UPDATE OF is_deleted ON sessions WHEN old.is_deleted AND NOT new.is_deleted BEGIN
    DELETE FROM deletions WHERE session = new.id;
END;
"""

_ALIASES = """
CREATE TABLE aliases(                         -- other ids that the transcript of a session says it has
    id_lower TEXT NOT NULL,
    session INTEGER NOT NULL,
    PRIMARY KEY(id_lower, session)
) WITHOUT ROWID;
CREATE INDEX aliases_by_session ON aliases(session);
"""

# By the version that they start from. What a store keeps may be nowhere else any more, so it is never made anew.
_MIGRATIONS = {
    1: f"""
{_COMMANDS}
INSERT INTO deletions SELECT id, CAST(strftime('%s', 'now') AS INTEGER) * 1000 FROM sessions WHERE is_deleted;
""",
    2: f"""
ALTER TABLE sessions ADD COLUMN parent_id TEXT;
ALTER TABLE sessions ADD COLUMN parent_call TEXT;
ALTER TABLE sessions ADD COLUMN side_of INTEGER;
ALTER TABLE sessions ADD COLUMN twin_of INTEGER;
ALTER TABLE sessions ADD COLUMN is_retimed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN origin INTEGER;
ALTER TABLE turns ADD COLUMN is_copy INTEGER NOT NULL DEFAULT 0;
{_RELATIONS}
UPDATE files SET checkpoint = NULL, mtime_ns = -1 WHERE source = 'cydonia' AND is_gone = 0; -- to learn of copies
""",
    3: _ALIASES,
}


def create_or_open(data_dir: Path) -> sqlite3.Connection:
    """The writer's connection; there is one, in the process that holds the data directory.

    A store of an earlier version is brought up to this one.

    Raises:
        Unavailable: the database cannot be opened, or was written by a newer version.
    """
    path = data_dir / STORE_FILE
    try:
        # 0600 from the first byte on; SQLite gives its -wal and -shm the same mode.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        connection.execute("PRAGMA cache_size = -32768")
        version = _version(connection)
        if version == 0:
            tables = f"{_TABLES} {_RELATIONS} {_COMMANDS} {_ALIASES}"
            connection.executescript(f"BEGIN; {tables} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
        elif version not in (SCHEMA_VERSION, *_MIGRATIONS):
            raise _other_version(path, version)
        for earlier in range(version or SCHEMA_VERSION, SCHEMA_VERSION):
            connection.executescript(f"BEGIN; {_MIGRATIONS[earlier]} PRAGMA user_version = {earlier + 1}; COMMIT;")
    except (sqlite3.Error, OSError) as error:
        raise Unavailable(f"the store {path} cannot be opened: {error}; run: turndex doctor") from error
    return connection


def open_for_reading(data_dir: Path) -> sqlite3.Connection:
    """A reader's connection; it sees what was committed and blocks nobody.

    Raises:
        Unavailable: there is no store yet, it cannot be opened, or another version wrote it.
    """
    path = data_dir / STORE_FILE
    if not path.exists():
        raise Unavailable(f"nothing is indexed yet: there is no store in {data_dir}; run: turndex index")
    try:
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        connection.execute("PRAGMA cache_size = -4096")
        version = _version(connection)
    except sqlite3.Error as error:
        raise Unavailable(f"the store {path} cannot be opened: {error}; run: turndex doctor") from error
    if version == 0:
        raise Unavailable(f"nothing is indexed yet: the store in {data_dir} is empty; run: turndex index")
    if version != SCHEMA_VERSION:
        raise _other_version(path, version)
    return connection


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _other_version(path: Path, version: int) -> Unavailable:
    return Unavailable(f"the store {path} has version {version}; this turndex reads version {SCHEMA_VERSION}")


def inserted(cursor: sqlite3.Cursor) -> int:
    """The key of the row that was inserted."""
    assert cursor.lastrowid is not None
    return cursor.lastrowid
