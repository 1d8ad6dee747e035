"""What a search may rely on, whatever index stands behind it: never a chunk too few, and a write twice is one.

The index is compared with one that holds the terms of all chunks in memory.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.index import ChunkDocument, IndexReader, IndexWriter, Scope
from indexer.lanes import LANES
from indexer.query import All, Any, AnyTerm, Anything, ChunkQuery, Joint, Nothing, Phrase
from indexer.words import terms_of
from schemas.items import Kind, Layer

VOCABULARY = ["open", "span", "range", "=", ">", "错", "🎉", "é", "x", "seldom"]
CHUNKS = 400
LAST_MS = 100


class InMemory:
    """The plainest index."""

    def __init__(self, documents: dict[int, ChunkDocument]) -> None:
        self._documents = documents

    def chunks(self, query: ChunkQuery, scope: Scope) -> set[int]:
        return {
            chunk
            for chunk, one in self._documents.items()
            if _is_in(one, scope) and any(_holds(query, terms.text.split(), terms.joints) for terms in one.terms)
        }


def _is_in(one: ChunkDocument, scope: Scope) -> bool:
    return (
        one.layer in scope.layers
        and scope.from_ms <= one.at_ms <= scope.to_ms
        and (scope.projects is None or one.project in scope.projects)
        and (scope.sessions is None or one.session in scope.sessions)
        and one.session not in scope.without
        and (scope.kinds is None or not set(scope.kinds).isdisjoint(one.kinds))
    )


def _holds(query: ChunkQuery, terms: list[str], joints: set[str]) -> bool:
    match query:
        case Anything():
            return True
        case Nothing():
            return False
        case AnyTerm(wanted):
            return not set(wanted).isdisjoint(terms)
        case Phrase(wanted):
            return any(tuple(terms[at : at + len(wanted)]) == wanted for at in range(len(terms)))
        case Joint(wanted):
            return not joints.isdisjoint(wanted)
        case All(parts):
            return all(_holds(part, terms, joints) for part in parts)
        case Any(parts):
            return any(_holds(part, terms, joints) for part in parts)


def _document(random: Random, chunk: int) -> ChunkDocument:
    words = random.choices(VOCABULARY, [9, 9, 9, 9, 9, 5, 5, 5, 5, 1], k=random.randint(0, 12))
    session = random.randint(1, 8)
    return ChunkDocument(
        chunk=chunk,
        session=session,
        turn=random.randint(1, 5),
        project=1 + session % 3,
        layer=random.choice(list(Layer)),
        at_ms=random.randint(0, LAST_MS),
        kinds=frozenset(random.sample(list(Kind), 2)),
        terms=[terms_of(" ".join(words))],
    )


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[IndexReader, InMemory]]:
    """An index that was written to in every way, and what it must be like."""
    folder = tmp_path_factory.mktemp("index")
    random = Random(5)
    documents: dict[int, ChunkDocument] = {}
    with ExitStack() as opened:
        writers = [opened.enter_context(closing(IndexWriter(folder / lane, n))) for n, lane in enumerate(LANES)]
        for chunk in range(CHUNKS):
            lane = random.randrange(2)
            documents[chunk] = _document(random, chunk)
            for _ in range(random.choice([1, 1, 2])):
                writers[lane].put(documents[chunk])
            if lane == 1 and chunk % 7 == 0:
                # Written again with other terms: the keys of a chunk never change.
                documents[chunk] = replace(documents[chunk], terms=_document(random, chunk).terms)
                writers[lane].put(documents[chunk])
            if lane == 1 and chunk % 11 == 0:
                writers[lane].remove(chunk)
                del documents[chunk]
            if random.random() < 0.1:
                writers[lane].commit()
        for writer in writers:
            writer.commit()
    yield IndexReader(folder), InMemory(documents)


TERMS = st.lists(st.sampled_from([*VOCABULARY, "missing"]), min_size=1, max_size=3).map(tuple)
JOINTS = st.builds(
    Joint, st.lists(st.sampled_from(["ensp", "anop", "éx", "xx", "missing"]), min_size=1, max_size=3).map(tuple)
)
QUERIES: st.SearchStrategy[ChunkQuery] = st.recursive(
    st.builds(AnyTerm, TERMS) | st.builds(Phrase, TERMS) | JOINTS | st.builds(Anything) | st.builds(Nothing),
    lambda parts: (
        st.builds(All, st.lists(parts, min_size=1, max_size=3).map(tuple))
        | st.builds(Any, st.lists(parts, min_size=1, max_size=3).map(tuple))
    ),
    max_leaves=6,
)
SCOPES = st.builds(
    Scope,
    layers=st.sets(st.sampled_from(Layer), min_size=1),
    from_ms=st.integers(0, LAST_MS),
    to_ms=st.integers(0, LAST_MS + 10),
    projects=st.none() | st.sets(st.integers(1, 4), min_size=1),
    sessions=st.none() | st.sets(st.integers(1, 9), min_size=1),
    without=st.sets(st.integers(1, 9), max_size=3),
    kinds=st.none() | st.sets(st.sampled_from(Kind), min_size=1),
)
EVERYWHERE = Scope(layers=list(Layer), from_ms=0, to_ms=LAST_MS)


def chunks(index: IndexReader, query: ChunkQuery, scope: Scope) -> set[int]:
    return {chunk for found in index.candidates(query, scope).values() for chunk in found}


@settings(max_examples=300)
@given(query=QUERIES, scope=SCOPES)
def test_no_chunk_is_missing_and_none_is_out_of_scope(
    both: tuple[IndexReader, InMemory], query: ChunkQuery, scope: Scope
) -> None:
    index, in_memory = both
    found = chunks(index, query, scope)
    assert found >= in_memory.chunks(query, scope)
    assert found <= in_memory.chunks(Anything(), scope)


@settings(max_examples=200)
@given(query=QUERIES)
def test_a_query_is_answered_exactly(both: tuple[IndexReader, InMemory], query: ChunkQuery) -> None:
    index, in_memory = both
    assert chunks(index, query, EVERYWHERE) == in_memory.chunks(query, EVERYWHERE)


@settings(max_examples=200)
@given(query=QUERIES)
def test_there_are_no_more_chunks_than_was_promised(both: tuple[IndexReader, InMemory], query: ChunkQuery) -> None:
    index, in_memory = both
    assert len(in_memory.chunks(query, EVERYWHERE)) <= index.most_chunks(query)


def test_chunks_are_named_with_the_turns_that_they_belong_to(both: tuple[IndexReader, InMemory]) -> None:
    index, in_memory = both
    documents = in_memory._documents
    found = index.candidates(Anything(), EVERYWHERE)
    assert {chunk for of_turn in found.values() for chunk in of_turn} == documents.keys()
    for (at_ms, session, turn), of_turn in found.items():
        for chunk in of_turn:
            one = documents[chunk]
            assert (one.at_ms, one.session, one.turn) == (at_ms, session, turn)
