"""A record that its agent writes over and over, cut in pieces, while it is searched and read.

    REWRITING_SECONDS=60 pytest tests/faults/test_rewriting.py --log-cli-level=INFO

runs it for a minute and tells its figures.
"""

import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from indexer.lanes import LIVE
from indexer.store.contents import POSITIONS
from indexer.store.schema import STORE_FILE
from tests.served import served
from tests.waiting import wait_for

SECONDS = float(os.environ.get("REWRITING_SECONDS", "5"))

WRITES_A_SECOND = 60
PIECES = 4
"""What each write of the record is cut into."""

MAX_BEHIND_SECONDS = 2.0
"""Twice what is promised, as other work may keep this machine busy."""

MAX_COMMITS_A_SECOND = 10

SAMPLE_SECONDS = 0.005
STEPS_OF_TURN = 200
"""Some 20 KB of text: a turn grows past its first chunk before the next one begins."""

STEM = "1790000000000"
QUESTION = "What holds the kettle's lid?"

log = logging.getLogger(__name__)


def text_of(step: int, state: int) -> str:
    """What a step says in a state: the last one is still being written."""
    return (
        f"step {step:06} {'is being written' if step == state else 'is done, and what it found is this: ' + '~' * 60}"
    )


def turn_of(step: int) -> int:
    return step // STEPS_OF_TURN + 1


def said_in(state: int) -> list[tuple[int, str, str]]:
    """Turn, kind and text of all items in a state; step 0 of each turn follows a message."""
    said = []
    for step in range(state + 1):
        if step % STEPS_OF_TURN == 0:
            said.append((turn_of(step), "user", QUESTION))
        said.append((turn_of(step), "agent", text_of(step, state)))
    return said


class Agent:
    """Writes the record anew for each state, one step longer each time."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._done: list[str] = []
        self.written: list[float] = []
        """For each state, when its write ended, on the monotonic clock."""
        self.write_next()

    def write_next(self) -> None:
        state = len(self.written)
        if state % STEPS_OF_TURN == 0:
            self._done.append(json.dumps({"User": QUESTION}))
        items = ",".join([*self._done, json.dumps({"Agent": text_of(state, state)})])
        self._done.append(json.dumps({"Agent": text_of(state, state + 1)}))
        record = f'{{"id":"{STEM}","agent":"Claude Agent","title":"State {state}","items":[{items}]}}'.encode()
        size = len(record) // PIECES + 1
        with self._record.open("wb") as file:  # which cuts it to nothing first
            for start in range(0, len(record), size):
                file.write(record[start : start + size])
                file.flush()
        self.written.append(time.monotonic())

    def keep_writing(self, over: threading.Event) -> None:
        due = time.monotonic()
        while not over.wait(max(0.0, due - time.monotonic())):
            self.write_next()
            due += 1 / WRITES_A_SECOND

    def behind(self, state: int, at: float) -> float:
        """For how long there had been a newer state than this one, at a time; seconds."""
        return at - self.written[state + 1] if state + 1 < len(self.written) else 0.0


def state_of(title: str) -> int:
    return int(title.removeprefix("State "))


def answered(client: httpx.Client, path: str, **arguments: Any) -> Any:
    answer = client.get(path, params=arguments)
    assert answer.status_code == 200, answer.text
    return answer.json()


def read_whole(client: httpx.Client) -> int:
    """Read the record; the state that the answer is, all of it."""
    answer = answered(client, "/session_read", session=STEM, turns="1-100000")
    state = state_of(answer["title"])
    assert [(item["turn"], item["kind"], item["text"]) for item in answer["items"]] == said_in(state)
    assert (answer["count"], answer["more"]) == (turn_of(state), False)
    return state


def search(client: httpx.Client, query: str) -> list[dict[str, Any]]:
    hits: list[dict[str, Any]] = answered(client, "/session_search", q=query)["hits"]
    return hits


def keep_reading(client: httpx.Client, agent: Agent, over: threading.Event) -> list[float]:
    """How far behind each answer was, in seconds, when it was asked for."""
    behind = []
    while not over.is_set():
        asked = time.monotonic()
        behind.append(agent.behind(read_whole(client), asked))
    return behind


def keep_searching(client: httpx.Client, agent: Agent, over: threading.Event) -> list[float]:
    """Again and again look for the newest step until it is found; how long each was not, in seconds."""
    behind = []
    while not over.is_set():
        step = len(agent.written) - 1
        while not (hits := search(client, f"step {step:06} ")):
            assert time.monotonic() < agent.written[step] + MAX_BEHIND_SECONDS, f"step {step} is not found"
        behind.append(time.monotonic() - agent.written[step])
        (hit,) = hits
        state = state_of(hit["title"])
        whole = text_of(step, state)
        assert hit["line"] == (whole if len(whole) <= 160 else whole[:160] + "…")
        assert hit["turn"] == turn_of(step)
        assert [hit["turn"] for hit in search(client, QUESTION)][-1:] == [1]
    return behind


@contextmanager
def commits(store: Path) -> Iterator[Callable[[], int | None]]:
    """Yields what tells how far the index folder `live` has come: another number after each commit."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:

        def position() -> int | None:
            row = database.execute("SELECT value FROM meta WHERE key = ?", (POSITIONS[LIVE],)).fetchone()
            return None if row is None else int(row[0])

        yield position


def most_in_a_second(times: Sequence[float]) -> int:
    return max((sum(start <= time_ < start + 1 for time_ in times) for start in times), default=0)


def test_a_record_that_is_rewritten_without_a_pause_is_searched_and_read_whole_all_the_while(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "httpx")  # it would tell of every call among the figures
    project = home / "kettle"
    record = project / ".cydonia" / "sessions" / f"{STEM}.json"
    record.parent.mkdir(parents=True)
    state_file = home / ".config" / "cydonia" / "state.toml"
    state_file.parent.mkdir(parents=True)
    state_file.write_text(f"projects = {json.dumps([str(project)])}\n", encoding="utf-8")
    agent = Agent(record)
    over = threading.Event()
    committed: list[float] = []
    with (
        served(home) as client,
        commits(home / ".local" / "share" / "turndex" / STORE_FILE) as position,
        ThreadPoolExecutor(3) as threads,
    ):
        begun = time.monotonic()
        writing = threads.submit(agent.keep_writing, over)
        asking = [threads.submit(keep, client, agent, over) for keep in (keep_reading, keep_searching)]
        running: list[Future[Any]] = [writing, *asking]
        try:
            last = position()
            while time.monotonic() < begun + SECONDS and not any(one.done() for one in running):
                over.wait(SAMPLE_SECONDS)
                if (now_at := position()) != last:
                    committed.append(time.monotonic())
                    last = now_at
        finally:
            over.set()
        writing.result()
        took = agent.written[-1] - begun
        reading, searching = [one.result() for one in asking]
        wait_for(lambda: read_whole(client) == len(agent.written) - 1, "the last state", seconds=MAX_BEHIND_SECONDS)
    log.info(
        "%d states in %.1f s; %d reads, at most %.3f s behind; %d searches, at most %.3f s behind;"
        " %d commits, at most %d within a second",
        *(len(agent.written), took, len(reading), max(reading), len(searching), max(searching)),
        *(len(committed), most_in_a_second(committed)),
    )
    assert max(reading) < MAX_BEHIND_SECONDS
    assert max(searching) < MAX_BEHIND_SECONDS
    assert committed
    assert most_in_a_second(committed) <= MAX_COMMITS_A_SECOND
