"""How much slower searches are on a larger archive: the same queries on both, in turn, in one process."""

from pathlib import Path
from random import Random
from typing import Any

from bench.corpus import corpus_settings, read_manifest
from bench.latency import ask
from bench.queries import UNSELECTIVE, drawn_queries
from bench.results import percentiles
from search_api.archive import Archive

ROUNDS = 3


def measure(
    small: tuple[Path, Path], large: tuple[Path, Path], *, queries: int = 30, rounds: int = ROUNDS
) -> dict[str, Any]:
    """Each archive is given by its corpus and data directory; queries are drawn from the smaller one."""
    classes = drawn_queries(*small, count=queries)
    archives = [Archive.open(corpus_settings(*place)) for place in (small, large)]
    random = Random(1)
    asked = [(name, query) for name, some in classes.items() for query in some]
    took_ms: list[dict[str, list[float]]] = [{name: [] for name in classes} for _ in archives]
    try:
        for number in range(rounds):
            random.shuffle(asked)
            for name, query in asked:
                if name == UNSELECTIVE and number > 0:
                    continue
                for archive, took in zip(archives, took_ms, strict=True):
                    took[name].append(ask(archive, query, full=number % 2 == 1)[0])
    finally:
        for archive in archives:
            archive.close()
    by_class: dict[str, dict[str, Any]] = {}
    for name in classes:
        small_ms, large_ms = percentiles(took_ms[0][name]), percentiles(took_ms[1][name])
        ratio = round(large_ms["p95"] / small_ms["p95"], 2)
        by_class[name] = {"small_ms": small_ms, "large_ms": large_ms, "p95_ratio": ratio}
    return {
        "small_turns": read_manifest(small[0]).turns,
        "large_turns": read_manifest(large[0]).turns,
        "by_class": by_class,
        "largest_p95_ratio": max(one["p95_ratio"] for name, one in by_class.items() if name != UNSELECTIVE),
    }
