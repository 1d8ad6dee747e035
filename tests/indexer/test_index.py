from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from indexer.index import ChunkDocument, IndexReader, IndexWriter, Scope
from indexer.lanes import BULK, LANES, LIVE
from indexer.order import Order
from indexer.query import All, Any, AnyTerm, Anything, ChunkQuery, Nothing, Phrase
from indexer.words import terms_of
from schemas.errors import Unavailable
from schemas.items import Kind, Layer

EVERYWHERE = Scope(layers=list(Layer), from_ms=0, to_ms=2**53)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[IndexWriter]:
    with closing(IndexWriter(tmp_path / LANES[LIVE], LIVE)) as writer:
        yield writer


def chunks_named(reader: IndexReader, query: ChunkQuery, scope: Scope) -> set[int]:
    return {chunk for chunks in reader.candidates(query, scope).values() for chunk in chunks}


def document(
    chunk: int, text: str, *, session: int = 1, project: int = 1, layer: int = 0, at_ms: int = 0
) -> ChunkDocument:
    return ChunkDocument(chunk, session, 1, project, Layer(layer), at_ms, [Kind.USER], [terms_of(text)])


def test_a_chunk_that_is_written_twice_is_there_once_as_it_was_written_last(tmp_path: Path, live: IndexWriter) -> None:
    for text in ("first words", "second words"):
        live.put(document(7, text))
    live.commit()
    live.put(document(7, "third words"))
    live.commit()
    reader = IndexReader(tmp_path)
    assert reader.documents() == 1
    assert chunks_named(reader, AnyTerm(("words",)), EVERYWHERE) == {7}
    assert chunks_named(reader, AnyTerm(("first", "second")), EVERYWHERE) == set()


def test_a_chunk_that_is_removed_is_gone_with_the_next_commit(tmp_path: Path, live: IndexWriter) -> None:
    live.put(document(1, "words"))
    live.put(document(2, "words"))
    live.commit()
    live.remove(1)
    live.commit()
    assert chunks_named(IndexReader(tmp_path), AnyTerm(("words",)), EVERYWHERE) == {2}


def test_both_folders_are_searched_and_what_was_committed_is_seen_after_a_reload(
    tmp_path: Path, live: IndexWriter
) -> None:
    with closing(IndexWriter(tmp_path / LANES[BULK], BULK)) as bulk:
        reader = IndexReader(tmp_path)
        bulk.put(document(1, "words"))
        bulk.commit()
        live.put(document(2, "words"))
        live.commit()
        reader.reload()
        assert chunks_named(reader, AnyTerm(("words",)), EVERYWHERE) == {1, 2}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (Nothing(), set()),
        (Anything(), {1, 2, 3, 4}),
        (AnyTerm(("open",)), {1, 2}),
        (AnyTerm(("open", "shut", "missing")), {1, 2, 3}),
        (Phrase(("open", "span")), {1}),
        (Phrase(("span", "open")), {2}),
        (Phrase(("shut",)), {3}),
        (Phrase(("=", ">")), {3}),
        (AnyTerm(("🎉",)), {4}),
        (All((AnyTerm(("open",)), Phrase(("span", "open")))), {2}),
        (Any((Phrase(("=", ">")), AnyTerm(("🎉",)))), {3, 4}),
        (All((Anything(), Any((Nothing(), AnyTerm(("shut",)))))), {3}),
    ],
    ids=str,
)
def test_a_query_finds_the_chunks_for_which_it_holds(
    tmp_path: Path, live: IndexWriter, query: ChunkQuery, found: set[int]
) -> None:
    for chunk, text in enumerate(("the open span", "the span open", "a => shut", "🎉"), start=1):
        live.put(document(chunk, text))
    live.commit()
    reader = IndexReader(tmp_path)
    assert chunks_named(reader, query, EVERYWHERE) == found
    assert reader.most_chunks(query) >= len(found)


@pytest.mark.parametrize(
    ("scope", "found"),
    [
        (EVERYWHERE, {1, 2, 3, 4}),
        (Scope(layers=[Layer.DETAIL], from_ms=0, to_ms=2**53), {4}),
        (Scope(layers=list(Layer), from_ms=20, to_ms=30), {2, 3}),
        (Scope(layers=list(Layer), from_ms=0, to_ms=2**53, projects=[2]), {3, 4}),
        (Scope(layers=list(Layer), from_ms=0, to_ms=2**53, sessions=[1, 4]), {1, 4}),
        (Scope(layers=[Layer.CONVERSATION], from_ms=20, to_ms=2**53, projects=[1], sessions=[2, 3]), {2}),
    ],
)
def test_only_what_is_in_scope_is_a_candidate(tmp_path: Path, live: IndexWriter, scope: Scope, found: set[int]) -> None:
    for n in range(1, 5):
        live.put(document(n, "words", session=n, project=1 + (n > 2), layer=int(n == 4), at_ms=n * 10))
    live.commit()
    assert chunks_named(IndexReader(tmp_path), AnyTerm(("words",)), scope) == found


def test_thousands_of_candidates_are_all_named(tmp_path: Path, live: IndexWriter) -> None:
    for chunk in range(9_000):
        live.put(document(chunk, f"words {chunk}"))
    live.commit()
    assert chunks_named(IndexReader(tmp_path), AnyTerm(("words",)), EVERYWHERE) == set(range(9_000))


def test_a_chunk_in_both_folders_is_one_candidate(tmp_path: Path, live: IndexWriter) -> None:
    with closing(IndexWriter(tmp_path / LANES[BULK], BULK)) as bulk:
        for writer in (bulk, live):
            writer.put(document(1, "words"))
            writer.commit()
        assert chunks_named(IndexReader(tmp_path), AnyTerm(("words",)), EVERYWHERE) == {1}


def test_a_folder_takes_one_writer_at_a_time(tmp_path: Path, live: IndexWriter) -> None:
    with pytest.raises(Unavailable, match="cannot be written"):
        IndexWriter(tmp_path / LANES[LIVE], LIVE)


def test_segments_stay_few_over_a_thousand_live_commits(tmp_path: Path, live: IndexWriter) -> None:
    for n in range(1_000):
        live.put(document(n % 100, f"words {n}"))
        live.commit()
    reader = IndexReader(tmp_path)
    assert reader.documents() == 100
    assert reader.segments() < 30


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_the_first_candidates_are_the_beginning_of_all_of_them_in_the_order_of_answers(
    tmp_path: Path, live: IndexWriter, order: Order
) -> None:
    random = Random(1)
    with closing(IndexWriter(tmp_path / LANES[BULK], BULK)) as bulk:
        for chunk in range(200):
            words = random.choice(["words", "words words", "others"])
            at_ms = random.choice([3, 4, 5, random.randrange(40)])  # many begin at the same time
            random.choice([bulk, live]).put(document(chunk, words, session=chunk % 7, at_ms=at_ms))
        bulk.commit()
    live.commit()
    reader = IndexReader(tmp_path)
    for words in ("words", "others"):
        every = reader.candidates(AnyTerm((words,)), EVERYWHERE)
        for least in (1, 2, 5, 30, 500):
            found, cut = reader.first_candidates(AnyTerm((words,)), EVERYWHERE, order, least)
            is_within = {key: cut is None or (key[0] > cut if order == "newest" else key[0] < cut) for key in every}
            assert {key: sorted(chunks) for key, chunks in found.items()} == {
                key: sorted(chunks) for key, chunks in every.items() if is_within[key]
            }
            assert found, "there is no way on without any"
            assert (cut is None) >= (least == 500)
