"""The Tantivy index: which chunks may hold what a query needs. The only module that talks to Tantivy.

A document is a chunk, or a piece of a long one: its keys and its terms, no text. Two folders with a writer
each, as one commit writes out all that its writer holds: `bulk` for first scans and rebuilds, `live` for
everything after. A chunk that is written again goes to `live`; what `bulk` still says of it is a candidate
that verification drops. User text never reaches Tantivy's query parser; queries are built from objects.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import cast

import tantivy
from tantivy import Document, FieldType, Index, Occur, Query, SchemaBuilder, TextAnalyzerBuilder, Tokenizer

from indexer.lanes import LANES
from indexer.order import Order, TurnKey
from indexer.query import All, Any, AnyTerm, Anything, ChunkQuery, Joint, Nothing, Phrase
from indexer.words import RULES_VERSION, Terms
from schemas.errors import Unavailable
from schemas.items import Kind, Layer

INDEX_VERSION = f"5 tantivy-{version('tantivy')} {RULES_VERSION}"
"""An index of another version is rebuilt from the store."""

_TOKENIZER = "spaces"
_TERMS = "terms"
_JOINTS = "joints"
_KIND_KEYS = {kind: key for key, kind in enumerate(Kind)}
_HEAP_BYTES = (50_000_000, 32_000_000)
"""What a writer of each folder gathers before it writes a segment. With 256 MB a first scan takes 170 MB more memory,
and some 4 % less time."""

REMEMBERED_FREQUENCIES = 20_000

LOCK_SECONDS = 10.0
"""How long a process of an earlier run may hold the folder, when the one that started it was killed,"""

LOCK_RETRY_SECONDS = 0.05
"""and how often it is seen whether it still does."""

_FIRST_HITS = 1024
"""Tantivy sets memory aside for the number asked for: most searches find fewer than this in their window."""
_UNBOUNDED = 2**62

_DIRECTIONS = {"newest": tantivy.Order.Desc, "oldest": tantivy.Order.Asc}


def _schema() -> tantivy.Schema:
    builder = SchemaBuilder()
    for key in ("chunk", "at", "session", "turn", "project", "layer", "kind"):
        # Signed: a delete by term on an unsigned field deletes nothing, and says nothing. A range of times is looked
        # up in the fast field, and nothing asks for a turn.
        is_fast = key in ("chunk", "at", "session", "turn")
        builder.add_integer_field(key, indexed=key not in ("at", "turn"), fast=is_fast)
    builder.add_integer_field("pieces", fast=True)
    builder.add_text_field(_TERMS, tokenizer_name=_TOKENIZER, index_option="position")
    builder.add_text_field(_JOINTS, tokenizer_name=_TOKENIZER, index_option="basic")
    return builder.build()


def _open(folder: Path) -> Index:
    try:
        index = (
            Index(_schema(), str(folder)) if Index.exists(str(folder)) else Index(_schema(), str(folder), reuse=False)
        )
    except ValueError as error:
        raise Unavailable(f"the index {folder} cannot be opened: {error}; run: turndex index") from error
    index.register_tokenizer(_TOKENIZER, TextAnalyzerBuilder(Tokenizer.whitespace()).build())
    return index


@dataclass(frozen=True, slots=True)
class ChunkDocument:
    """What the index is told of a chunk."""

    chunk: int
    session: int
    turn: int
    project: int
    layer: Layer
    at_ms: int
    kinds: Collection[Kind]
    """Of its items."""
    terms: Sequence[Terms]
    """Of each piece of its text; each is a document of its own."""


class IndexWriter:
    """Writes one folder. Writing a chunk twice is writing it once."""

    def __init__(self, folder: Path, lane: int) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._index = _open(folder)
        until = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                self._writer = self._index.writer(_HEAP_BYTES[lane], num_threads=1)
                return
            except ValueError as error:
                if "LockBusy" not in str(error) or time.monotonic() > until:
                    raise Unavailable(f"the index {folder} cannot be written: {error}") from error
            time.sleep(LOCK_RETRY_SECONDS)

    def put(self, document: ChunkDocument) -> None:
        self.remove(document.chunk)
        for terms in document.terms:
            row = Document()
            row.add_integer("chunk", document.chunk)
            row.add_integer("at", document.at_ms)
            row.add_integer("session", document.session)
            row.add_integer("turn", document.turn)
            row.add_integer("project", document.project)
            row.add_integer("layer", document.layer)
            row.add_integer("pieces", len(document.terms))
            for kind in document.kinds:
                row.add_integer("kind", _KIND_KEYS[kind])
            row.add_text(_TERMS, terms.text)
            row.add_text(_JOINTS, " ".join(terms.joints))
            self._writer.add_document(row)

    def remove(self, chunk: int) -> None:
        self._writer.delete_documents_by_term("chunk", chunk)

    def commit(self) -> None:
        """Make what was put findable and durable; it takes tens of milliseconds.

        Raises:
            ValueError: it failed, and all since the last commit is lost: throw this writer away.
        """
        self._writer.commit()

    def close(self) -> None:
        self._writer.wait_merging_threads()


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to look; a session or project that is not named is not looked at."""

    layers: Collection[Layer]
    from_ms: int
    to_ms: int
    """Included, like `from_ms`."""
    projects: Collection[int] | None = None
    sessions: Collection[int] | None = None
    without: Collection[int] = ()
    """Sessions that are not looked at."""
    kinds: Collection[Kind] | None = None
    """Chunks with items of one of these kinds."""


