import threading
from contextlib import closing
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.vocabulary import Fits, VocabularyReader, VocabularyWriter
from schemas.errors import Unavailable

WORDS = ["parser", "parsers", "sparse", "naïve", "straße", "错", "误", "𐐨𐐩", "é", "a", "ab", "b"]
EVERY = 10**6
WORDS_FILE = "live.words"


def write(folder: Path, *words: str) -> None:
    with closing(VocabularyWriter(folder, "live")) as writer:
        writer.add(set(words), set())
        writer.flush()


def find(folder: Path, fragment: str, fits: Fits = Fits.ANYWHERE, limit: int = EVERY) -> list[str] | None:
    with closing(VocabularyReader(folder)) as reader:
        return reader.find(fragment, fits, limit)


@given(st.lists(st.text("abé错", min_size=1, max_size=5)), st.text("abé错", min_size=1, max_size=3))
def test_a_fragment_is_found_in_just_the_words_that_have_it(words: list[str], fragment: str) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, *words)
        known = sorted(set(words))
        assert find(folder, fragment) == [word for word in known if fragment in word]
        assert find(folder, fragment, Fits.AT_START) == [word for word in known if word.startswith(fragment)]
        assert find(folder, fragment, Fits.AT_END) == [word for word in known if word.endswith(fragment)]


def test_more_words_than_the_limit_are_none(tmp_path: Path) -> None:
    write(tmp_path, "ab", "abc", "xab")
    with closing(VocabularyReader(tmp_path)) as reader:
        assert reader.find("ab", Fits.ANYWHERE, 3) == ["ab", "abc", "xab"]
        assert reader.find("ab", Fits.ANYWHERE, 2) is None
        assert reader.find("ab", Fits.ANYWHERE, 3) == ["ab", "abc", "xab"]


def test_a_word_is_written_once_by_a_writer(tmp_path: Path) -> None:
    with closing(VocabularyWriter(tmp_path, "live")) as writer:
        for _ in range(3):
            writer.add({"parser", "span"}, {"erra"})
            writer.flush()
    assert (tmp_path / WORDS_FILE).read_bytes() == b"\nparser\nspan\n"
    assert (tmp_path / "live.joints").read_bytes() == b"\nerra\n"


def test_what_several_writers_wrote_is_found_together(tmp_path: Path) -> None:
    for name, words, joints in (("bulk", {"parser", "span"}, {"nrof", "ab"}), ("live", {"sparse", "span"}, {"ofan"})):
        with closing(VocabularyWriter(tmp_path, name)) as writer:
            writer.add(words, joints)
            writer.flush()
    with closing(VocabularyReader(tmp_path)) as reader:
        assert reader.find("spa", Fits.ANYWHERE, EVERY) == ["span", "sparse"]
        assert reader.find("spa", Fits.ANYWHERE, 1) is None
        assert reader.find_joints("of", EVERY) == ["nrof", "ofan"]
        assert reader.find_joints("of", 1) is None


def test_words_are_found_once_they_are_flushed_by_a_reader_that_was_open_before(tmp_path: Path) -> None:
    with closing(VocabularyWriter(tmp_path, "live")) as writer, closing(VocabularyReader(tmp_path)) as reader:
        assert reader.find("parser", Fits.ANYWHERE, EVERY) == []
        writer.add({"parser"}, set())
        writer.flush()
        assert reader.find("parser", Fits.ANYWHERE, EVERY) == ["parser"]
        writer.add({"parsers"}, set())
        writer.flush()
        assert reader.find("parser", Fits.ANYWHERE, EVERY) == ["parser", "parsers"]


def test_a_file_that_a_crash_cut_anywhere_keeps_its_whole_words_and_takes_new_ones(tmp_path: Path) -> None:
    write(tmp_path / "whole", *WORDS)
    whole = (tmp_path / "whole" / WORDS_FILE).read_bytes()
    for cut in range(len(whole) + 1):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / WORDS_FILE).write_bytes(whole[:cut])
        complete = whole[: whole.rfind(b"\n", 0, cut) + 1].decode().split()
        with closing(VocabularyReader(folder)) as reader:
            for word in complete:
                assert word in (reader.find(word, Fits.ANYWHERE, EVERY) or ())
        write(folder, "new", "newer")
        for word in [*complete, "new", "newer"]:
            for fits in Fits:
                assert word in (find(folder, word, fits) or ())


def test_a_reader_never_sees_half_a_word_of_what_is_being_written(tmp_path: Path) -> None:
    random = Random(3)
    batches = [[f"wörd{random.randbytes(8).hex()}" for _ in range(50)] for _ in range(120)]
    words = {word for batch in batches for word in batch}
    flushed = 0

    def write_all() -> None:
        nonlocal flushed
        with closing(VocabularyWriter(tmp_path, "live")) as writer:
            for batch in batches:
                writer.add(set(batch), set())
                writer.flush()
                flushed += 1

    VocabularyWriter(tmp_path, "live").close()
    thread = threading.Thread(target=write_all)
    thread.start()
    with closing(VocabularyReader(tmp_path)) as reader:
        is_running = True
        while is_running:
            is_running, count = thread.is_alive(), flushed
            found = reader.find("ör", Fits.ANYWHERE, EVERY)
            assert found is not None
            assert words.issuperset(found)
            assert {word for batch in batches[:count] for word in batch}.issubset(found)
    thread.join()


def test_a_vocabulary_that_lost_a_file_or_words_is_unavailable(tmp_path: Path) -> None:
    write(tmp_path, *WORDS)
    size = (tmp_path / WORDS_FILE).stat().st_size
    with closing(VocabularyReader(tmp_path)) as reader:
        reader.check({WORDS_FILE: size})
        for sizes in ({WORDS_FILE: size + 1}, {WORDS_FILE: size, "bulk.words": 1}):
            with pytest.raises(Unavailable, match="turndex index"):
                reader.check(sizes)


def test_a_vocabulary_that_is_missing_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="turndex index"):
        find(tmp_path, "parser")
