"""How many mixed searches a second a server answers over HTTP, asked by a second process on the same machine.

What the same searches take in this process, one after the other, tells how much of that is HTTP.
"""

import time
from pathlib import Path
from typing import Any

from bench.asking import ask_over_http
from bench.corpus import corpus_flags, corpus_settings, read_manifest
from bench.latency import ask
from bench.queries import UNSELECTIVE, Query, drawn_queries, mixed
from bench.results import percentiles
from bench.serving import serving, write_settings
from search_api.archive import Archive

CONNECTIONS = 8
"""As many as the server answers at once by default."""


def measure(
    corpus: Path, data_dir: Path, *, seconds: float = 15, connections: int = CONNECTIONS, queries: int = 40
) -> dict[str, Any]:
    """All classes of the latency benchmark but one, in random order, each as often as the others."""
    asked_for = mixed(drawn_queries(corpus, data_dir, count=queries))
    settings = write_settings(data_dir.with_suffix(".toml"), corpus_flags(corpus, data_dir))
    with serving(settings) as server:
        server.wait_until_ready()
        warm = ask_over_http(server, asked_for, connections=connections, searches=len(asked_for))
        alone = ask_over_http(server, asked_for, connections=1, seconds=seconds / 3)
        asked = ask_over_http(server, asked_for, connections=connections, seconds=seconds)
    archive = Archive.open(corpus_settings(corpus, data_dir))
    try:
        in_process_ms = searches_in_process(archive, asked_for, seconds=seconds / 3)
    finally:
        archive.close()
    return {
        "turns": read_manifest(corpus).turns,
        "different_queries": len(asked_for),
        "left_out": UNSELECTIVE,
        "connections": connections,
        "searches": len(asked.took_ms),
        "searches_per_second": round(len(asked.took_ms) / asked.seconds, 1),
        "errors": warm.errors + alone.errors + asked.errors,
        "error_examples": warm.examples + alone.examples + asked.examples,
        "search_ms": percentiles(asked.took_ms),
        "one_connection": {
            "searches_per_second": round(len(alone.took_ms) / alone.seconds, 1),
            "search_ms": percentiles(alone.took_ms),
        },
        "in_process": {
            "searches_per_second": round(len(in_process_ms) * 1000 / sum(in_process_ms), 1),
            "search_ms": percentiles(in_process_ms),
        },
    }


def searches_in_process(archive: Archive, queries: list[Query], *, seconds: float) -> list[float]:
    """What each of the queries takes, all of them once and as `ask_over_http` asks them, and on for so many seconds."""
    took_ms: list[float] = []
    until = time.monotonic() + seconds
    while not took_ms or time.monotonic() < until:
        took_ms += [ask(archive, query, full=number % 4 == 3)[0] for number, query in enumerate(queries)]
    return took_ms
