"""A search by words finds what cutting every line into words would, and ranks it by the scores of its words.

`ORACLE_ARCHIVES` and `ORACLE_QUERIES` in the environment ask for more than a usual run tries.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from indexer.index import Scope
from indexer.scores import Beginning, ScoredWord, Word, WordScores
from indexer.service import index_once
from indexer.vocabulary import Fits
from indexer.words import windows
from schemas.answers import Hit
from search_api import candidates, ranked, words_search
from search_api.filters import END_OF_TIME_MS
from search_api.ranked_lists import RankedLists
from search_api.verify import Gaze
from search_api.walk import Tools
from tests.properties import oracle, words_oracle
from tests.properties.random_archive import random_sessions, write_archive
from tests.properties.random_texts import WORDS, random_case
from tests.properties.test_search_equals_scan import arguments_of, random_query
from tests.properties.words_oracle import And, Not, Or, Query, Words
from tests.search_api.searching_words import opened, pages

ARCHIVES = int(os.environ.get("ORACLE_ARCHIVES", "3"))
QUERIES = int(os.environ.get("ORACLE_QUERIES", "150"))

TOLERANCE = 2e-4
"""Scores are compared after rounding to four digits."""


@contextmanager
def indexed(random: Random, folder: Path) -> Iterator[tuple[Tools, list[oracle.Session]]]:
    sessions = random_sessions(random, folder)
    settings = write_archive(random, sessions, folder)
    with pytest.MonkeyPatch.context() as pieces:
        pieces.setattr("indexer.words.PIECE_CHARS", random.choice([30, 1000, 16_384]))
        index_once(settings, lambda _: None)
    with opened(settings) as tools:
        yield tools, sessions


@pytest.mark.parametrize("seed", range(ARCHIVES))
def test_a_search_by_words_is_a_scan_ranked_by_score(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    with indexed(random, tmp_path) as (tools, sessions):
        for _ in range(QUERIES):
            query, written, filters = random_search(random, sessions)
            hits, notes = walk(tools, written, filters, random)
            assert not notes, (written, filters)
            assert by_turn(hits) == words_oracle.search(sessions, query, filters), (written, filters)
            check_order(tools, hits, query, filters, written)


@pytest.mark.parametrize("seed", range(ARCHIVES))
def test_frequent_words_are_ranked_without_listing_them(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with limits so small that nearly every word is frequent and nearly every list is cut."""
    monkeypatch.setattr(candidates, "LISTED_CHUNKS", 2)
    monkeypatch.setattr(candidates, "COMPLETED_WORDS", 1)
    monkeypatch.setattr(ranked, "BEST_CHUNKS", 5)
    monkeypatch.setattr(ranked, "KEPT_CANDIDATES", 12)
    monkeypatch.setattr(ranked, "SAMPLE_TURNS", 4)
    monkeypatch.setattr(ranked, "WINDOWS_TURNS", (3, 5, 9))
    for module in (candidates, ranked):
        monkeypatch.setattr(module, "DEEPER", 2)
    for module in (ranked, words_search):
        monkeypatch.setattr(module, "MAX_RANKED_TURNS", 4)
    random = Random(seed)
    with indexed(random, tmp_path) as (tools, sessions):
        for _ in range(QUERIES):
            query, written, filters = random_search(random, sessions)
            hits, notes = walk(tools, written, filters, random)
            expected = words_oracle.search(sessions, query, filters)
            assert by_turn(hits).items() <= expected.items(), (written, filters)
            if filters.order == "best":
                assert len(hits) == min(4, len(expected)) or notes, (written, filters)
                assert len(hits) <= 4
            else:
                assert len(hits) == len(expected), (written, filters)
            check_order(tools, hits, query, filters, written)


def walk(tools: Tools, written: str, filters: oracle.Query, random: Random) -> tuple[list[Hit], set[str]]:
    """All hits, page by page, and what was said about the ranking; now and then no list is kept between pages."""
    arguments: dict[str, Any] = {**arguments_of(filters), "query": written, "limit": random.choice([1, 5, 20])}
    answers = list(pages(tools, arguments, random.choice([None, RankedLists()])))
    hits = [hit for answer in answers for hit in answer.hits]
    keys = [(hit.session_id, hit.turn) for hit in hits]
    assert len(set(keys)) == len(keys)
    assert all(answer.hits for answer in answers[1:])
    return hits, {note for answer in answers for note in answer.notes if "are ranked" in note}


def by_turn(hits: Sequence[Hit]) -> dict[tuple[str, int], oracle.Found]:
    return {
        (hit.session_id, hit.turn): oracle.Found(hit.session_id, hit.turn, hit.kind, hit.line, list(hit.spans))
        for hit in hits
    }


