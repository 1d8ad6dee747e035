"""What memory a server needs: idle, and after many mixed searches."""

from pathlib import Path
from typing import Any

from bench.asking import ask_over_http
from bench.corpus import corpus_flags, read_manifest
from bench.processes import memory_of
from bench.queries import drawn_queries, mixed
from bench.serving import serving, write_settings
from bench.throughput import CONNECTIONS

SEARCHES = 10_000

PARTS = (
    "MB; anonymous: RssAnon, the server's own; mapped: RssFile, pages of files that the system may drop; peak: VmHWM"
)


def measure(corpus: Path, data_dir: Path, *, searches: int = SEARCHES, queries: int = 40) -> dict[str, Any]:
    asked_for = mixed(drawn_queries(corpus, data_dir, count=queries))
    settings = write_settings(data_dir.with_suffix(".toml"), corpus_flags(corpus, data_dir))
    with serving(settings) as server:
        server.wait_until_ready()
        idle = memory_of(server.pid)
        asked = ask_over_http(server, asked_for, connections=CONNECTIONS, searches=searches)
        busy = memory_of(server.pid)
    return {
        "turns": read_manifest(corpus).turns,
        "searches": len(asked.took_ms),
        "errors": asked.errors,
        "error_examples": asked.examples,
        "parts": PARTS,
        "idle_mb": _megabytes(idle),
        "after_searches_mb": _megabytes(busy),
    }


def _megabytes(memory: dict[str, int]) -> dict[str, float]:
    return {name: round(size / 1e6, 1) for name, size in memory.items()}
