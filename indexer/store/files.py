"""What the store knows of the transcript files, of the folders that they lie in, and of what was skipped in them."""

import os
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from indexer.sources.base import Checkpoint, Skipped, Transcript

UNREAD_NS = -1
"""Stands for a file's mtime until it was read to its end, so that a look at the folders finds it changed."""


@dataclass(frozen=True, slots=True)
class KnownFile:
    """What the store knows of a transcript file."""

    path: bytes
    session: int | None
    checkpoint: Checkpoint | None
    signature: tuple[int, int, int, int]
    is_gone: bool


class Files:
    """Used within the writer's transactions."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def known(self, source: str, path: Path) -> KnownFile | None:
        rows = self._where("source = ? AND path = ?", (source, os.fsencode(path)))
        return rows[0] if rows else None

    def titled_otherwise(self, source: str, titles: Mapping[str, str]) -> list[bytes]:
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
        rows = self._where("source = ? AND path = ?", (source, os.fsencode(path)))
        return bool(rows) and rows[0].signature[1] != UNREAD_NS

    def of_root(self, source: str, root: Path) -> list[bytes]:
        """The files that a root had when it was last looked at."""
        rows = self._db.execute(
            "SELECT path FROM files WHERE source = ? AND root = ? AND is_gone = 0", (source, os.fsencode(root))
        )
        return [path for (path,) in rows]

    def of_session(self, session: int) -> list[KnownFile]:
        return self._where("session = ?", (session,))

    def _where(self, where: str, values: tuple[Any, ...]) -> list[KnownFile]:
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

    def put(
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

    def forget(self, source: str, path: bytes) -> None:
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
