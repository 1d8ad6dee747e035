"""How long a search or a read takes in this process, by what is asked for."""

import time
from pathlib import Path
from random import Random
from typing import Any

from bench.corpus import RARE_WORD, corpus_settings, read_manifest
from bench.results import percentiles
from schemas.requests import ReadRequest, SearchRequest, SessionsRequest
from search_api.archive import Archive
from search_api.caller import Caller

ROUNDS = 40
READS = 300


def queries(hash_prefix: str) -> dict[str, list[str]]:
    """What is searched for, by class."""
    return {
        "frequent word": ["the", "parser", "error"],
        "rare word": [RARE_WORD, "commit is"],
        "phrase": ["of the", "the parser", "to the and"],
        "phrase without match": ["of  the", "the  parser", "the\tof"],
        "fragment": ["arse", "rror", "oke"],
        "fragment without match": ["qxzj", "zzyzx", "wqwq"],
        "path": ["src/the/", "src/parser/error.rs", "/home/a/src"],
        "punctuation": ["=>", "::new(", "{", "<("],
        "one character": ["e", "x", "7"],
        "CJK": ["错", "错误", "解析器"],
        "emoji": ["🎉", "👍🏽"],
        "hash prefix": [hash_prefix],
        "long query": ["the of to and a in is it you that for on are with as this be at have from or one had by not"],
        "no word at all": ["}}", "§"],
    }


def measure(corpus: Path, data_dir: Path) -> dict[str, Any]:
    """Ask an archive that was indexed; milliseconds by class, in conversation and in full."""
    manifest = read_manifest(corpus)
    archive = Archive.open(corpus_settings(corpus, data_dir))
    try:
        started = time.perf_counter()
        archive.search(SearchRequest(query="the", project="*"), Caller())
        first_ms = round((time.perf_counter() - started) * 1000, 3)
        return {
            "turns": manifest.turns,
            "first_search_ms": first_ms,
            "search_ms": {
                name: _searches(archive, words, full=False) for name, words in queries(manifest.hash_prefix).items()
            },
            "full_search_ms": {
                name: _searches(archive, words, full=True) for name, words in queries(manifest.hash_prefix).items()
            },
            "read_ms": _reads(archive, full=False),
            "full_read_ms": _reads(archive, full=True),
        }
    finally:
        archive.close()


def _searches(archive: Archive, words: list[str], *, full: bool) -> dict[str, Any]:
    took_ms = []
    hits = 0
    for number in range(ROUNDS):
        order = "oldest" if number % 4 == 3 else "newest"
        for word in words:
            request = SearchRequest.read({"query": word, "full": full, "order": order, "project": "*"})
            started = time.perf_counter()
            answer = archive.search(request, Caller())
            took_ms.append((time.perf_counter() - started) * 1000)
            hits += len(answer.hits)
    return {**percentiles(took_ms), "hits": round(hits / len(took_ms), 1)}


def _reads(archive: Archive, *, full: bool) -> dict[str, Any]:
    """Reads of the last three turns, or of some turn, of sessions anywhere in the archive."""
    random = Random(1)
    sessions = archive.sessions(SessionsRequest(project="*", limit=200), Caller()).sessions
    took_ms = []
    for _ in range(READS):
        session = random.choice(sessions)
        turns = random.choice([None, str(random.randint(1, session.turns))])
        request = ReadRequest(session=session.reference, turns=turns, project="*", full=full, max_chars=24_000)
        started = time.perf_counter()
        archive.read(request, Caller())
        took_ms.append((time.perf_counter() - started) * 1000)
    return percentiles(took_ms)
