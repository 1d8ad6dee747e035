"""How well chunks fit words: BM25, with the same weight for a word in both folders of the index.

Tantivy weighs a word by how rare it is in one folder. `live` is small, so its words would hardly count
beside those of `bulk`; each folder's scores are therefore scaled to the rarity over both.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import orjson
from tantivy import FieldType, Occur, Query, Searcher

from indexer.index import _TERMS, IndexReader, Scope
from indexer.store.reader import StoreReader, TurnKey
from schemas.items import Layer

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Word:
    """What counts as one word: a term of the index, or any of several, of which the one that fits best counts."""

    terms: tuple[str, ...]

    def __str__(self) -> str:
        return "|".join(self.terms)


@dataclass(frozen=True, slots=True)
class Beginning:
    """Any term that begins so, where there are too many to tell apart: all count 1."""

    text: str

    def __str__(self) -> str:
        return f"{self.text}*"


ScoredWord: TypeAlias = Word | Beginning


@dataclass(frozen=True, slots=True)
class EveryWord:
    """All of these are in the chunk."""

    parts: tuple["ChunkWords", ...]


@dataclass(frozen=True, slots=True)
class SomeWord:
    """One of these is in the chunk."""

    parts: tuple["ChunkWords", ...]


ChunkWords: TypeAlias = ScoredWord | EveryWord | SomeWord


def word_scores(
    reader: IndexReader, word: ScoredWord, scope: Scope, limit: int, chunks: Collection[int] | None = None
) -> dict[int, float] | None:
    """The chunks in scope that have a word, with its BM25; `chunks` narrows it to those. None: more than `limit`."""
    scores: dict[int, float] = {}
    for searcher in _searchers(reader):
        built = _scored(reader, searcher, word)
        found = _search(searcher, _within(reader, built, scope, chunks), limit + 1)
        if len(found) > limit:
            return None
        scores.update(found)
    return scores


def best_chunks(
    reader: IndexReader, required: ChunkWords, words: Sequence[ScoredWord], scope: Scope, limit: int
) -> tuple[dict[int, float], bool]:
    """The `limit` best chunks in scope that have what is required, by the sum of BM25 over `words`.

    The second value says whether these are all there are.
    """
    scores: dict[int, float] = {}
    is_all = True
    for searcher in _searchers(reader):
        must = _built(reader, required)
        built = Query.boolean_query(
            [(Occur.Must, Query.const_score_query(must, 0.0))]
            + [(Occur.Should, _scored(reader, searcher, word)) for word in words]
        )
        if required in words or (isinstance(required, EveryWord) and set(required.parts) == set(words)):
            built = Query.boolean_query([(Occur.Must, _scored(reader, searcher, word)) for word in words])
        found = _search(searcher, _within(reader, built, scope, None), limit)
        is_all = is_all and len(found) < limit
        scores.update(found)
    return scores, is_all


def frequency(reader: IndexReader, word: ScoredWord) -> int | None:
    """In how many chunks a word is, at most; None where that is not known."""
    return sum(map(reader.frequency, word.terms)) if isinstance(word, Word) else None


def chunks_of_turns(store: StoreReader, turns: Sequence[TurnKey], layers: Collection[Layer]) -> dict[int, TurnKey]:
    """All chunks of some turns, in these layers, and the turn of each."""
    turn_of: dict[int, TurnKey] = {}
    for start in range(0, len(turns), _BATCH):
        some = {(session, turn): (at_ms, session, turn) for at_ms, session, turn in turns[start : start + _BATCH]}
        rows = store._db.execute(
            f"WITH wanted(session, turn) AS (VALUES {','.join(['(?, ?)'] * len(some))})"
            " SELECT c.id, c.session, c.turn, c.layer FROM wanted w CROSS JOIN chunks c"
            " ON c.session = w.session AND c.turn = w.turn",
            [value for turn in some for value in turn],
        )
        turn_of.update({chunk: some[session, turn] for chunk, session, turn, layer in rows if layer in layers})
    return turn_of


def _searchers(reader: IndexReader) -> Iterator[Searcher]:
    """Those that hold anything; `live` last, as what it says of a chunk is newer."""
    return (searcher for searcher in reader._searchers if searcher.num_docs)


def _search(searcher: Searcher, query: Query, limit: int) -> dict[int, float]:
    hits = searcher.search(query, min(limit, searcher.num_docs), count=False).hits
    chunks = searcher.fast_field_values("chunk", [address for _, address in hits])
    return {int(chunk): score for chunk, (score, _) in zip(chunks, hits, strict=True) if chunk is not None}


def _within(reader: IndexReader, query: Query, scope: Scope, chunks: Collection[int] | None) -> Query:
    """The query in scope, its scores unchanged."""
    schema = reader._schema
    within = [
        Query.term_set_query(schema, name, [int(key) for key in keys])
        for name, keys in (
            ("layer", scope.layers),
            ("project", scope.projects),
            ("session", scope.sessions),
            ("chunk", chunks),
        )
        if keys is not None
    ]
    within.append(Query.range_query(schema, "at", FieldType.Integer, scope.from_ms, scope.to_ms))
    unscored = [(Occur.Must, Query.const_score_query(part, 0.0)) for part in within]
    return Query.boolean_query([(Occur.Must, query), *unscored])


def _scored(reader: IndexReader, searcher: Searcher, word: ScoredWord) -> Query:
    match word:
        case Beginning(text):
            return Query.regex_query(reader._schema, _TERMS, text + ".*")
        case Word(terms):
            scored = [_scored_term(reader, searcher, term) for term in terms]
            if not scored:
                return Query.empty_query()
            return scored[0] if len(scored) == 1 else Query.disjunction_max_query(scored)


def _scored_term(reader: IndexReader, searcher: Searcher, term: str) -> Query:
    query = Query.term_query(reader._schema, _TERMS, term, index_option="freq")
    if sum(1 for _ in _searchers(reader)) == 1:
        return query
    hits = searcher.search(query, 1, count=False).hits
    if not hits:
        return query
    total = reader.documents()
    frequency = min(reader.frequency(term), total)
    rarity = math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))
    # Deleted documents count for the folder's own weight until they are merged away, and only it knows how many.
    explained = orjson.loads(query.explain(searcher, hits[0][1]).to_json())
    own = next(part["value"] for part in explained["details"] if part["description"].startswith("idf"))
    return Query.boost_query(query, rarity / own)


def _built(reader: IndexReader, words: ChunkWords) -> Query:
    match words:
        case Word(terms):
            return Query.term_set_query(reader._schema, _TERMS, list(terms)) if terms else Query.empty_query()
        case Beginning(text):
            return Query.regex_query(reader._schema, _TERMS, text + ".*")
        case EveryWord(parts):
            return Query.boolean_query([(Occur.Must, _built(reader, part)) for part in parts])
        case SomeWord(parts):
            return Query.boolean_query([(Occur.Should, _built(reader, part)) for part in parts])
