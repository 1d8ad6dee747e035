"""How bodies are compressed: each a zstd frame, with a dictionary that ships with the project.

Most bodies are under a kilobyte, too little for repetitions of their own. A dictionary holds what transcripts
have in common, and statistics to begin with. A frame says which dictionary it needs by its id; 0 is none.
"""

import threading
from functools import cache
from pathlib import Path

import zstandard

from schemas.errors import Unavailable

DICTIONARIES = Path(__file__).with_name("dictionary")
"""Holds `<id>.zstd-dictionary` for every id that was ever released: stores need them for ever."""

CURRENT = 1
"""The dictionary of what is compressed from now on."""

# Between zstd's levels, by `python -m bench dictionary` on 2026-11-30: level 3 takes two thirds of the time and leaves
# 2 to 4 % more; level 5 looks for matches of four bytes and leaves 3 to 5 % more; level 6 takes twice the time to leave
# 2 % less.
PARAMETERS = zstandard.ZstdCompressionParameters(
    strategy=zstandard.STRATEGY_GREEDY,
    min_match=5,
    search_log=2,
    hash_log=17,
    chain_log=16,
    window_log=20,
    write_content_size=True,  # what `decompress` makes room by
    write_checksum=False,  # a chunk has a hash of its own
    write_dict_id=True,
)


class _Contexts(threading.local):
    """zstd's contexts, which one thread at a time may use."""

    def __init__(self) -> None:
        self.compressor: zstandard.ZstdCompressor | None = None
        self.decompressors: dict[int, zstandard.ZstdDecompressor] = {}


_contexts = _Contexts()


def compress(data: bytes) -> bytes:
    """One frame."""
    compressor = _contexts.compressor
    if compressor is None:
        compressor = _contexts.compressor = compressor_for(_digested())
    return compressor.compress(data)


def decompress(frame: bytes) -> bytes:
    """What a frame holds, whatever dictionary it was made with.

    Raises:
        Unavailable: this version does not have that dictionary.
    """
    id_ = zstandard.get_frame_parameters(frame).dict_id
    decompressor = _contexts.decompressors.get(id_)
    if decompressor is None:
        dictionary = zstandard.ZstdCompressionDict(dictionary_bytes(id_)) if id_ else None
        decompressor = _contexts.decompressors[id_] = zstandard.ZstdDecompressor(dict_data=dictionary)
    return decompressor.decompress(frame)


def dictionary_bytes(id_: int) -> bytes:
    """A released dictionary.

    Raises:
        Unavailable: there is none of that id.
    """
    try:
        return (DICTIONARIES / f"{id_}.zstd-dictionary").read_bytes()
    except FileNotFoundError:
        raise Unavailable(
            f"the store has text that was compressed with dictionary {id_}, which this version does not have;"
            " use the version that wrote it, or a newer one"
        ) from None


def digest(dictionary: bytes) -> zstandard.ZstdCompressionDict:
    """A dictionary with its tables for compression, which all threads share."""
    digested = zstandard.ZstdCompressionDict(dictionary)
    digested.precompute_compress(compression_params=PARAMETERS)
    return digested


def compressor_for(digested: zstandard.ZstdCompressionDict) -> zstandard.ZstdCompressor:
    return zstandard.ZstdCompressor(dict_data=digested, compression_params=PARAMETERS)


@cache
def _digested() -> zstandard.ZstdCompressionDict:
    return digest(dictionary_bytes(CURRENT))
