"""Stores as earlier versions made them."""

import sqlite3
from contextlib import closing
from pathlib import Path

from indexer.store.schema import STORE_FILE

_SINCE_3 = {
    "sessions": ("parent_id", "parent_call", "side_of", "twin_of", "is_retimed"),
    "turns": ("origin", "is_copy"),
}
_INDEXES_SINCE_3 = "sessions_by_parent sessions_by_side sessions_by_twin sessions_by_agent_session sessions_by_fork"


def make_earlier(data_dir: Path, version: int) -> None:
    """Take away what later versions brought."""
    with closing(sqlite3.connect(data_dir / STORE_FILE)) as store:
        store.execute("DROP TABLE aliases")
        if version < 3:
            _without_relations(store)
        if version < 2:
            _without_commands(store)
        store.execute(f"PRAGMA user_version = {version}")
        store.commit()


def _without_relations(store: sqlite3.Connection) -> None:
    for name in [*_INDEXES_SINCE_3.split(), "turns_by_origin"]:
        store.execute(f"DROP INDEX {name}")
    store.execute("DROP TABLE calls")
    for table, columns in _SINCE_3.items():
        for column in columns:
            store.execute(f"ALTER TABLE {table} DROP COLUMN {column}")


def _without_commands(store: sqlite3.Connection) -> None:
    for trigger in ("session_deleted", "session_back"):
        store.execute(f"DROP TRIGGER {trigger}")
    for table in ("commands", "tombstones", "deletions"):
        store.execute(f"DROP TABLE {table}")
