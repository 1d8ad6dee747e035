"""How long a search takes in this process, by what is asked for: warm, and for the first time with nothing cached."""

import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from bench.corpus import corpus_settings, read_manifest
from bench.processes import drop_from_page_cache
from bench.queries import UNSELECTIVE, Classes, Query, drawn_queries, fixed_queries
from bench.results import percentiles
from schemas.errors import Timeout
from schemas.requests import SearchRequest
from schemas.settings import Settings
from search_api.archive import Archive
from search_api.caller import Caller

ROUNDS = 3
"""How often each query is asked, all classes shuffled, so that no cache of the last few queries helps."""

FIXED_ROUNDS = 10

COLD = (
    "a process of its own for each search, which opens the archive; before that the system was asked to drop"
    " the pages of all files of the data directory"
)


def measure(corpus: Path, data_dir: Path, *, queries: int = 40, cold_queries: int = 3) -> dict[str, Any]:
    """Ask an archive that was indexed up to `queries` different queries of each class; milliseconds by class."""
    manifest = read_manifest(corpus)
    settings = corpus_settings(corpus, data_dir)
    drawn = drawn_queries(corpus, data_dir, count=queries)
    archive = Archive.open(settings)
    try:
        result = {
            "turns": manifest.turns,
            "search_ms": searches(archive, drawn, full=False),
            "full_search_ms": searches(archive, drawn, full=True),
            "fixed_search_ms": searches(archive, fixed_queries(manifest.hash_prefix), full=False, rounds=FIXED_ROUNDS),
        }
    finally:
        archive.close()
    asked_cold = {name: some[:cold_queries] for name, some in drawn.items() if cold_queries}
    cold_ms = {name: cold_searches(settings, data_dir, some) for name, some in asked_cold.items()}
    return {**result, "cold": COLD, "cold_search_ms": cold_ms}


def searches(archive: Archive, classes: Classes, *, full: bool, rounds: int = ROUNDS) -> dict[str, Any]:
    """Every query of every class in random order, some from the oldest end; by class."""
    random = Random(1)
    asked = [(name, query) for name, queries in classes.items() for query in queries]
    took_ms: dict[str, list[float]] = {name: [] for name in classes}
    hits = dict.fromkeys(classes, 0)
    late = dict.fromkeys(classes, 0)
    slowest = dict.fromkeys(classes, (0.0, ""))
    for number in range(rounds):
        random.shuffle(asked)
        for name, query in asked:
            if name == UNSELECTIVE and number > 0:
                continue
            milliseconds, found = ask(archive, query, full=full, order="oldest" if number % 4 == 2 else None)
            took_ms[name].append(milliseconds)
            slowest[name] = max(slowest[name], (milliseconds, query.text))
            hits[name] += found or 0
            late[name] += found is None
    return {
        name: {
            "queries": len(classes[name]),
            **percentiles(took_ms[name]),
            "hits": round(hits[name] / len(took_ms[name]), 1),
            "slowest": slowest[name][1],
            **({"over_the_time_limit": late[name]} if late[name] else {}),
        }
        for name in classes
    }


def ask(archive: Archive, query: Query, *, full: bool, order: str | None = None) -> tuple[float, int | None]:
    """Milliseconds that a search takes, and its hits; None where the time limit ended it without an answer."""
    order = None if query.mode == "words" else order
    request = SearchRequest.read({**query.arguments(full=full), "order": order})
    started = time.perf_counter()
    try:
        found: int | None = len(archive.search(request, Caller()).hits)
    except Timeout:
        found = None
    return (time.perf_counter() - started) * 1000, found


def cold_searches(settings: Settings, data_dir: Path, queries: list[Query]) -> dict[str, float]:
    """The median and the longest of first searches, the opening of the archive apart."""
    context = multiprocessing.get_context("spawn")
    took = []
    for query in queries:
        receiver, sender = context.Pipe(duplex=False)
        drop_from_page_cache(data_dir)
        process = context.Process(target=_first_search, args=(settings, query, sender))
        process.start()
        sender.close()
        took.append(receiver.recv())
        process.join()
    opened_ms, searched_ms = (sorted(one) for one in zip(*took, strict=True))
    middle = len(queries) // 2
    return {
        "open_p50": round(opened_ms[middle], 3),
        "p50": round(searched_ms[middle], 3),
        "max": round(searched_ms[-1], 3),
    }


def _first_search(settings: Settings, query: Query, sender: Connection) -> None:
    started = time.perf_counter()
    archive = Archive.open(settings)
    opened_ms = (time.perf_counter() - started) * 1000
    searched_ms, _ = ask(archive, query, full=False)
    sender.send((opened_ms, searched_ms))
    sender.close()
    archive.close()
