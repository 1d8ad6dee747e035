"""A search answers what reading every line would: hit for hit, in order, with the same lines and spans.

`ORACLE_ARCHIVES` and `ORACLE_QUERIES` in the environment ask for more than a usual run tries.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from indexer.service import index_once
from schemas.answers import SearchAnswer
from schemas.requests import MAX_SEARCH_LIMIT, MAX_WORD_CHARS, SearchRequest
from schemas.times import iso_utc
from search_api.archive import Archive
from search_api.caller import Caller
from tests.properties import oracle
from tests.properties.random_archive import (
    AGENTS,
    EDGES,
    KINDS,
    MARKER,
    MARKER_MS,
    TICKS,
    in_order_of,
    many_turns,
    random_sessions,
    write_archive,
)
from tests.properties.random_texts import WORDS, random_case, random_character, random_text

ARCHIVES = int(os.environ.get("ORACLE_ARCHIVES", "4"))
QUERIES = int(os.environ.get("ORACLE_QUERIES", "250"))
TURNS = 6_000
"""More than are searched for at a time, and with more distinct words than a fragment is looked up in."""

LIMITS = {
    "walk": {
        "FIRST_WINDOW_TURNS": [1, 7, 512],
        "LARGEST_WINDOW_TURNS": [9, 300_000],
        "RARE_CHUNKS": [0, 5, 50_000],
        "FIRST_CANDIDATES": [1, 3, 2048],
        "FIRST_DOUBTFUL": [1, 3, 512],
        "FEW_CANDIDATES": [1, 20, 1024],
        "MANY_CANDIDATES": [2, 4096],
        "FEW_WORDS": [0, 2, 512],
        "MANY_WORDS": [3, 5000],
    },
    "plan": {"FREQUENT": [0, 4, 4096], "SPELLED_WORDS": [1, 64], "SPELLED_NEIGHBOURS": [1, 10], "FEW_PHRASES": [1, 32]},
}
"""Where a search chooses between roads that must all lead to the same answer: as in use, and so low that a small
archive goes them all."""

CALLER = Caller()

_LONG_STRETCH = re.compile(r"\S{60,}")


@dataclass
class Indexed:
    """An archive that was indexed, and what its transcripts say, in the order in which sessions were first seen."""

    archive: Archive
    sessions: list[oracle.Session]


@contextmanager
def indexed(random: Random, sessions: Sequence[oracle.Session], folder: Path) -> Iterator[Indexed]:
    settings = write_archive(random, sessions, folder)
    with pytest.MonkeyPatch.context() as pieces:
        # Whatever the pieces are that long texts are indexed in; a larger archive has a process for that.
        pieces.setattr("indexer.words.PIECE_CHARS", random.choice([30, 1000, 16_384]))
        index_once(settings, lambda _: None)
    archive = Archive.open(settings)
    try:
        marked = [hit.session_id for hit in walk(archive, {"query": MARKER, "order": "oldest"}, Random(0))]
        assert sorted(marked) == sorted(session.id for session in sessions)
        yield Indexed(archive, in_order_of(sessions, marked))
    finally:
        archive.close()


@pytest.mark.parametrize("seed", range(ARCHIVES))
def test_a_search_is_a_scan(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    with indexed(random, random_sessions(random, tmp_path), tmp_path) as built:
        for _ in range(QUERIES):
            query = random_query(random, built.sessions)
            with drawn_limits(random) as limits:
                found = walk(built.archive, arguments_of(query), random)
            assert found == oracle.search(built.sessions, query), (query, limits)


@contextmanager
def drawn_limits(random: Random) -> Iterator[dict[str, int]]:
    with pytest.MonkeyPatch.context() as patch:
        drawn = {
            f"search_api.{module}.{name}": random.choice(values)
            for module, limits in LIMITS.items()
            for name, values in limits.items()
        }
        for path, value in drawn.items():
            patch.setattr(path, value)
        yield drawn


def test_a_search_is_a_scan_of_thousands_of_turns(tmp_path: Path) -> None:
    random = Random(0)
    with indexed(random, many_turns(random, tmp_path, turns=TURNS), tmp_path) as built:
        check(built, oracle.Query("all"), random, pages=TURNS)
        check(built, oracle.Query("half_", order="oldest"), random, pages=TURNS)
        # In all turns, in half, in one of twenty, in a few; whole words, parts of words, and neighbours.
        for words in ("f", "_7", "e_1", "f0", "9", "parser", "a1b", "错", "->", "all parser", "ll -> ", "zzz"):
            bound_ms = MARKER_MS + random.randrange(TICKS) * 1000
            check(built, oracle.Query(words, order="newest", until_ms=bound_ms), random, pages=10)
            check(built, oracle.Query(words, order="oldest", since_ms=bound_ms), random, pages=10)

        # A frequent word whose first hits are far from where a search begins, on both sides of where it looks further.
        for edge in EDGES:
            check(built, oracle.Query(f"before{edge}"), random, pages=1)
            check(built, oracle.Query(f"after{edge}", order="oldest"), random, pages=1)


def check(built: Indexed, query: oracle.Query, random: Random, *, pages: int) -> None:
    """The first so many pages of a search are the beginning of a scan, and the last one is its end."""
    found = walk(built.archive, arguments_of(query), random, sizes=[MAX_SEARCH_LIMIT], pages=pages)
    expected = oracle.search(built.sessions, query)
    assert found == expected[: pages * MAX_SEARCH_LIMIT], query


def walk(
    archive: Archive,
    arguments: dict[str, Any],
    random: Random,
    *,
    sizes: Sequence[int] = (1, 3, 7, MAX_SEARCH_LIMIT),
    pages: int | None = None,
) -> list[oracle.Found]:
    """All hits, or those of so many pages, in pages of any of the sizes; checks what pages say about each other."""
    found: list[oracle.Found] = []
    cursor: str | None = None
    for _ in count() if pages is None else range(pages):
        limit = random.choice(sizes)
        page = {**arguments, "limit": limit} if cursor is None else {**arguments, "limit": limit, "cursor": cursor}
        answer = archive.search(SearchRequest.read(page), CALLER)
        assert len(answer.hits) == limit if answer.more else len(answer.hits) <= limit
        assert answer.more == (answer.cursor is not None)
        assert cursor is None or answer.hits
        found += hits_of(answer)
        cursor = answer.cursor
        if cursor is None:
            break
    return found


def hits_of(answer: SearchAnswer) -> list[oracle.Found]:
    return [oracle.Found(hit.session_id, hit.turn, hit.kind, hit.line, list(hit.spans)) for hit in answer.hits]


def arguments_of(query: oracle.Query) -> dict[str, Any]:
    """The query as a call's arguments, without those that stand at their default."""
    session = query.session
    if session is not None and query.turns is not None:
        session = f"{session}:{query.turns[0]}-{query.turns[1]}"
    arguments: dict[str, Any] = {
        "query": query.query,
        "full": query.full,
        "kind": list(query.kind),
        "order": query.order,
        "source": list(query.source),
        "agent": list(query.agent),
        "archived": query.archived,
        "project": query.project,
        "title": query.title,
        "session": session,
        "since": None if query.since_ms is None else iso_utc(query.since_ms),
        "until": None if query.until_ms is None else iso_utc(query.until_ms),
    }
    return {name: value for name, value in arguments.items() if value is not None}


