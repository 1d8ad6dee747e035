"""Killed at any moment, it agrees with the files again after the next start.

Moments are other ones each time; the seed is printed, and `KILL_SEED` in the environment takes one.
`KILLS` asks for more of them.
"""

import os
import secrets
import shutil
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest

from schemas.settings import Settings
from tests.faults.agreement import check_agreement
from tests.faults.writing import QUERIES, RecordAgent, TurnFileAgent, at_work
from tests.faults.zygote import zygote
from tests.indexer.archives import FIRST_STAMP, Transcripts, index

LIVE_KILLS = int(os.environ.get("KILLS", "26"))
SCAN_KILLS = int(os.environ.get("KILLS", "26"))

LIVE_SECONDS = 0.5
SCAN_SECONDS = 0.25
"""The longest that one lives; a whole first scan takes about as long."""

SMALL_STEPS = {
    "indexer.pipeline.SLICE_SECONDS": 0.0,
    "indexer.pipeline.SLICE_BYTES": 20_000,
    "indexer.follow.COMMIT_BYTES": 50_000,
    "indexer.sources.turn_file.PART_BYTES": 10_000,
    "indexer.sources.whole.PART_CHARS": 10_000,
}
"""As many transactions and commits as a large archive would take."""


@pytest.fixture
def random() -> Random:
    seed = os.environ.get("KILL_SEED") or secrets.token_hex(4)
    print(f"KILL_SEED={seed}")  # noqa: T201  what it takes to see a failure again
    return Random(seed)


def flags_of(settings: Settings) -> dict[str, Any]:
    return settings.model_dump(mode="json", include={"data_dir", "sources"})


def agents_of(random: Random, transcripts: Transcripts, count: int) -> list[TurnFileAgent | RecordAgent]:
    project = transcripts.project("kettle")
    turn_files = [TurnFileAgent(random, transcripts, f"agent-{n:04d}", project) for n in range(count)]
    return [*turn_files, *(RecordAgent(random, project, FIRST_STAMP + n) for n in range(count))]


def test_it_is_killed_while_agents_write(tmp_path: Path, random: Random) -> None:
    transcripts = Transcripts(tmp_path)
    settings = transcripts.settings()
    agents = agents_of(random, transcripts, 4)
    with zygote(tmp_path / "log") as start:
        for kill in range(LIVE_KILLS):
            patches = SMALL_STEPS if random.random() < 0.5 else {}
            with at_work(random, agents):
                process = start.start(flags_of(settings), patches)
                threading.Event().wait(Random(random.random()).uniform(0, LIVE_SECONDS))
                start.kill(process)
            index(settings)
            check_agreement(settings, QUERIES)
            if kill % 10 == 9:
                agents += agents_of_another_project(random, transcripts, kill)
    check_nothing_failed(tmp_path / "log")


def agents_of_another_project(random: Random, transcripts: Transcripts, number: int) -> list[RecordAgent]:
    project = transcripts.project(f"pan-{number}")
    return [RecordAgent(random, project, FIRST_STAMP + n) for n in range(2)]


def test_it_is_killed_during_a_first_scan(tmp_path: Path, random: Random) -> None:
    transcripts = Transcripts(tmp_path)
    settings = transcripts.settings()
    for agent in agents_of(random, transcripts, 8):
        for _ in range(random.choice([1, 10, 40])):
            agent.write()
    with zygote(tmp_path / "log") as start:
        for _ in range(SCAN_KILLS):
            patches = {**SMALL_STEPS, "indexer.follow.PROCESS_CHUNKS": random.choice([0, 10**9])}
            process = start.start(flags_of(settings), patches)
            threading.Event().wait(random.uniform(0, SCAN_SECONDS))
            start.kill(process)
            if random.random() < 0.6:
                index(settings)
                check_agreement(settings, QUERIES)
                shutil.rmtree(settings.data_dir)
    index(settings)
    check_agreement(settings, QUERIES)
    check_nothing_failed(tmp_path / "log")


def check_nothing_failed(log: Path) -> None:
    """None of those that were killed had failed before."""
    said = log.read_text(encoding="utf-8")
    assert "Traceback" not in said, said
