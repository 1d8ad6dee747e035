"""Forgetting by command, beside a running server and without one, whoever is killed meanwhile.

Moments are other ones each time; the seed is printed, and `KILL_SEED` in the environment takes one.
"""

import os
import pty
import secrets
import signal
import stat
import subprocess
import threading
from pathlib import Path
from random import Random

import pytest

from schemas.settings import Settings, load_settings
from search_api.address import read_address
from search_api.control import SOCKET_FILE
from tests.home import home_environment
from tests.indexer.archives import append, found_in, index, line_of, sessions_of, user
from tests.indexer.sources.codex.rollouts import CHILD, THREAD, CodexHome, meta
from tests.indexer.sources.codex.rollouts import user as asked
from tests.indexer.test_forget import SECRET, deleted_earlier, traces
from tests.served import COMMAND, served
from tests.waiting import wait_for

KILLS = int(os.environ.get("KILLS", "5"))
LONGEST_SECONDS = 1.2
"""The longest that a command lives which is killed; about as long as it takes."""


@pytest.fixture
def turn_files(home: Path) -> Path:
    """A folder of turn files apart from the data directory, which is looked through for what must not be there."""
    folder = home / "turns"
    folder.mkdir()
    for name, text in (("secret", f"{SECRET} is said"), ("other", "the parser is off")):
        head = {"type": "session", "version": 1, "id": f"{name}-0001", "project": "/home/a/kettle", "title": text}
        lines = b"".join(line_of(user(f"{text} {n}")) for n in range(9))
        (folder / f"{name}.turns.jsonl").write_bytes(line_of(head) + lines)
    config = home / ".config" / "turndex" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[sources.turn-file]\nfolders = ["{folder}"]\n', encoding="utf-8")
    return folder


@pytest.fixture
def settings(turn_files: Path) -> Settings:
    return load_settings()


