"""How long it takes from the end of a write to the first answer that has what was written.

Twenty turn files are being appended to, each ten times a second; every sample is one more line in one
of them, searched for over HTTP until it is there.
"""

import json
import threading
import time
from pathlib import Path
from random import Random
from typing import Any, TextIO

import httpx

from bench.corpus import FIRST_SECOND
from bench.results import percentiles
from bench.texts import Texts
from schemas.times import iso_utc
from tests.served import served

FILES = 20
LINES_A_SECOND = 10
GIVE_UP_SECONDS = 10
POLL_SECONDS = 0.005


def measure(home: Path, *, samples: int = 300) -> dict[str, Any]:
    """Serve an empty home and follow what is written there; milliseconds."""
    turns = home / ".local" / "share" / "turndex" / "turns"
    turns.mkdir(parents=True)
    random = Random(1)
    texts = Texts(random)
    over = threading.Event()
    files = [(turns / f"live-{number}.turns.jsonl").open("a", encoding="utf-8") for number in range(FILES)]
    locks = [threading.Lock() for _ in files]
    lines = 0
    try:
        for number, file in enumerate(files):
            _write(file, _header(number, home / "live"))

        def keep_writing() -> None:
            nonlocal lines
            background = Texts(Random(2))
            while not over.wait(1 / LINES_A_SECOND):
                for file, lock in zip(files, locks, strict=True):
                    with lock:
                        kind = "user" if lines % 7 == 0 else "agent"
                        _write(file, {"type": kind, "text": background.paragraph(3)})
                    lines += 1

        with served(home) as client:
            writer = threading.Thread(target=keep_writing)
            writer.start()
            started = time.perf_counter()
            try:
                took_ms = []
                for number in range(samples):
                    token = texts.hash()
                    index = number % FILES
                    with locks[index]:
                        _write(files[index], {"type": "agent", "text": f"sample {token}"})
                        written = time.perf_counter()
                    took_ms.append(_until_found(client, token, written))
            finally:
                seconds = time.perf_counter() - started
                over.set()
                writer.join()
    finally:
        for file in files:
            file.close()
    return {
        "files": FILES,
        "samples": samples,
        "background_lines_per_second": round(lines / seconds),
        "fresh_ms": percentiles(took_ms),
    }


def _until_found(client: httpx.Client, token: str, written: float) -> float:
    pause = threading.Event()
    while time.perf_counter() < written + GIVE_UP_SECONDS:
        answer = client.get("/session_search", params={"q": token}).raise_for_status().json()
        now = time.perf_counter()
        if answer["hits"]:
            return (now - written) * 1000
        pause.wait(POLL_SECONDS)
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
