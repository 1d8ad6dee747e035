"""The dictionary that bodies are compressed with: trained on invented samples, measured on what it has not seen."""

import json
import re
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import click
import zstandard

from bench.results import FOLDER, record
from indexer.store import compression
from indexer.store.chunks import pack, row_of
from schemas.items import Item, Kind, Layer, Status

SAMPLES = compression.DICTIONARIES / "samples"
SIZE = 32 << 10
"""Larger ones leave less of code and prose (48 KiB: 2 %), but more of what a benchmark archive makes up (1 %)."""
EVERY_HELD_OUT = 5
"""One turn in so many is kept apart from the training, to measure on."""
STORE_BODIES = 4_000
"""About how many bodies of a store are measured."""
PASSES = 3
"""Times are the best of so many."""

_LEVELS = (3, 5, 6)
"""To compare the parameters of `compression` with."""
_YEARS_MS = (1_720_000_000_000, 1_880_000_000_000)
"""Turns are dated from 2024 to 2029: all these times begin with the digits 17 or 18."""
_LONGEST_MS = 90_000
"""From one item to the next."""
_MARK = re.compile(r"@ (user|agent|thinking|notice|tool|process|input|output)(?: (.*))?")

Turn: TypeAlias = list[Item]


@dataclass(frozen=True, slots=True)
class Cost:
    """What compressing some bodies one by one comes to."""

    ratio: float
    """Compressed bytes over bytes."""
    compress_us: float
    decompress_us: float
    """Microseconds of processor time a body."""


@click.command("dictionary")
@click.option("--store", type=click.Path(path_type=Path, exists=True), help="Measure on the bodies of this one, too.")
@click.option("--size", "sizes", multiple=True, default=[SIZE], show_default=True, help="In bytes; may be repeated.")
@click.option("--out", type=click.Path(path_type=Path), help="Write one of the first size, trained on all samples.")
@click.option("--id", "id_", default=compression.CURRENT + 1, show_default=True, help="Of the one that is written.")
@click.option("--results", type=click.Path(path_type=Path), default=FOLDER, help="Where results are kept.")
def command(store: Path | None, sizes: Sequence[int], out: Path | None, id_: int, results: Path) -> None:
    """Train dictionaries for the store on the samples, and measure them on what they have not seen."""
    result = measure(store, sizes)
    click.echo(json.dumps(result, indent=2))
    click.echo(f"kept as {record('dictionary', result, results)}")
    if out is not None:
        out.write_bytes(build(sizes[0], id_))


def read_samples(folder: Path = SAMPLES) -> list[Turn]:
    """The turns of all sample files; the README beside the dictionary describes their form."""
    turns: list[Turn] = []
    for path in sorted(folder.glob("*.txt")):
        for kind, rest, text in _sections(path.read_text(encoding="utf-8")):
            if kind == "user" or not turns:
                turns.append([])
            _add(turns[-1], kind, rest, text)
    return turns


def bodies_of(turns: Sequence[Turn], random: Random) -> list[bytes]:
    """Turns as the store packs them, before compression."""
    bodies = []
    for turn in turns:
        timed = _timed(turn, random)
        for layer in Layer:
            rows = [row for index, item in enumerate(timed) if (row := row_of(index, item, layer))]
            bodies += [packed.json for packed in pack(rows)]
    return bodies


def train(bodies: Sequence[bytes], size: int, id_: int) -> bytes:
    """The same bodies make the same dictionary."""
    return zstandard.train_dictionary(size, list(bodies), dict_id=id_, level=3).as_bytes()


def build(size: int, id_: int) -> bytes:
    """A dictionary of all samples, as it is released."""
    return train(bodies_of(read_samples(), Random(1)), size, id_)


