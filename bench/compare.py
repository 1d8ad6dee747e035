"""The same literals asked of turndex and of what people would use instead, over one archive in one run."""

import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import click

from bench import corpus
from bench.claude_corpus import session_uuid, write_claude
from bench.corpus import RARE_WORD, read_manifest
from bench.peers import PEERS
from bench.peers.base import Bench, Found, Peer, Unusable
from bench.peers.own import Turndex
from bench.peers.ripgrep import Ripgrep
from bench.peers.scan import Truth
from bench.peers.sqlite import Trigram
from bench.results import FOLDER, record
from bench.transcripts import transcripts

REPEATS = 7
LITERAL_SECONDS = 10.0
"""A literal that has taken so long is not repeated any more, and no further pages are asked for."""
BUILD_SECONDS = 1800.0
_MB = 1_000_000


def literals(hash_prefix: str) -> dict[str, list[str]]:
    """What is asked for, by class."""
    return {
        "frequent word": ["the", "parser"],
        "rare word": [RARE_WORD],
        "phrase": ["of the", "the parser"],
        "fragment": ["arse", "oke"],
        "path": ["src/parser/", "src/parser/error.rs"],
        "punctuation": ["::new(", "=>", "{"],
        "CJK": ["错", "错误"],
        "emoji": ["🎉", "👍🏽"],
        "hash prefix": [hash_prefix],
        "one character": ["e", "7"],
        "fragment without match": ["qxzj", "zzyzx"],
    }


def measure(archive: Path, scratch: Path, *, only: Collection[str] = (), tell: Callable[[str], None]) -> dict[str, Any]:
    """Compare over an archive that `bench.corpus` made; `only` are the names of tools, none means all."""
    manifest = read_manifest(archive)
    sessions = list(transcripts(archive))
    claude = scratch / "claude"
    claude_bytes = write_claude(sessions, claude)
    truth = Truth(sessions)
    asked = literals(manifest.hash_prefix)
    measured: dict[str, Any] = {}
    built: dict[str, dict[str, float]] = {}
    left_out: dict[str, str] = {}
    # What is held for the comparison is no garbage; a collector that walked through it would be measured too.
    gc.collect()
    gc.freeze()
    for kind in PEERS:
        if only and kind.name not in only:
            continue
        tell(kind.name)
        owner = kind.shares_index_of or kind.name
        own = scratch / owner.replace(" ", "-")
        own.mkdir(exist_ok=True)
        bench = Bench(
            archive=archive,
            claude=claude,
            transcripts=sessions,
            session_of={session_uuid(session.key): session.key for session in sessions},
            scratch=own,
            build_seconds=BUILD_SECONDS,
        )
        try:
            with closing(kind(bench)) as peer:
                version = peer.version()
                if owner not in built:
                    built[owner] = _built(peer, manifest.text_bytes)
                classes = _classes(peer, asked, truth)
        except Unusable as error:
            left_out[kind.name] = str(error)
            tell(f"  left out: {error}")
            continue
        measured[kind.name] = {
            "version": version,
            "unit": kind.unit,
            "timed": kind.timed,
            "asks": "words" if kind.asks_words else "literal",
            "fairness": kind.fairness,
            "index": built[owner] if kind.has_index else None,
            "classes": classes,
        }
    gc.unfreeze()
    return {
        "turns": manifest.turns,
        "sessions": manifest.sessions,
        "text_mb": round(manifest.text_bytes / _MB, 1),
        "raw_mb": round(manifest.raw_bytes / _MB, 1),
        "claude_raw_mb": round(claude_bytes / _MB, 1),
        "repeats": REPEATS,
        "literals": asked,
        "turns_with": {literal: len(truth.turns(literal)) for words in asked.values() for literal in words},
        "tools": measured,
        "left_out": left_out,
        "goals": _goals(measured),
    }


def _built(peer: Peer, text_bytes: int) -> dict[str, float]:
    started = time.perf_counter()
    peer.build()
    seconds = time.perf_counter() - started
    disk_bytes = peer.disk_bytes()
    return {
        "build_seconds": round(seconds, 3),
        "text_mb_per_second": round(text_bytes / _MB / seconds, 2),
        "disk_mb": round(disk_bytes / _MB, 2),
        "disk_per_text": round(disk_bytes / text_bytes, 3),
    }


