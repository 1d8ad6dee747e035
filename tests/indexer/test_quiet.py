"""What was running when its agent died is told as running only for as long as that can be true."""

import time
from pathlib import Path

import pytest

from indexer.service import Indexer
from schemas.items import Status
from schemas.settings import Settings, load_settings
from tests.indexer.archives import contents, index
from tests.indexer.sources.claude_code import written
from tests.indexer.sources.codex import rollouts
from tests.waiting import wait_for

HOUR = 3600
QUIET_HOURS = {"claude": 1, "codex": 24}


@pytest.fixture(params=QUIET_HOURS)
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def transcript(agent: str, tmp_path: Path) -> Path:
    """Of a session whose last line is a call that runs."""
    if agent == "claude":
        session = written.written_in(tmp_path / agent)
        session.add(written.user("Build it"), written.agent(written.call("t1", "Bash", command="make")))
        return session.path
    home = rollouts.CodexHome(tmp_path / agent)
    return home.write(rollouts.meta(), *rollouts.user("Build it"), rollouts.call("exec_command", {"cmd": "make"}))


@pytest.fixture
def settings(transcript: Path, agent: str, tmp_path: Path) -> Settings:
    return load_settings(
        flags={
            "data_dir": str(tmp_path / "data"),
            "roots": [str(tmp_path / agent)],
            "discover": False,
            "limits": {"min_free_bytes": 0, "min_free_share": 0.0},
            "indexing": {"rescan_seconds": 0.05},
        }
    )


def status(settings: Settings) -> Status | None:
    (session,) = contents(settings).values()
    (_, items) = session.turns[0]
    return items[-1][1].status


def pass_time(monkeypatch: pytest.MonkeyPatch, hours: float) -> None:
    now_ns = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now_ns() + int(hours * HOUR * 1e9))


def test_a_call_runs_until_nobody_has_written_for_long(
    settings: Settings, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index(settings)
    assert status(settings) is Status.RUNNING
    pass_time(monkeypatch, QUIET_HOURS[agent] - 0.1)
    index(settings)
    assert status(settings) is Status.RUNNING
    pass_time(monkeypatch, 0.2)
    index(settings)
    assert status(settings) is Status.FAILED


def test_a_server_notices_it_without_any_event(settings: Settings, agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    indexer = Indexer(settings)
    indexer.start()
    try:
        wait_for(lambda: indexer.status().is_ready, "the first scan is done")
        assert status(settings) is Status.RUNNING
        pass_time(monkeypatch, QUIET_HOURS[agent] + 0.1)
        wait_for(lambda: status(settings) is Status.FAILED, "it is noticed")
    finally:
        indexer.stop()


def test_each_transcript_is_read_once_for_that(settings: Settings, agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index(settings)
    pass_time(monkeypatch, QUIET_HOURS[agent] + 0.1)
    index(settings)
    opened: list[str] = []
    monkeypatch.setattr("indexer.intake.Intake.take", lambda *words: opened.append("read"))
    pass_time(monkeypatch, 100)
    index(settings)
    assert opened == []