def random_query(random: Random, sessions: Sequence[oracle.Session]) -> oracle.Query:
    """Words that mostly are somewhere, with every filter now and then."""

    def sometimes(value: Any, otherwise: Any = None, *, share: float = 0.08) -> Any:
        return value if random.random() < share else otherwise

    session = random.choice(sessions)
    named = sometimes(session)
    turns = None
    if named is not None and named.turns and random.random() < 0.5:
        first = random.randint(1, len(named.turns))
        turns = (first, random.randint(first, len(named.turns)))
    title = session.title[random.randint(0, 5) : random.randint(6, 40)].strip()
    return oracle.Query(
        query=random_words(random, sessions),
        full=random.random() < 0.5,
        kind=sometimes(tuple(random.sample(KINDS, random.randint(1, 3))), ()),
        order=random.choice(["newest", "oldest"]),
        project=sometimes(session.project),
        source=sometimes((session.source,), ()),
        agent=sometimes((random_case(random, random.choice(AGENTS)),), ()),
        title=sometimes(title),
        archived=sometimes(random.choice(["exclude", "only"]), "include"),
        since_ms=sometimes(MARKER_MS + random.randint(-30, 30) * 1000),
        until_ms=sometimes(MARKER_MS + random.randint(-30, 30) * 1000),
        session=None if named is None else named.id,
        turns=turns,
    )


def random_words(random: Random, sessions: Sequence[oracle.Session]) -> str:
    """A query that is accepted: neither blank nor of several lines nor too long."""
    while True:
        roll = random.random()
        if roll < 0.65:
            words = random_cut(random, sessions)
        elif roll < 0.8:
            words = random.choice(["", " ", "-"]).join(random.choices(WORDS, k=random.randint(1, 3)))
        elif roll < 0.9:
            words = random_character(random)
        else:
            words = random_text(random, words=3)
        words = words.replace("\n", "").encode("utf-8", "replace").decode()[:MAX_WORD_CHARS]
        if random.random() < 0.3:
            words = random_case(random, words)
        if random.random() < 0.1:
            at = random.randint(0, len(words))
            words = words[:at] + random_character(random).encode("utf-8", "replace").decode() + words[at:]
        if words.strip() and "\n" not in words.strip() and len(words) <= MAX_WORD_CHARS:
            return words


def random_cut(random: Random, sessions: Sequence[oracle.Session]) -> str:
    """Some characters of some line; now and then ones that only look like a line, across an end."""
    texts = [text for entry in random.choice(sessions).entries for text in entry.texts.values()]
    text = random.choice(texts or WORDS)
    roll = random.random()
    if roll < 0.1:
        line = text
    elif roll < 0.4:
        # A stretch without a space: an index that cuts long ones must not lose what lies across a cut.
        line = random.choice([stretch for text in texts for stretch in _LONG_STRETCH.findall(text)] or WORDS)
    else:
        line = random.choice(oracle.lines_of(text))
    length = random.choice([1, 1, 2, 2, 3, 3, 5, 8, 13, 21, 31, 32, 33, 34, 63, 64, 65, 100, 159, 160, 161, 400, 4096])
    start = random.randint(0, max(0, len(line) - random.choice([1, length])))
    return line[start : start + length]
