"""Lines that are appended to turn files are found soon, however many files are being written."""

import logging
import statistics
import threading
import time
from pathlib import Path

import pytest

from tests.indexer.archives import agent, append, line_of, user
from tests.served import served
from tests.waiting import wait_for

FILES = 20
LINES_A_SECOND = 10
"""What is written to each file, besides the lines that are looked for."""

SAMPLES = 40
MAX_SECONDS = 2.0
MAX_MEDIAN_SECONDS = 0.5
"""More than is promised, as other work may keep this machine busy."""

log = logging.getLogger(__name__)


def keep_appending(files: list[Path], over: threading.Event) -> None:
    line = 0
    while not over.wait(1 / LINES_A_SECOND):
        for path in files:
            append(path, user(f"message {line}") if line % 7 == 0 else agent(f"answer {line}"))
        line += 1


def test_lines_appended_to_twenty_files_at_once_are_found_soon(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "httpx")  # it would tell of every call before the figures
    turns = home / ".local" / "share" / "turndex" / "turns"
    turns.mkdir(parents=True)
    files = [turns / f"live-{number}.turns.jsonl" for number in range(FILES)]
    for number, path in enumerate(files):
        path.write_bytes(
            line_of({"type": "session", "version": 1, "id": f"live-{number}", "project": "/home/a/kettle"})
        )
    over = threading.Event()
    took: list[float] = []
    with served(home) as client:

        def found_in(words: str) -> list[str]:
            """The sessions that say this, once there are any."""

            def look() -> list[str]:
                answer = client.get("/session_search", params={"q": words}).raise_for_status()
                return [hit["session_id"] for hit in answer.json()["hits"]]

            return wait_for(look, words, seconds=MAX_SECONDS)

        writing = threading.Thread(target=keep_appending, args=(files, over))
        writing.start()
        try:
            for sample in range(SAMPLES):
                number = sample % FILES
                words = f"sample {sample:03} of what is looked for"
                append(files[number], agent(words))
                written = time.monotonic()
                assert found_in(words) == [f"live-{number}"]
                took.append(time.monotonic() - written)
        finally:
            over.set()
            writing.join()
    log.info("%d lines: median %.3f s, at most %.3f s", len(took), statistics.median(took), max(took))
    assert statistics.median(took) < MAX_MEDIAN_SECONDS
