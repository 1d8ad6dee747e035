"""SQLite's FTS5 over the same items, as somebody would build it in an afternoon."""

import sqlite3
from collections.abc import Iterator
from typing import ClassVar

from bench.peers.base import FIRST, Bench, Found, Peer, Turn
from bench.transcripts import texts_of

LIKE_ESCAPES = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})


class Fts5(Peer):
    """One row an item, oldest first, so that the newest have the highest rowids."""

    unit = "turn"
    timed = "the call, in this process"
    tokenizer: ClassVar[str]

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self._path = bench.scratch / "fts5.db"
        self._db = sqlite3.connect(self._path, isolation_level=None)

    def version(self) -> str:
        return f"SQLite {sqlite3.sqlite_version}"

    def build(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute(
            "CREATE VIRTUAL TABLE items USING "
            f"fts5(session UNINDEXED, turn UNINDEXED, text, tokenize = '{self.tokenizer}')"
        )
        self._db.execute("BEGIN")
        self._db.executemany("INSERT INTO items VALUES (?, ?, ?)", self._rows())
        self._db.execute("COMMIT")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def disk_bytes(self) -> int:
        return self._path.stat().st_size

    def first(self, literal: str) -> None:
        seen: set[Turn] = set()
        for session, turn, _ in self._select("session, turn, text", literal):
            seen.add((session, turn))
            if len(seen) == FIRST:
                break

    def every(self, literal: str, until: float) -> Found:
        turns = frozenset(self._select("session, turn", literal))
        return Found(frozenset(session for session, _ in turns), turns)

    def close(self) -> None:
        self._db.close()

    def _select(self, columns: str, literal: str) -> sqlite3.Cursor:
        phrase = '"' + literal.replace('"', '""') + '"'
        return self._db.execute(f"SELECT {columns} FROM items WHERE items MATCH ? ORDER BY rowid DESC", [phrase])

    def _rows(self) -> Iterator[tuple[str, int, str]]:
        for transcript in self.bench.transcripts:
            for number, turn in enumerate(transcript.turns, 1):
                for item in turn:
                    yield transcript.key, number, "\n".join(texts_of(item))


class Trigram(Fts5):
    name = "FTS5 trigram"
    tokenizer = "trigram"
    fairness = (
        "Fair: in process, all text kept, the 20 newest turns with their texts. Its build gets items that are "
        "parsed already. What is shorter than three characters is asked for with LIKE, which reads every row."
    )

    def _select(self, columns: str, literal: str) -> sqlite3.Cursor:
        if len(literal) >= 3:
            return super()._select(columns, literal)
        pattern = f"%{literal.translate(LIKE_ESCAPES)}%"
        return self._db.execute(
            f"SELECT {columns} FROM items WHERE text LIKE ? ESCAPE '\\' ORDER BY rowid DESC", [pattern]
        )


class Unicode61(Fts5):
    name = "FTS5 unicode61"
    tokenizer = "unicode61"
    asks_words = True
    fairness = (
        "In process and over the same items, but another question: whole words, without their accents, and no "
        "punctuation. It cannot find a part of a word, so that its times are of finding less, or nothing."
    )