def check_order(tools: Tools, hits: list[Hit], query: Query, filters: oracle.Query, written: str) -> None:
    times = [hit.at for hit in hits]
    if filters.order != "best":
        assert times == sorted(times, reverse=filters.order == "newest"), written
        return
    scores = scores_of(tools, query, filters)
    for (hit, score), (after, next_score) in zip(
        pairs := [(hit, scores[hit.session_id, hit.turn]) for hit in hits], pairs[1:], strict=False
    ):
        assert score > next_score - TOLERANCE, (written, filters)
        assert score != next_score or hit.at >= after.at, (written, filters)


def scores_of(tools: Tools, query: Query, filters: oracle.Query) -> dict[tuple[str, int], float]:
    """The sum, over all sought words, of the best chunk of each turn."""
    layers = Gaze.of(frozenset(filters.kind), filters.full).layers  # type: ignore[arg-type]  # a StrEnum's values
    words = {
        word
        for term, is_negated in words_oracle._words_in(query, False)
        if not is_negated
        for word in indexed_words(tools, term)
    }
    totals: dict[tuple[str, int], float] = {}
    for word in words:
        found = WordScores(tools.index, tools.store).of(word, Scope(layers, 0, END_OF_TIME_MS), 2**31)
        assert found is not None
        best: dict[tuple[str, int], float] = {}
        for body in tools.store.bodies(found.keys()):
            stored = tools.store.session(body.session)
            assert stored is not None
            key = stored.session_id, body.turn
            best[key] = max(found[body.chunk], best.get(key, 0.0))
        for key, score in best.items():
            totals[key] = totals.get(key, 0.0) + score
    return totals


def indexed_words(tools: Tools, term: Words) -> list[ScoredWord]:
    *whole, last = term.words
    words: list[ScoredWord] = [Word((part,)) for word in whole for part in windows(word)]
    if not term.is_open:
        return words + [Word((part,)) for part in windows(last)]
    if len(last) >= 64:
        return [*words, Word((last[:64],))]
    completed = tools.vocabulary.find(last, Fits.AT_START, candidates.COMPLETED_WORDS)
    return [*words, Beginning(last) if completed is None else Word(tuple(completed))]


def random_search(random: Random, sessions: Sequence[oracle.Session]) -> tuple[Query, str, oracle.Query]:
    """A query, how it is written, and the filters of the call."""
    query = random_facts(random, sessions)
    filters = replace(
        random_query(random, sessions), query="", order=random.choice(["best", "best", "newest", "oldest"])
    )
    return query, written_as(random, query, in_and=False), filters


def random_facts(random: Random, sessions: Sequence[oracle.Session]) -> Query:
    """Mostly a few words; all alternatives have one that is not excluded."""

    def every() -> Query:
        parts = [random_term(random, sessions) for _ in range(random.choice([1, 1, 1, 2, 2, 3]))]
        roll = random.random()
        if roll < 0.2:
            parts.append(Not(random_term(random, sessions)))
        elif roll < 0.3:
            parts.append(Or((random_term(random, sessions), random_term(random, sessions))))
        elif roll < 0.35:
            parts.append(Or((random_term(random, sessions), Not(random_term(random, sessions)))))
        elif roll < 0.4:
            parts.append(Not(And((random_term(random, sessions), random_term(random, sessions)))))
        random.shuffle(parts)
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    if random.random() < 0.2:
        return Or((every(), every()))
    return every()


def random_term(random: Random, sessions: Sequence[oracle.Session]) -> Query:
    """Some words of some line, or some that are often there."""
    texts = [text for entry in random.choice(sessions).entries for text in entry.texts.values()]
    text = random.choice(texts or WORDS)
    roll = random.random()
    if roll < 0.5:
        text = random.choice(oracle.lines_of(text))
    elif roll < 0.9:
        text = random.choice(WORDS)
    tokens = words_oracle.tokens_of(text)  # of several lines now and then: such words are not side by side
    tokens = tokens or words_oracle.tokens_of("parser")
    size = random.choice([1, 1, 1, 2, 2, 3])
    start = random.randint(0, max(0, len(tokens) - size))
    words = [token.word for token in tokens[start : start + size]]
    is_open = random.random() < 0.2 and not words_oracle.is_spaceless(words[-1][-1])
    if is_open:
        words[-1] = words[-1][: random.randint(1, len(words[-1]))]
    return Words(tuple(words), is_open)


def written_as(random: Random, query: Query, *, in_and: bool) -> str:
    match query:
        case Words(words, is_open):
            separators = [" ", "-", "_", " => ", "."]
            text = random.choice(separators).join(words)
            changed = random_case(random, text)
            if words_oracle.tokens_of(changed) == words_oracle.tokens_of(text):
                text = changed
            is_quoted = " " in text or text in ("AND", "OR") or random.random() < 0.3
            return (f'"{text}"' if is_quoted else text) + "*" * is_open
        case Not(part):
            written = written_as(random, part, in_and=True)
            return "-" + written
        case And(parts):
            written = random.choice([" ", "  ", " AND "]).join(written_as(random, part, in_and=True) for part in parts)
            return f"({written})" if in_and else written
        case Or(parts):
            written = " OR ".join(written_as(random, part, in_and=False) for part in parts)
            return f"({written})" if in_and else written
