"""How well chunks fit words: BM25, with the same weight for a word in both folders of the index.

Tantivy weighs a word by how rare it is in one folder. `live` is small, so its words would hardly count
beside those of `bulk`; each folder's scores are therefore scaled to the rarity over both. The length that a
chunk is measured against stays the average of its own folder.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import orjson
from tantivy import Occur, Query, Searcher

from indexer.index import _TERMS, IndexReader, Scope, clauses_of
from indexer.order import TurnKey
from indexer.store.reader import StoreReader
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


class WordScores:
    """Looks words up in both folders of the index. Scores of the same word can be compared, those of words added."""

    def __init__(self, index: IndexReader, store: StoreReader) -> None:
        self._index = index
        self._store = store
        self._schema = index._schema
        # `live` last, as what it says of a chunk is newer.
        self._searchers = [searcher for searcher in index._searchers if searcher.num_docs]
        self.turn_of: dict[int, TurnKey] = {}
        """The turns of all chunks that were answered."""
        self.in_pieces: set[int] = set()
        """Those of them that the index has in several pieces: what one piece scores is not all of it."""

    def of(
        self, word: ScoredWord, scope: Scope, limit: int, chunks: Collection[int] | None = None
    ) -> dict[int, float] | None:
        """The chunks in scope that have a word, with its BM25, the best of any piece of them.

        With `chunks` just those of them; else None where a folder has more than `limit` pieces with the word.
        """
        scores: dict[int, float] = {}
        for searcher in self._searchers:
            most = limit + 1 if chunks is None else searcher.num_docs
            found, count = self._search(searcher, self._scored(searcher, word), scope, most, chunks)
            if chunks is None and count > limit:
                return None
            scores.update(found)
        return scores

    def best(
        self, required: ChunkWords, words: Sequence[ScoredWord], scope: Scope, limit: int
    ) -> tuple[dict[int, float], bool]:
        """The best chunks in scope, or pieces of them, that have what is required, by the sum of BM25 over `words`.

        `limit` of each folder; the second value says whether these are all there are.
        """
        scores: dict[int, float] = {}
        is_all = True
        parts = required.parts if isinstance(required, EveryWord) else (required,)
        is_every = set(parts) == set(words)
        for searcher in self._searchers:
            scored = [(Occur.Must if is_every else Occur.Should, self._scored(searcher, word)) for word in words]
            unscored = [] if is_every else [(Occur.Must, Query.const_score_query(self._built(required), 0.0))]
            found, count = self._search(searcher, Query.boolean_query(scored + unscored), scope, limit)
            is_all = is_all and count < limit
            scores.update(found)
        return scores, is_all

    def frequency(self, word: ScoredWord) -> int | None:
        """In how many chunks a word is, at most; None where that is not known."""
        return sum(map(self._index.frequency, word.terms)) if isinstance(word, Word) else None

    def chunks_of(self, turns: Collection[TurnKey], layers: Collection[Layer]) -> list[int]:
        """All chunks of some turns, in these layers."""
        chunks: list[int] = []
        keys = list(turns)
        for start in range(0, len(keys), _BATCH):
            some = {(session, turn): (at_ms, session, turn) for at_ms, session, turn in keys[start : start + _BATCH]}
            rows = self._store._db.execute(
                f"WITH wanted(session, turn) AS (VALUES {','.join(['(?, ?)'] * len(some))})"
                " SELECT c.id, c.session, c.turn, c.layer FROM wanted w CROSS JOIN chunks c"
                " ON c.session = w.session AND c.turn = w.turn",
                [value for turn in some for value in turn],
            )
            found = {chunk: some[session, turn] for chunk, session, turn, layer in rows if layer in layers}
            self.turn_of.update(found)
            chunks += found
        return chunks

    def _search(
        self, searcher: Searcher, query: Query, scope: Scope, limit: int, chunks: Collection[int] | None = None
    ) -> tuple[dict[int, float], int]:
        """The chunks with the scores of their best pieces, and how many pieces these are of."""
        within = list(clauses_of(scope, self._schema))
        if chunks is not None:
            within.append((Occur.Must, Query.term_set_query(self._schema, "chunk", list(chunks))))
        unscored = [(occur, Query.const_score_query(part, 0.0)) for occur, part in within]
        scoped = Query.boolean_query([(Occur.Must, query), *unscored])
        hits = searcher.search(scoped, min(limit, searcher.num_docs), count=False).hits
        addresses = [address for _, address in hits]
        found, pieces, *keys = (
            cast(list[int], searcher.fast_field_values(name, addresses))
            for name in ("chunk", "pieces", "at", "session", "turn")
        )
        self.in_pieces.update(chunk for chunk, count in zip(found, pieces, strict=True) if count > 1)
        self.turn_of.update(zip(found, zip(*keys, strict=True), strict=True))
        # The best hits come first.
        scores: dict[int, float] = {}
        for chunk, (score, _) in zip(found, hits, strict=True):
            scores.setdefault(chunk, score)
        return scores, len(hits)

    def _scored(self, searcher: Searcher, word: ScoredWord) -> Query:
        match word:
            case Beginning():
                return self._built(word)
            case Word(terms):
                scored = [self._scored_term(searcher, term) for term in terms]
                if not scored:
                    return Query.empty_query()
                return scored[0] if len(scored) == 1 else Query.disjunction_max_query(scored)

    def _scored_term(self, searcher: Searcher, term: str) -> Query:
        query = Query.term_query(self._schema, _TERMS, term, index_option="freq")
        if len(self._searchers) == 1:
            return query
        hits = searcher.search(query, 1, count=False).hits
        if not hits:
            return query
        total = self._index.documents()
        frequency = min(self._index.frequency(term), total)
        rarity = math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))
        # Deleted chunks count for the folder's own weight until they are merged away, and only it knows how many.
        explained = orjson.loads(query.explain(searcher, hits[0][1]).to_json())
        own = next(part["value"] for part in explained["details"] if part["description"].startswith("idf"))
        return Query.boost_query(query, rarity / own)

    def _built(self, words: ChunkWords) -> Query:
        match words:
            case Word(terms):
                return Query.term_set_query(self._schema, _TERMS, list(terms)) if terms else Query.empty_query()
            case Beginning(text):
                return Query.regex_query(self._schema, _TERMS, text + ".*")
            case EveryWord(parts):
                return Query.boolean_query([(Occur.Must, self._built(part)) for part in parts])
            case SomeWord(parts):
                return Query.boolean_query([(Occur.Should, self._built(part)) for part in parts])
