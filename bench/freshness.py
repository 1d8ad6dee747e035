"""How long it takes from the end of a write to the first answer that has what was written.

Twenty turn files are being appended to, each ten times a second; every sample is one more line in one
of them, searched for over HTTP until it is there. With an archive, the same while its first scan runs.
"""

import http.client
import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, TextIO

import orjson

from bench.corpus import FIRST_SECOND, corpus_flags
from bench.results import percentiles
from bench.serving import Server, get, serving, write_settings
from bench.texts import Texts
from schemas.times import iso_utc

FILES = 20
LINES_A_SECOND = 10
GIVE_UP_SECONDS = 30
POLL_SECONDS = 0.005


def measure(home: Path, *, samples: int = 300) -> dict[str, Any]:
    """Follow an empty home and what is written there; milliseconds."""
    return _measure(home, home / "corpus", samples, is_over=lambda _: False, until_ready=True)


def measure_during_scan(home: Path, corpus: Path, *, samples: int = 1_000) -> dict[str, Any]:
    """The same from the start of a server that has an archive to scan, until it has done so."""
    return _measure(home, corpus, samples, is_over=Server.is_ready, until_ready=False)


def _measure(
    home: Path, corpus: Path, samples: int, *, is_over: Callable[[Server], bool], until_ready: bool
) -> dict[str, Any]:
    live = home / "live"
    live.mkdir(parents=True)
    files = [(live / f"live-{number}.turns.jsonl").open("a", encoding="utf-8") for number in range(FILES)]
    try:
        for number, file in enumerate(files):
            _write(file, _header(number, home / "project"))
        with serving(_settings(home, corpus, live)) as server:
            if until_ready:
                server.wait_until_ready()
            with _Writing(files) as writing:
                took_ms = _samples(server, writing, samples, is_over)
    finally:
        for file in files:
            file.close()
    return {
        "files": FILES,
        "samples": len(took_ms),
        "background_lines_per_second": round(writing.lines / writing.seconds),
        "fresh_ms": percentiles(took_ms),
    }


def _settings(home: Path, corpus: Path, live: Path) -> Path:
    tree = corpus_flags(corpus, home / "data")
    tree["sources"]["turn_file"]["folders"].append(str(live))
    return write_settings(home / "settings.toml", tree)


class _Writing:
    """Writes to all files in the background while the block runs, and a line that is given to one of them."""

    def __init__(self, files: Sequence[TextIO]) -> None:
        self._files = files
        self._locks = [threading.Lock() for _ in files]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_writing, name="writing")
        self.lines = 0
        self.seconds = 0.0

    def __enter__(self) -> "_Writing":
        self._started = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds = time.perf_counter() - self._started
        self._over.set()
        self._thread.join()

    def write(self, number: int, text: str) -> float:
        """Write to a file; when that was done, on the performance counter."""
        index = number % len(self._files)
        with self._locks[index]:
            _write(self._files[index], {"type": "agent", "text": text})
            return time.perf_counter()

    def _keep_writing(self) -> None:
        texts = Texts(Random(2))
        while not self._over.wait(1 / LINES_A_SECOND):
            for file, lock in zip(self._files, self._locks, strict=True):
                with lock:
                    kind = "user" if self.lines % 7 == 0 else "agent"
                    _write(file, {"type": kind, "text": texts.paragraph(3)})
                self.lines += 1


def _samples(server: Server, writing: _Writing, samples: int, is_over: Callable[[Server], bool]) -> list[float]:
    texts = Texts(Random(1))
    connection = server.connect()
    took_ms: list[float] = []
    while len(took_ms) < samples and not (took_ms and is_over(server)):
        token = texts.hash()
        written = writing.write(len(took_ms), f"sample {token}")
        took_ms.append(_until_found(connection, token, written))
    connection.close()
    return took_ms


def _until_found(connection: http.client.HTTPConnection, token: str, written: float) -> float:
    while time.perf_counter() < written + GIVE_UP_SECONDS:
        status, body = get(connection, f"/session_search?q={token}")
        now = time.perf_counter()
        if status == http.client.OK and orjson.loads(body)["hits"]:
            return (now - written) * 1000
        time.sleep(POLL_SECONDS)
    raise SystemExit(f"a line was not found within {GIVE_UP_SECONDS} s of its write")


def _header(number: int, project: Path) -> dict[str, Any]:
    return {
        "type": "session",
        "version": 1,
        "id": f"live-session-{number}",
        "project": str(project),
        "title": "Live",
        "agent": "codex",
        "at": iso_utc(FIRST_SECOND * 1000),
    }


def _write(file: TextIO, line: dict[str, Any]) -> None:
    file.write(json.dumps(line, ensure_ascii=False) + "\n")
    file.flush()