def measure(store: Path | None, sizes: Sequence[int]) -> dict[str, Any]:
    """Compare dictionaries of some sizes with none, on held-out samples and on a store's bodies."""
    turns = read_samples()
    held_out = turns[::EVERY_HELD_OUT]
    seen = [turn for number, turn in enumerate(turns) if number % EVERY_HELD_OUT]
    training = bodies_of(seen, Random(1))
    subjects = {"held-out samples": bodies_of(held_out, Random(2))}
    if store is not None:
        subjects["store"] = bodies_in(store)
    roads: dict[str, tuple[zstandard.ZstdCompressor, zstandard.ZstdDecompressor]] = {
        "none, level 3": (zstandard.ZstdCompressor(level=3), zstandard.ZstdDecompressor())
    }
    for size in sizes:
        dictionary = train(training, size, compression.CURRENT)
        roads[f"{size >> 10} KiB"] = _codecs(dictionary)
        for level in _LEVELS:
            roads[f"{size >> 10} KiB, level {level}"] = _codecs(dictionary, level)
    return {
        "bodies": {name: len(bodies) for name, bodies in subjects.items()},
        "costs": {
            road: {name: _rounded(cost(bodies, *codecs)) for name, bodies in subjects.items()}
            for road, codecs in roads.items()
        },
    }


def bodies_in(store: Path) -> list[bytes]:
    """Bodies from all over a store, before compression."""
    with closing(sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro", uri=True)) as db:
        every = max(1, db.execute("SELECT count(*) FROM bodies").fetchone()[0] // STORE_BODIES)
        query = "SELECT body FROM bodies WHERE chunk % ? = 0"
        return [compression.decompress(body) for (body,) in db.execute(query, (every,))]


def cost(
    bodies: Sequence[bytes], compressor: zstandard.ZstdCompressor, decompressor: zstandard.ZstdDecompressor
) -> Cost:
    compressing, decompressing = [], []
    frames: list[bytes] = []
    for _ in range(PASSES):
        started = time.thread_time()
        frames = [compressor.compress(body) for body in bodies]
        between = time.thread_time()
        for frame in frames:
            decompressor.decompress(frame)
        compressing.append(between - started)
        decompressing.append(time.thread_time() - between)
    each = 1e6 / len(bodies)
    ratio = sum(map(len, frames)) / sum(map(len, bodies))
    return Cost(ratio, min(compressing) * each, min(decompressing) * each)


def _codecs(dictionary: bytes, level: int | None = None) -> tuple[zstandard.ZstdCompressor, zstandard.ZstdDecompressor]:
    """With the parameters that bodies are compressed with, or those of a level."""
    if level is None:
        compressor = compression.compressor_for(compression.digest(dictionary))
    else:
        digested = zstandard.ZstdCompressionDict(dictionary)
        digested.precompute_compress(level=level)
        compressor = zstandard.ZstdCompressor(level=level, dict_data=digested)
    return compressor, zstandard.ZstdDecompressor(dict_data=zstandard.ZstdCompressionDict(dictionary))


def _rounded(cost: Cost) -> dict[str, float]:
    return {name: round(value, 4 if name == "ratio" else 1) for name, value in asdict(cost).items()}


def _sections(text: str) -> list[tuple[str, str, str]]:
    """(kind, rest of its line, text below it) of each marked section."""
    sections: list[tuple[str, str, list[str]]] = []
    for line in text.splitlines():
        if mark := _MARK.fullmatch(line):
            sections.append((mark[1], mark[2] or "", []))
        else:
            sections[-1][2].append(line)
    return [(kind, rest, "\n".join(lines)) for kind, rest, lines in sections]


def _add(turn: Turn, kind: str, rest: str, text: str) -> None:
    if kind == "input":
        turn[-1] = replace(turn[-1], input=text)
    elif kind == "output":
        turn[-1] = replace(turn[-1], output=text)
    elif kind == Kind.TOOL:
        label, _, status = rest.rpartition(" -- ")
        turn.append(Item(Kind.TOOL, label=label, status=Status(status)))
    elif kind == Kind.PROCESS:
        turn.append(Item(Kind.PROCESS, command=rest, output=text))
    else:
        turn.append(Item(Kind(kind), text=text))


def _timed(turn: Turn, random: Random) -> Turn:
    """Times as transcripts have them: rising, and of some tool calls unknown."""
    at_ms = random.randrange(*_YEARS_MS)
    timed = []
    for item in turn:
        at_ms += random.randrange(_LONGEST_MS)
        is_known = item.kind is not Kind.TOOL or random.random() < 0.5
        timed.append(replace(item, at_ms=at_ms) if is_known else item)
    return timed
