"""Commands beside a running server, and after one that was killed."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from search_api.address import Address, read_address
from tests.home import home_environment
from tests.indexer.archives import append, line_of, user
from tests.served import COMMAND, served
from tests.waiting import wait_for

HEAD = {"type": "session", "version": 1, "id": "a", "project": "/home/a/kettle", "title": "The lid"}


@pytest.fixture
def data_dir(home: Path) -> Path:
    return home / ".local" / "share" / "turndex"


@pytest.fixture
def turn_file(data_dir: Path) -> Path:
    path = data_dir / "turns" / "a.turns.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(line_of(HEAD) + line_of(user("hello")))
    return path


def turndex(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [COMMAND, *words],
        env=home_environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def printed(home: Path, *words: str) -> str:
    """What a command prints that has nothing to complain about."""
    done = turndex(home, *words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def status(home: Path) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(printed(home, "status", "--json"))
    return answer


def address_of(data_dir: Path) -> Address:
    address = read_address(data_dir)
    assert address is not None
    return address


def test_commands_that_read_work_beside_a_server(home: Path, turn_file: Path) -> None:
    with served(home) as client:
        append(turn_file, user("appended beside the server"))
        wait_for(
            lambda: client.get("/session_search", params={"q": "beside the server"}).json()["hits"],
            "the server has what was appended",
        )
        assert printed(home, "search", "beside the server") == "kettle#1:2 The lid — appended beside the server\n"
        assert printed(home, "read", "kettle#1:2").splitlines()[-1] == "user: appended beside the server"
        assert "kettle#1" in printed(home, "sessions")
        assert status(home)["uptime_s"] is not None
        assert client.get("/readyz").is_success


def test_a_second_one_that_would_write_says_who_does(home: Path, turn_file: Path, data_dir: Path) -> None:
    with served(home) as client:
        address = address_of(data_dir)
        for words in (("serve", "--port", "0"), ("index",)):
            done = turndex(home, *words)
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr.startswith("Error (unavailable): ")
            assert f"the server at {address.url} (process {address.pid})" in done.stderr
        assert address_of(data_dir) == address
        append(turn_file, user("appended after both"))
        wait_for(
            lambda: client.get("/session_search", params={"q": "after both"}).json()["hits"], "the first one goes on"
        )


def test_after_a_server_was_killed_everything_works_at_once(home: Path, turn_file: Path, data_dir: Path) -> None:
    with served(home) as client:
        killed = address_of(data_dir)
        append(turn_file, user("written before the end"))
        wait_for(lambda: client.get("/session_search", params={"q": "before the end"}).json()["hits"], "it is followed")
        os.kill(killed.pid, signal.SIGKILL)
    assert read_address(data_dir) == killed
    append(turn_file, user("written after the end"))
    assert printed(home, "search", "after the end") == "kettle#1:3 The lid — written after the end\n"
    assert printed(home, "search", "before the end") == "kettle#1:2 The lid — written before the end\n"
    assert printed(home, "read", "kettle#1:3").splitlines()[-1] == "user: written after the end"
    assert status(home)["uptime_s"] is None
    assert turndex(home, "index").returncode == 0
    with served(home) as client:
        assert address_of(data_dir).pid != killed.pid
        append(turn_file, user("written to the next one"))
        wait_for(lambda: client.get("/session_search", params={"q": "the next one"}).json()["hits"], "it is followed")
        assert status(home)["uptime_s"] is not None