def _classes(peer: Peer, asked: dict[str, list[str]], truth: Truth) -> dict[str, Any]:
    words = [literal for some in asked.values() for literal in some]
    answers = {literal: _answer(peer, literal, truth) for literal in words}
    took_ms = _times(peer, [literal for literal in words if "refused" not in answers[literal]])
    return {
        name: {
            "p50_ms": _median([one for literal in some for one in took_ms.get(literal, [])]),
            "literals": {
                literal: {"p50_ms": _median(took_ms.get(literal, [])), **answers[literal]} for literal in some
            },
        }
        for name, some in asked.items()
    }


def _answer(peer: Peer, literal: str, truth: Truth) -> dict[str, Any]:
    try:
        return _judged(peer.every(literal, time.monotonic() + LITERAL_SECONDS), literal, truth)
    except Unusable as error:
        return {"refused": str(error)}


def _times(peer: Peer, words: Sequence[str]) -> dict[str, list[float]]:
    """Milliseconds of each search, all literals in random order again and again.

    All were asked for before, so that files and dictionaries are cached, but what a tool may remember of its last
    query helps none.
    """
    random = Random(1)
    took_ms: dict[str, list[float]] = {literal: [] for literal in words}
    for _ in range(REPEATS):
        for literal in random.sample(words, len(words)):
            if sum(took_ms[literal]) < LITERAL_SECONDS * 1000:
                started = time.perf_counter()
                peer.first(literal)
                took_ms[literal].append((time.perf_counter() - started) * 1000)
    return took_ms


def _median(values_ms: Sequence[float]) -> float | None:
    return round(statistics.median(values_ms), 3) if values_ms else None


def _judged(found: Found, literal: str, truth: Truth) -> dict[str, Any]:
    """How many sessions, and turns if it tells them, were found, missed and wrong, against the scan."""
    there = truth.turns(literal)
    if found.since_ms is not None:
        asked_for = found.turns or frozenset()
        there = frozenset(turn for turn in there if truth.turn_ms[turn] > found.since_ms or turn in asked_for)
    sessions = frozenset(session for session, _ in there)
    missed = sessions - found.sessions
    judged: dict[str, Any] = {
        "found": len(found.sessions & sessions),
        "missed": len(missed) if found.is_all else None,
        "missed_messages": len(missed & truth.sessions_by_messages(literal)) if found.is_all else None,
        "wrong": len(found.sessions - sessions),
    }
    if found.turns is not None:
        judged["turns"] = {
            "found": len(found.turns & there),
            "missed": len(there - found.turns),
            "wrong": len(found.turns - there),
        }
    return judged


def _goals(measured: dict[str, Any]) -> dict[str, Any]:
    """The ratios that are aimed for: times faster than rg by class, times the text rate of FTS5 trigram."""
    goals: dict[str, Any] = {}
    own = measured.get(Turndex.name)
    rg, trigram = measured.get(Ripgrep.name), measured.get(Trigram.name)
    if own and rg:
        ratios = {
            name: round(rg["classes"][name]["p50_ms"] / own["classes"][name]["p50_ms"], 1) for name in own["classes"]
        }
        whole = {"median": round(statistics.median(ratios.values()), 1), "least": min(ratios.values())}
        goals["times_faster_than_rg"] = {**whole, **ratios}
    if own and trigram:
        rates = own["index"]["text_mb_per_second"], trigram["index"]["text_mb_per_second"]
        goals["times_text_rate_of_trigram"] = round(rates[0] / rates[1], 2)
    return goals


@click.command()
@click.option("--corpus", "folder", type=click.Path(path_type=Path), help="An archive made before.")
@click.option("--size", type=click.Choice(list(corpus.SIZES)), default="S", show_default=True)
@click.option("--turns", type=click.IntRange(1), help="How many, instead of a size.")
@click.option("--seed", default=1, show_default=True, help="Another one makes another archive.")
@click.option("--only", multiple=True, type=click.Choice([kind.name for kind in PEERS]), help="A tool; repeatable.")
@click.option("--results", type=click.Path(path_type=Path), default=FOLDER, help="Where results are kept.")
def compare(folder: Path | None, size: str, turns: int | None, seed: int, only: tuple[str, ...], results: Path) -> None:
    """Ask turndex and what people would use instead for the same literals."""
    with tempfile.TemporaryDirectory(prefix="turndex-bench-") as made:
        scratch = Path(made)
        archive = folder or scratch / "corpus"
        if not (archive / "manifest.json").is_file():
            corpus.generate(archive, turns=turns or corpus.SIZES[size], seed=seed)
        result = measure(archive.resolve(), scratch, only=only, tell=lambda line: click.echo(line, err=True))
        click.echo(f"kept as {record('compare', result, results)}")
