from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from indexer.store.compression import CURRENT, DICTIONARIES, compress, decompress, dictionary_bytes
from schemas.errors import Unavailable

RELEASED = {
    1: "00c94d2111b08d9665eb463fee4d53a4ceade6266f3d1a9aa8c3086ac1f25d94",
}
"""Never changed, never removed: stores need them to be read."""

BODY = b'[[0,"user","Why is the build slow? Run the tests again, and read the whole error message.",1732968000000]]'


def test_released_dictionaries_are_there_as_they_were_released() -> None:
    there = {int(path.stem): path for path in DICTIONARIES.glob("*.zstd-dictionary")}
    assert {id_: sha256(path.read_bytes()).hexdigest() for id_, path in there.items()} == RELEASED
    assert {id_: zstandard.ZstdCompressionDict(dictionary_bytes(id_)).dict_id() for id_ in there} == {
        id_: id_ for id_ in RELEASED
    }
    assert max(RELEASED) == CURRENT


@given(st.binary(max_size=3_000))
def test_what_is_compressed_comes_back(data: bytes) -> None:
    assert decompress(compress(data)) == data


def test_a_megabyte_comes_back() -> None:
    data = b"".join(b"[%d] compiled in %d ms\n" % (number, number * 7919 % 997) for number in range(40_000))
    assert decompress(compress(data)) == data


def test_frames_without_a_dictionary_are_read() -> None:
    assert decompress(zstandard.ZstdCompressor(level=3).compress(BODY)) == BODY


@pytest.mark.parametrize("id_", RELEASED)
def test_frames_of_every_released_dictionary_are_read(id_: int) -> None:
    dictionary = zstandard.ZstdCompressionDict(dictionary_bytes(id_))
    assert decompress(zstandard.ZstdCompressor(dict_data=dictionary).compress(BODY)) == BODY


def test_a_frame_names_its_dictionary_and_its_size_and_has_no_checksum() -> None:
    frame = zstandard.get_frame_parameters(compress(BODY))
    assert (frame.dict_id, frame.content_size, frame.has_checksum) == (CURRENT, len(BODY), False)


def test_a_short_body_is_smaller_with_the_dictionary() -> None:
    assert len(compress(BODY)) < 0.7 * len(zstandard.ZstdCompressor(level=3).compress(BODY))


def test_a_frame_of_an_unknown_dictionary_says_what_is_missing() -> None:
    samples: list[bytes | bytearray | memoryview] = [BODY + b"%d" % number for number in range(200)]
    unknown = zstandard.train_dictionary(1_024, samples, dict_id=4_711)
    frame = zstandard.ZstdCompressor(dict_data=unknown).compress(BODY)
    with pytest.raises(Unavailable, match="dictionary 4711"):
        decompress(frame)


def test_threads_compress_and_read_side_by_side() -> None:
    bodies = [BODY * (1 + number % 40) for number in range(400)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda body: decompress(compress(body)), bodies)) == bodies
