"""A query demands of a text only what every text with that query has: a true match is never left out."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.index import ChunkDocument, IndexReader, IndexWriter, Scope
from indexer.lanes import LANES
from indexer.vocabulary import VocabularyReader, VocabularyWriter
from indexer.words import GAP, STRIDE_CHARS, WINDOW_CHARS, QueryJoint, query_joints, terms_of, windows
from schemas.folding import fold
from schemas.items import Kind, Layer
from schemas.texts import trimmed, without_surrogates
from search_api.plan import MANY_WORDS, plan_text
from tests.properties.random_texts import WORDS, random_case, random_run, random_text


def terms_in(folded: str) -> list[str]:
    return terms_of(folded).text.split()


DOCUMENTS = 120
EVERYWHERE = Scope(layers=list(Layer), from_ms=0, to_ms=2**53)


@dataclass
class Indexed:
    texts: list[str]
    index: IndexReader
    vocabulary: VocabularyReader

    def candidates(self, query: str, most_words: int) -> set[int]:
        plan = plan_text(query, self.vocabulary, self.index.frequency, most_words)
        return {chunk for chunks in self.index.candidates(plan.query, EVERYWHERE).values() for chunk in chunks}


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexed]:
    """A real index over random texts, by number; half of them in each folder."""
    folder = tmp_path_factory.mktemp("index")
    random = Random(11)
    texts = [_random_document(random) for _ in range(DOCUMENTS)]
    for lane, name in enumerate(LANES):
        with (
            closing(VocabularyWriter(folder / "words", name)) as vocabulary,
            closing(IndexWriter(folder / name, lane)) as writer,
        ):
            for number in range(lane, DOCUMENTS, 2):
                terms = terms_of(fold(texts[number]))
                vocabulary.add(terms.distinct, terms.joints)
                writer.put(ChunkDocument(number, 1, 1, 1, Layer.CONVERSATION, number, [Kind.USER], terms))
            vocabulary.flush()
            writer.commit()
    with closing(VocabularyReader(folder / "words")) as words:
        yield Indexed(texts, IndexReader(folder), words)


def _random_document(random: Random) -> str:
    text = random_text(random, words=random.choice([5, 40, 150]))
    if random.random() < 0.4:
        run = random_run(random, random.choice([40, 65, 96, 97, 128, 129, 200, 1000, 70_000]))
        text += random.choice(["", " ", "(", "\n"]) + run + random.choice(["", " ", ")", "\n", "x y"])
        text += random_text(random, words=10)
    return without_surrogates(text)


def matching(texts: list[str], query: str) -> set[int]:
    needle = fold(query)
    return {number for number, text in enumerate(texts) if any(needle in fold(line) for line in text.split("\n"))}


@settings(max_examples=500)
@given(seed=st.integers(0, 2**32), most_words=st.sampled_from([2, 256, MANY_WORDS]))
def test_every_text_that_has_a_query_is_a_candidate(indexed: Indexed, seed: int, most_words: int) -> None:
    query = _random_query(Random(seed), indexed.texts)
    if query:
        assert matching(indexed.texts, query) <= indexed.candidates(query, most_words), query


def _random_query(random: Random, texts: list[str]) -> str:
    """Mostly a piece of a line, of any length and from anywhere in it, in any case; blank where the line was."""
    if random.random() < 0.1:
        return trimmed(random_case(random, random.choice(WORDS)))
    line = random.choice(random.choice(texts).split("\n"))
    start = random.randint(0, max(0, len(line) - 1))
    if len(line) > 60 and random.random() < 0.3:
        start = max(0, len(line) - random.randint(1, 150))
    length = random.choice([1, 1, 2, 2, 3, 5, 8, 13, 31, 32, 33, 63, 64, 65, 66, 97, 150, 4000])
    piece = line[start : start + length]
    return trimmed(without_surrogates(random_case(random, piece) if random.random() < 0.3 else piece))


def test_the_index_tells_most_texts_apart(indexed: Indexed) -> None:
    for query in ("9f86d081884c", "src/parser.rs:88", "übergrößenträger", "错误处理", "C:\\temp"):
        found = indexed.candidates(query, 256)
        assert matching(indexed.texts, query) <= found
        assert len(found) < DOCUMENTS / 2, query


@given(length=st.integers(1, 400))
def test_any_32_characters_in_a_row_lie_in_one_window(length: int) -> None:
    word = "".join(chr(0x4000 + place) for place in range(length))
    parts = windows(word)
    assert all(len(part) <= WINDOW_CHARS for part in parts)
    for start in range(max(1, length - STRIDE_CHARS + 1)):
        assert any(word[start : start + STRIDE_CHARS] in part for part in parts)
    assert parts[0] == word[:WINDOW_CHARS]
    assert parts[-1].endswith(word[-STRIDE_CHARS:])


@given(
    st.text(st.characters(max_codepoint=127), max_size=300)
    | st.text(st.sampled_from("aB1_ .\t\n\x00\x1c-"), max_size=200)
)
def test_ascii_is_cut_by_the_same_rules_as_all_else(text: str) -> None:
    folded = fold(text)
    assert terms_in(folded) == terms_in(f"{folded}\nω")[:-1]


@given(st.text(st.sampled_from("aB1_ .\t\n\x00\x1cé中ก-→") | st.characters(exclude_categories=["Cs"]), max_size=200))
def test_the_distinct_terms_are_those_of_the_text(text: str) -> None:
    folded = fold(text * 2)
    assert terms_of(folded).distinct == frozenset(terms_in(folded))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("foo.bar(baz)", "foo . bar ( baz )"),
        ("snake_case", "snake _ case"),
        ("中文 搜索", "中 文 搜 索"),
        ("a中b", "a 中 b"),
        ("e\u0301te\u0301", "e \u0301 te \u0301"),
        ("x -> {}", "x - > { }"),
        ("🎉🎉", "🎉 🎉"),
        ("a  b\tc\xa0d e", f"a {GAP} b {GAP} c {GAP} d e"),
        ("  a \r\n\tb  ", "a b"),
        ("a\x00b", "a \x00 b"),
    ],
)
def test_texts_are_cut_into_terms(text: str, terms: str) -> None:
    assert terms_in(fold(text)) == terms.split()


@pytest.mark.parametrize(
    ("text", "joints"),
    [
        ("a span is off", {"asp", "anis", "isof"}),
        ("错 ab Éc\nde", {"abéc"}),
        ("ab  cd", set()),
        ("ab. cd", set()),
        ("x y", {"xy"}),
        ("src/parser.rs a_b", {"rc/pa", "er.rs", "rsa", "a_b"}),
        ("ab🎉cd", {"ab🎉cd"}),
        ("ab错cd", {"ab错", "错cd"}),
    ],
)
def test_words_with_a_space_between_them_have_a_joint(text: str, joints: set[str]) -> None:
    assert terms_of(fold(text)).joints == joints


@pytest.mark.parametrize(
    ("query", "joints"),
    [
        ("ser open ra", [QueryJoint("erop", True), QueryJoint("enra", True)]),
        ("3 k", [QueryJoint("3k", False)]),
        ("a bc", [QueryJoint("abc", False)]),
        ("ab c", [QueryJoint("abc", False)]),
        ("is a b c off", [QueryJoint("isa", True), QueryJoint("cof", True)]),
        ("错 ab", []),
        ("(ab cd", [QueryJoint("abcd", True)]),
        ("or/ch", [QueryJoint("or/ch", True)]),
        ("foo.bar.b", [QueryJoint("oo.ba", True), QueryJoint("ar.b", False)]),
        ("foo.bar(", [QueryJoint("oo.ba", True)]),
        ("ab错", [QueryJoint("ab错", True)]),
        ("ab", []),
    ],
)
def test_a_query_tells_the_joints_at_its_open_ends(query: str, joints: list[QueryJoint]) -> None:
    assert list(query_joints(fold(query))) == joints


def test_a_word_without_an_end_is_indexed_in_tokens_that_tantivy_takes() -> None:
    assert max(len(term.encode()) for term in terms_of("𐐨" * 200_000).distinct) <= 4 * WINDOW_CHARS