class IndexReader:
    """Searches both folders. Never too few chunks: too many are dropped by whoever verifies them."""

    def __init__(self, folder: Path) -> None:
        """
        Raises:
            Unavailable: it cannot be opened, or is gone, as where another one took its place meanwhile.
        """
        self._indexes = [_open(folder / lane) for lane in LANES if (folder / lane).is_dir()]
        if not folder.is_dir():  # it goes as a whole, so that what was opened before is all of it
            raise Unavailable(f"the index {folder} is gone; run: turndex index")
        self._schema = _schema()
        self._frequencies: dict[str, int] = {}
        self._searchers = [index.searcher() for index in self._indexes]

    def reload(self) -> None:
        """See what was committed since; until the next time all calls see the same."""
        try:
            for index in self._indexes:
                index.reload()
            self._searchers = [index.searcher() for index in self._indexes]
        except ValueError as error:
            raise Unavailable(f"the index cannot be read: {error}; run: turndex index") from error

    def documents(self) -> int:
        return sum(searcher.num_docs for searcher in self._searchers)

    def segments(self) -> int:
        return sum(searcher.num_segments for searcher in self._searchers)

    def most_chunks(self, query: ChunkQuery) -> int:
        """An upper bound of how many chunks a query can have, from word counts alone."""
        match query:
            case Nothing():
                return 0
            case Anything():
                return _UNBOUNDED
            case AnyTerm(terms):
                return min(_UNBOUNDED, sum(map(self.frequency, terms)))
            case Phrase(terms):
                return min(map(self.frequency, terms))
            case Joint(joints):
                return sum(searcher.doc_freq(_JOINTS, joint) for searcher in self._searchers for joint in joints)
            case All(parts):
                return min(self.most_chunks(part) for part in parts)
            case Any(parts):
                shared = set[str].intersection(*map(_needed_terms, parts))
                return min([_UNBOUNDED, sum(map(self.most_chunks, parts)), *map(self.frequency, shared)])

    def frequency(self, term: str) -> int:
        """In how many chunks a term is, in both folders; those that were deleted since count too.

        It is kept for a while: what is planned by it is right whatever it says.
        """
        known = self._frequencies.get(term)
        if known is None:
            if len(self._frequencies) >= REMEMBERED_FREQUENCIES:
                self._frequencies.clear()
            known = self._frequencies[term] = self._frequency(term)
        return known

    def _frequency(self, term: str) -> int:
        return sum(searcher.doc_freq(_TERMS, term) for searcher in self._searchers)

    def few_candidates(self, query: ChunkQuery, scope: Scope, most: int) -> dict[TurnKey, list[int]] | None:
        """`candidates`, or None where a folder has more than `most` of them."""
        built = self._within(self._built(query), scope)
        found: dict[TurnKey, list[int]] = {}
        for searcher in self._searchers:
            hits = searcher.search(built, most + 1, count=False, order_by_field="chunk").hits
            if len(hits) > most:
                return None
            self._add(searcher, hits, found)
        return found

    def candidates(self, query: ChunkQuery, scope: Scope) -> dict[TurnKey, list[int]]:
        """The chunks in scope that have what the query needs, by the turns they belong to."""
        built = self._within(self._built(query), scope)
        found: dict[TurnKey, list[int]] = {}
        for searcher in self._searchers:
            limit = _FIRST_HITS
            hits = searcher.search(built, limit, count=False, order_by_field="chunk").hits
            while len(hits) == limit:
                limit = min(limit * 8, searcher.num_docs + 1)
                hits = searcher.search(built, limit, count=False, order_by_field="chunk").hits
            self._add(searcher, hits, found)
        return found

    def first_candidates(
        self, query: ChunkQuery, scope: Scope, order: Order, least: int
    ) -> tuple[dict[TurnKey, list[int]], int | None]:
        """The first `candidates` in the order of answers, and the time in ms up to which these are all.

        That time is not included; None: they are all in scope. There are at least `least` of them, or all, where
        not too many turns began at the same time.
        """
        built = self._within(self._built(query), scope)
        found: dict[TurnKey, list[int]] = {}
        cuts: list[int] = []
        for searcher in self._searchers:
            limit = least
            while True:
                hits = searcher.search(
                    built, limit + 1, count=False, order_by_field="at", order=_DIRECTIONS[order]
                ).hits
                if len(hits) <= limit:
                    break
                cut = hits[-1][0]
                if hits[0][0] != cut:
                    cuts.append(cut)
                    break
                limit *= 8
            addresses = [address for _, address in hits]
            session, turn, chunk = self._values(searcher, addresses, "session", "turn", "chunk")
            for (at, _), session_id, turn_id, chunk_id in zip(hits, session, turn, chunk, strict=True):
                found.setdefault((at, session_id, turn_id), []).append(chunk_id)
        if not cuts:
            return found, None
        if order == "newest":
            cut = max(cuts)
            return {key: chunks for key, chunks in found.items() if key[0] > cut}, cut
        cut = min(cuts)
        return {key: chunks for key, chunks in found.items() if key[0] < cut}, cut

    def _add(
        self, searcher: tantivy.Searcher, hits: list[tuple[int, tantivy.DocAddress]], found: dict[TurnKey, list[int]]
    ) -> None:
        addresses = [address for _, address in hits]
        at, session, turn = self._values(searcher, addresses, "at", "session", "turn")
        for (chunk, _), key in zip(hits, zip(at, session, turn, strict=True), strict=True):
            found.setdefault(key, []).append(chunk)

    def _values(
        self, searcher: tantivy.Searcher, addresses: list[tantivy.DocAddress], *names: str
    ) -> Iterator[list[int]]:
        for name in names:
            yield cast(list[int], searcher.fast_field_values(name, addresses))

    def _within(self, query: Query, scope: Scope) -> Query:
        return Query.boolean_query([(Occur.Must, query), *clauses_of(scope, self._schema)])

    def _built(self, query: ChunkQuery) -> Query:
        match query:
            case Nothing():
                return Query.empty_query()
            case Anything():
                return Query.all_query()
            case AnyTerm(terms):
                return self._any(_TERMS, terms)
            case Phrase(terms) if len(terms) == 1:
                return self._any(_TERMS, terms)
            case Phrase(terms):
                return Query.phrase_query(self._schema, _TERMS, list(terms))
            case Joint(joints):
                return self._any(_JOINTS, joints)
            case All(parts):
                return Query.boolean_query([(Occur.Must, self._built(part)) for part in parts])
            case Any(parts):
                return Query.boolean_query([(Occur.Should, self._built(part)) for part in parts])

    def _any(self, field: str, terms: Sequence[str]) -> Query:
        if len(terms) == 1:
            return Query.term_query(self._schema, field, terms[0], index_option="basic")
        return Query.term_set_query(self._schema, field, list(terms))


def clauses_of(scope: Scope, schema: tantivy.Schema) -> Iterator[tuple[Occur, Query]]:
    """What a scope asks of a chunk."""
    yield Occur.Must, Query.range_query(schema, "at", FieldType.Integer, scope.from_ms, scope.to_ms)
    kinds = None if scope.kinds is None else [_KIND_KEYS[kind] for kind in scope.kinds]
    for field, keys in (
        ("layer", scope.layers),
        ("project", scope.projects),
        ("session", scope.sessions),
        ("kind", kinds),
    ):
        if keys is not None:
            yield Occur.Must, Query.term_set_query(schema, field, [int(key) for key in keys])
    if scope.without:
        yield Occur.MustNot, Query.term_set_query(schema, "session", list(scope.without))


def _needed_terms(query: ChunkQuery) -> set[str]:
    """Terms that all chunks with what a query needs have."""
    match query:
        case Phrase(terms):
            return set(terms)
        case AnyTerm(terms) if len(terms) == 1:
            return set(terms)
        case All(parts):
            return set[str]().union(*map(_needed_terms, parts))
        case Any(parts):
            return set[str].intersection(*map(_needed_terms, parts))
        case _:
            return set()
