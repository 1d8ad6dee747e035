"""How long a first scan takes, what it needs of memory and disk, and how searches fare while it runs."""

import multiprocessing
import tempfile
import time
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.ballast import Written
from bench.corpus import OWN_FORMATS, corpus_settings, read_manifest
from bench.processes import PeakMemory
from bench.results import folder_bytes, percentiles
from indexer.service import index_once
from indexer.store.schema import STORE_FILE
from schemas.errors import Unavailable
from schemas.requests import SearchRequest
from schemas.settings import Settings
from search_api.archive import Archive
from search_api.caller import Caller

SEARCH_EVERY_SECONDS = 0.25
QUERIES = ["the", "arse", "src/", "zymurgy", "错误"]
_MB = 1_000_000


def measure(corpus: Path, data_dir: Path) -> dict[str, Any]:
    """Scan `corpus` into an empty `data_dir` in a process of its own, and search beside it.

    Where the archive has transcripts of other agents, each source is scanned once more by itself, without searches.
    """
    manifest = read_manifest(corpus)
    settings = corpus_settings(corpus, data_dir)
    seconds, memory, took_ms = _scanned(settings, are_searched=True)
    result = {
        "mix": manifest.mix,
        "turns": manifest.turns,
        "sessions": manifest.sessions,
        **_rates(manifest.text_bytes, manifest.raw_bytes, seconds),
        "turns_per_second": round(manifest.turns / seconds),
        **_memory(memory),
        **_disk(settings, data_dir, manifest.text_bytes, manifest.raw_bytes),
        "searches_meanwhile": len(took_ms),
        "search_ms_meanwhile": percentiles(took_ms) if took_ms else None,
    }
    if set(manifest.by_source) <= set(OWN_FORMATS):
        return result
    return result | {"by_source": {name: _alone(corpus, data_dir, name, of) for name, of in manifest.by_source.items()}}


def _alone(corpus: Path, data_dir: Path, source: str, written: Written) -> dict[str, Any]:
    """What a first scan of one source takes."""
    with tempfile.TemporaryDirectory(dir=data_dir.parent, prefix=f"{source}-") as scratch:
        settings = corpus_settings(corpus, Path(scratch, "data"), only=source)
        seconds, memory, _ = _scanned(settings, are_searched=False)
        data_bytes = folder_bytes(settings.data_dir)
    return {
        "sessions": written.sessions,
        "files": written.files,
        **_rates(written.text_bytes, written.raw_bytes, seconds),
        **_memory(memory),
        "data_per_raw": round(data_bytes / written.raw_bytes, 3),
    }


def _scanned(settings: Settings, *, are_searched: bool) -> tuple[float, PeakMemory, list[float]]:
    """Seconds, memory, and the milliseconds of searches beside it."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    scan = context.Process(target=_scan, args=(settings, sender))
    scan.start()
    sender.close()
    assert scan.pid is not None
    with PeakMemory(scan.pid) as memory:
        took_ms = _search_until(receiver, settings) if are_searched else []
        try:
            seconds: float = receiver.recv()
        except EOFError:
            raise SystemExit("the scan failed; see above") from None
        finally:
            scan.join()
    return seconds, memory, took_ms


def _rates(text_bytes: int, raw_bytes: int, seconds: float) -> dict[str, float]:
    return {
        "text_mb": round(text_bytes / _MB, 1),
        "raw_mb": round(raw_bytes / _MB, 1),
        "seconds": round(seconds, 2),
        "text_mb_per_second": round(text_bytes / _MB / seconds, 2),
        "raw_mb_per_second": round(raw_bytes / _MB / seconds, 2),
    }


def _memory(memory: PeakMemory) -> dict[str, int]:
    return {
        "processes": memory.processes,
        "peak_memory_mb": round(memory.bytes / _MB),
        "peak_anonymous_mb": round(memory.anonymous_bytes / _MB),
    }


def _disk(settings: Settings, data_dir: Path, text_bytes: int, raw_bytes: int) -> dict[str, float]:
    """What lies on the disk after a scan, as a whole and by part, against the texts that it holds."""
    with closing(Archive.open(settings)) as archive:
        status = archive.status()
    data_bytes = folder_bytes(data_dir)
    # SQLite's journal does not grow with the archive; it is left behind where a search was open to the end.
    journal_bytes = sum(path.stat().st_size for path in data_dir.glob(f"{STORE_FILE}-*"))
    return {
        "data_mb": round(data_bytes / _MB, 1),
        "data_per_text": round(data_bytes / text_bytes, 3),
        "data_per_raw": round(data_bytes / raw_bytes, 3),
        "store_per_text": round((status.store_bytes - journal_bytes) / text_bytes, 3),
        "journal_per_text": round(journal_bytes / text_bytes, 3),
        "index_per_text": round(status.index_bytes / text_bytes, 3),
        "vocabulary_per_text": round(status.vocabulary_bytes / text_bytes, 3),
    }


def _scan(settings: Settings, sender: Connection) -> None:
    started = time.perf_counter()
    index_once(settings, lambda _: None)
    sender.send(time.perf_counter() - started)
    sender.close()


def _search_until(receiver: Connection, settings: Settings) -> list[float]:
    """Search every quarter of a second until the scan reports; milliseconds each search took."""
    archive: Archive | None = None
    took_ms: list[float] = []
    while not receiver.poll(SEARCH_EVERY_SECONDS):
        try:
            archive = archive or Archive.open(settings)
            request = SearchRequest(query=QUERIES[len(took_ms) % len(QUERIES)], project="*")
            started = time.perf_counter()
            archive.search(request, Caller())
            took_ms.append((time.perf_counter() - started) * 1000)
        except Unavailable:
            # The scan has not made the store yet.
            continue
    if archive is not None:
        archive.close()
    return took_ms