def turndex(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [COMMAND, *words],
        env=home_environment(home),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_running_server_forgets_and_goes_on(home: Path, turn_files: Path, settings: Settings) -> None:
    with served(home) as client:
        assert stat.S_IMODE((settings.data_dir / SOCKET_FILE).stat().st_mode) == 0o600
        assert client.get("/session_search", params={"q": SECRET}).json()["hits"]
        done = turndex(home, "forget", "--yes", "secret-0001")
        assert (done.returncode, done.stdout) == (0, "forgotten: 1 session, 9 turns\n")
        assert done.stderr.startswith("to be forgotten: 1 session with 9 turns\n")
        assert "its file is still there" in done.stderr
        assert traces(settings) == []
        assert client.get("/session_search", params={"q": SECRET}).json()["hits"] == []
        append(turn_files / "secret.turns.jsonl", user(f"{SECRET} appended"))
        append(turn_files / "other.turns.jsonl", user("appended to the other"))
        wait_for(
            lambda: client.get("/session_search", params={"q": "to the other"}).json()["hits"], "it follows the other"
        )
        assert client.get("/session_search", params={"q": SECRET}).json()["hits"] == []
    assert traces(settings) == []
    assert not (settings.data_dir / SOCKET_FILE).exists()


def test_without_a_server_the_command_does_it(home: Path, settings: Settings) -> None:
    index(settings)
    done = turndex(home, "forget", "--yes", "--json", "secret-0001")
    assert (done.returncode, done.stdout) == (0, '{"sessions":1,"turns":9}\n')
    assert traces(settings) == []
    assert turndex(home, "search", SECRET).returncode == 1


def test_sessions_whose_files_have_been_gone_for_long_are_forgotten_together(
    home: Path, turn_files: Path, settings: Settings
) -> None:
    index(settings)
    (turn_files / "secret.turns.jsonl").unlink()
    index(settings)
    assert turndex(home, "forget", "--deleted-before", "90d").returncode == 1
    deleted_earlier(settings, 91 * 86_400)
    done = turndex(home, "forget", "--deleted-before", "90d", "--yes")
    assert (done.returncode, done.stdout) == (0, "forgotten: 1 session, 9 turns\n")
    assert "still there" not in done.stderr
    assert traces(settings) == []
    assert [one.session_id for one in sessions_of(settings).values()] == ["other-0001"]


def test_what_is_announced_is_what_goes_with_its_subagents(home: Path, settings: Settings) -> None:
    threads = CodexHome(home / ".codex")
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": THREAD, "depth": 1}}}
    threads.write(meta(cwd="/home/a/kettle"), *asked("Find it."))
    threads.write(meta(CHILD, cwd="/home/a/kettle", source=spawn), *asked(f"{SECRET} is looked for"), thread=CHILD)
    index(settings)
    assert traces(settings)
    done = turndex(home, "forget", "--yes", "--project", "/home/a/kettle", "secret-0001", THREAD)
    assert (done.returncode, done.stdout) == (0, "forgotten: 3 sessions, 11 turns\n")
    said = done.stderr.splitlines()
    assert said[0] == "to be forgotten: 3 sessions with 11 turns"
    assert said[2].endswith(" Find it. — 1 turn, and 1 subagent with 1 turn")
    assert traces(settings) == []
    index(settings)
    assert [one.session_id for one in sessions_of(settings).values()] == ["other-0001"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name a session"),
        (["secret-0001:3"], "forgotten as a whole"),
        (["nobody said so"], "there is no session"),
        (["--deleted-before", "soon"], "takes an age"),
    ],
)
def test_what_cannot_be_forgotten_is_refused(home: Path, settings: Settings, words: list[str], says: str) -> None:
    index(settings)
    done = turndex(home, "forget", "--yes", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert len(sessions_of(settings)) == 2


@pytest.mark.parametrize(("answer", "left"), [(b"n\n", 2), (b"y\n", 1)])
def test_it_asks_on_a_terminal(home: Path, settings: Settings, answer: bytes, left: int) -> None:
    index(settings)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [COMMAND, "forget", "secret-0001"],
        env=home_environment(home),
        cwd=home,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        os.write(ours, answer)
        _, said = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert b"forget them for good?" in said
    assert len(sessions_of(settings)) == left


def test_a_command_that_is_killed_is_finished_by_the_next_start(
    home: Path, turn_files: Path, settings: Settings
) -> None:
    seed = os.environ.get("KILL_SEED") or secrets.token_hex(4)
    print(f"KILL_SEED={seed}")  # noqa: T201  what it takes to see a failure again
    random = Random(seed)
    raw = (turn_files / "secret.turns.jsonl").read_bytes()
    for kill in range(KILLS):
        # Another session each time: the one before is not read again.
        id_ = f"secret-{kill:04d}"
        (turn_files / "secret.turns.jsonl").write_bytes(raw.replace(b"secret-0001", id_.encode()))
        index(settings)
        others = found_in(settings, "parser")
        with subprocess.Popen(
            [COMMAND, "forget", "--yes", id_], env=home_environment(home), stderr=subprocess.DEVNULL
        ) as process:
            threading.Event().wait(random.uniform(0, LONGEST_SECONDS))
            process.kill()
        index(settings)
        if id_ in {one.session_id for one in sessions_of(settings).values()}:
            assert turndex(home, "forget", "--yes", id_).returncode == 0  # it was killed before it had begun
        assert traces(settings) == []
        assert found_in(settings, "parser") == others


def test_a_server_that_is_killed_meanwhile_finishes_at_its_next_start(home: Path, settings: Settings) -> None:
    with served(home) as client:
        assert client.get("/session_search", params={"q": SECRET}).json()["hits"]
        address = read_address(settings.data_dir)
        assert address is not None
        with subprocess.Popen(
            [COMMAND, "forget", "--yes", "secret-0001"],
            env=home_environment(home),
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if line.startswith("… removed"):
                    os.kill(address.pid, signal.SIGKILL)
                    break
            rest = process.stderr.read()
        assert process.returncode == 0 or "finish" in rest
    with served(home) as client:
        wait_for(lambda: traces_or_none(settings) == [], "the next start has finished it")
        assert len(client.get("/session_search", params={"q": "parser"}).json()["hits"]) == 9


def traces_or_none(settings: Settings) -> list[str] | None:
    """None while an index is still being made."""
    return traces(settings) if len(list(settings.data_dir.glob("index-*"))) == 1 else None
