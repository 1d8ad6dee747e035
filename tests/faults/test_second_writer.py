"""One process writes to a data directory; the second one is told who does, and readers are let in."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from indexer.lock import DataLock
from schemas.settings import load_settings
from tests.home import home_environment
from tests.indexer.archives import line_of, user
from tests.served import COMMAND, served


@pytest.fixture
def client(home: Path) -> Iterator[httpx.Client]:
    turns = home / ".local" / "share" / "turndex" / "turns"
    turns.mkdir(parents=True)
    head = {"type": "session", "version": 1, "id": "b7c1e0a2", "project": "/work/kettle"}
    (turns / "a.turns.jsonl").write_bytes(line_of(head) + line_of(user("the boiler whistles")))
    with served(home) as client:
        yield client


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *arguments], env=home_environment(home), capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["index"]])
def test_a_second_one_that_would_write_is_refused_and_told_who_writes(
    home: Path, client: httpx.Client, command: list[str]
) -> None:
    address = json.loads((home / ".local" / "share" / "turndex" / "address.json").read_text(encoding="utf-8"))
    second = run(home, *command)
    assert second.returncode == 2
    assert second.stdout == ""
    assert f"the server at {address['url']} (process {address['pid']}) already writes" in second.stderr
    assert client.get("/healthz").json()["instance"] == address["instance"]


def test_searching_and_reading_work_beside_a_server(home: Path, client: httpx.Client) -> None:
    searched = run(home, "search", "whistles")
    assert (searched.returncode, searched.stderr) == (0, "")
    assert "the boiler whistles" in searched.stdout
    read = run(home, "read", "b7c1e0a2")
    assert (read.returncode, read.stderr) == (0, "")
    assert "user: the boiler whistles" in read.stdout
    for command in (["sessions"], ["projects"], ["status"]):
        assert run(home, *command).returncode == 0


def test_one_that_is_refused_by_another_process_than_a_server_is_told_its_id(home: Path) -> None:
    lock = DataLock(load_settings().data_dir)
    try:
        second = run(home, "serve", "--port", "0")
    finally:
        lock.release()
    assert second.returncode == 2
    assert "process " in second.stderr
