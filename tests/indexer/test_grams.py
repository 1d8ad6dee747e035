"""A list of words long enough to have grams, against a look at every word."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from indexer.grams import GROUP_BYTES, RECORD_BYTES
from indexer.vocabulary import Fits, VocabularyReader, VocabularyWriter

EVERY = 10**7
LETTERS = "etaoinshrdlucmfwypvbgkjqxz0123456789éßжшел"
WORDS_FILE, GRAMS_FILE = "bulk.words", "bulk.words.grams"

FITTING: dict[Fits, Callable[[str, str], bool]] = {
    Fits.ANYWHERE: lambda word, fragment: fragment in word,
    Fits.AT_START: str.startswith,
    Fits.AT_END: str.endswith,
}


def drawn(random: Random, count: int) -> set[str]:
    lengths = random.choices([1, 2, 3, 5, 8, 13, 32, 64], [1, 2, 4, 8, 8, 4, 2, 1], k=count)
    return {"".join(random.choices(LETTERS, range(len(LETTERS), 0, -1), k=length)) for length in lengths}


def fragments(random: Random, words: list[str], count: int) -> Iterator[str]:
    for word in random.sample(words, count):
        start = random.randrange(len(word))
        yield word[start : random.randint(start + 1, len(word))]
        yield "".join(random.choices(LETTERS, k=random.randint(1, 5)))


def write(folder: Path, batches: list[set[str]]) -> None:
    with closing(VocabularyWriter(folder, "bulk")) as writer:
        for batch in batches:
            writer.add(batch, set())
            writer.flush()


@pytest.fixture(scope="module")
def batches() -> list[set[str]]:
    random = Random(5)
    return [drawn(random, count) for count in (40_000, 500, 150_000, 30_000)]


@pytest.fixture
def folder(tmp_path: Path, batches: list[set[str]]) -> Path:
    write(tmp_path, batches)
    assert (tmp_path / GRAMS_FILE).stat().st_size >= 2 * RECORD_BYTES
    return tmp_path


def check(folder: Path, batches: list[set[str]], count: int = 3) -> None:
    words = sorted(set[str]().union(*batches))
    with closing(VocabularyReader(folder)) as reader:
        for fragment in fragments(Random(9), words, count):
            for fits, is_fitting in FITTING.items():
                expected = [word for word in words if is_fitting(word, fragment)]
                assert reader.find(fragment, fits, EVERY) == expected, (fragment, fits)


def test_fragments_are_found_in_just_the_words_that_have_them(folder: Path, batches: list[set[str]]) -> None:
    check(folder, batches, 25)


def test_grams_that_a_crash_cut_short_or_left_unwritten_are_not_believed_and_written_again(
    folder: Path, batches: list[set[str]]
) -> None:
    grams = folder / GRAMS_FILE
    whole = grams.read_bytes()
    for torn in (b"", whole[:-1], whole[: RECORD_BYTES + 9], whole[:-RECORD_BYTES] + bytes(RECORD_BYTES)):
        grams.write_bytes(torn)
        check(folder, batches)
        VocabularyWriter(folder, "bulk").close()
        assert grams.read_bytes() == whole


def test_grams_that_were_damaged_are_made_anew_by_the_next_writer(folder: Path, batches: list[set[str]]) -> None:
    grams = folder / GRAMS_FILE
    whole = grams.read_bytes()
    grams.write_bytes(bytes(RECORD_BYTES) + whole[RECORD_BYTES:])
    VocabularyWriter(folder, "bulk").close()
    assert grams.read_bytes() == whole
    check(folder, batches)


def test_a_list_without_grams_is_searched_and_gets_them(folder: Path, batches: list[set[str]]) -> None:
    grams = folder / GRAMS_FILE
    whole = grams.read_bytes()
    grams.unlink()
    check(folder, batches)
    VocabularyWriter(folder, "bulk").close()
    assert grams.read_bytes() == whole


def test_grams_of_a_longer_list_are_not_those_of_this_one(folder: Path) -> None:
    (folder / WORDS_FILE).unlink()
    others = [drawn(Random(6), 60_000)]
    write(folder, others)
    assert (folder / WORDS_FILE).stat().st_size < 2 * GROUP_BYTES
    check(folder, others)


def test_a_reader_that_was_open_before_finds_what_comes_with_a_new_group(
    tmp_path: Path, batches: list[set[str]]
) -> None:
    with closing(VocabularyWriter(tmp_path, "bulk")) as writer, closing(VocabularyReader(tmp_path)) as reader:
        known: set[str] = set()
        for batch in batches:
            writer.add(batch, set())
            writer.flush()
            known |= batch
            assert reader.find("жш", Fits.ANYWHERE, EVERY) == sorted(word for word in known if "жш" in word)
