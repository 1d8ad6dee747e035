"""Servers that `turndex mcp` starts: one for all clients, gone after the last, and never in the way of a full one."""

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mcp.shared.exceptions import MCPError

from indexer.lock import DataLock, Held
from schemas.errors import InvalidArgument, Unavailable
from schemas.settings import Settings
from search_api import address, on_demand
from search_api.address import Address, is_on_demand, running_server
from search_api.binding import Binding
from search_api.mcp_stdio import Place, place_of, placed
from search_api.on_demand import LOG_FILE, START_LOCK_FILE, OnDemand, displacing
from tests.indexer.archives import line_of, user
from tests.mcp_clients import connected, text_of, turndex_mcp
from tests.served import served
from tests.waiting import wait_for

HEAD = {"type": "session", "version": 1, "id": "a", "project": "/home/a/kettle", "title": "The lid"}
FOUND = "kettle#1:1 The lid — the lid is off\n"
SEARCH = {"query": "lid is off", "project": "*"}
SHORT_MINUTES = "0.03"
"""1.8 s: how long a server goes on alone where a test waits for its end."""


@pytest.fixture
def data_dir(home: Path) -> Iterator[Path]:
    """With one session; a server that is still running at the end of the test is ended."""
    data_dir = home / ".local" / "share" / "turndex"
    turns = data_dir / "turns"
    turns.mkdir(parents=True)
    (turns / "a.turns.jsonl").write_bytes(line_of(HEAD) + line_of(user("the lid is off")))
    yield data_dir
    if running_server(data_dir) is not None:
        os.kill(server_of(data_dir).pid, signal.SIGTERM)
        wait_until_gone(data_dir)


def server_of(data_dir: Path) -> Address:
    found = running_server(data_dir)
    assert found is not None
    return found


def wait_until_gone(data_dir: Path) -> None:
    """Wait for the end of the server, without a call, which would put it off."""
    wait_for(lambda: not (data_dir / "address.json").exists(), "the server has ended")


def end_server_of(data_dir: Path, number: signal.Signals = signal.SIGTERM) -> Address:
    """End the server that a client in this process has started, and wait until it is no process any more."""
    server = server_of(data_dir)
    os.kill(server.pid, number)
    wait_for(lambda: not is_process(server.pid), "the server is gone")
    return server


def is_process(pid: int) -> bool:
    """Whether there is a process of that id, one that has ended and that nobody has waited for included."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_several_clients_at_once_share_one_server_that_ends_after_them(home: Path, data_dir: Path) -> None:
    program = turndex_mcp(home, TURNDEX_MCP__ON_DEMAND_MINUTES=SHORT_MINUTES)
    together = threading.Barrier(3)
    answers: list[str] = []
    servers: list[Address] = []

    def client() -> None:
        with connected(program) as call:
            together.wait(30)
            wait_for(lambda: text_of(call("session_search", SEARCH)).startswith(FOUND), "what was there is found")
            answers.append(text_of(call("session_search", SEARCH)))
            servers.append(server_of(data_dir))

    clients = [threading.Thread(target=client) for _ in range(3)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join(60)
    assert len(answers) == 3
    assert len(set(answers)) == 1
    assert len(set(servers)) == 1
    assert stat.S_IMODE((data_dir / LOG_FILE).stat().st_mode) == 0o600
    wait_until_gone(data_dir)


def test_eight_clients_at_once_start_one_server(data_dir: Path) -> None:
    clients = [OnDemand(Settings(), []) for _ in range(8)]
    together = threading.Barrier(8)

    def server(client: OnDemand) -> Address:
        together.wait(30)
        return client.server()

    with ThreadPoolExecutor(8) as threads:
        servers = list(threads.map(server, clients))
    assert set(servers) == {server_of(data_dir)}
    end_server_of(data_dir)
    log = (data_dir / LOG_FILE).read_text("utf-8")
    assert (log.count("turndex: http"), log.count("already writes")) == (1, 0)


def test_a_client_that_died_while_it_started_a_server_keeps_nobody_waiting(data_dir: Path) -> None:
    holding = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_CREAT | os.O_RDWR), 2); print(); input()"
    command = [sys.executable, "-c", holding, str(data_dir / START_LOCK_FILE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as starting:
        assert starting.stdout is not None
        starting.stdout.readline()
        client = OnDemand(Settings(), [])
        with ThreadPoolExecutor(1) as threads:
            found = threads.submit(client.server)
            starting.kill()
            assert found.result(60) == server_of(data_dir)
    end_server_of(data_dir)


def test_a_server_that_hangs_is_said_to_hang(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "TIMEOUT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        url = f"http://127.0.0.1:{hanging.getsockname()[1]}"
        Address(url, os.getpid(), "the-instance").write(data_dir)
        began = time.monotonic()
        with pytest.raises(Unavailable, match=rf"server at {url} \(process {os.getpid()}\) takes calls and does not"):
            OnDemand(Settings(), []).server()
        assert time.monotonic() - began < 5
    assert not (data_dir / LOG_FILE).exists()


def test_a_stranger_that_listens_where_a_server_was_is_not_taken_for_it(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(address, "TIMEOUT_SECONDS", 0.2)
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        Address(f"http://127.0.0.1:{stranger.getsockname()[1]}", ended.pid, "long gone").write(data_dir)
        assert OnDemand(Settings(), []).server().pid != ended.pid
        end_server_of(data_dir)


def test_a_stranger_that_listens_where_our_own_server_was_is_not_taken_for_it(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = OnDemand(Settings(), [])
    client.server()
    killed = end_server_of(data_dir, signal.SIGKILL)
    monkeypatch.setattr(address, "TIMEOUT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", urlsplit(killed.url).port or 0)):
        assert client.server().pid != killed.pid
        end_server_of(data_dir)


def test_a_client_that_is_connected_keeps_its_server(home: Path, data_dir: Path) -> None:
    with connected(turndex_mcp(home, TURNDEX_MCP__ON_DEMAND_MINUTES=SHORT_MINUTES)) as call:
        call("session_list", {})
        server = server_of(data_dir)
        assert is_on_demand(data_dir)
        assert not threading.Event().wait(3 * 60 * float(SHORT_MINUTES))  # nothing happens, and that is the point
        assert server_of(data_dir) == server
    wait_until_gone(data_dir)


def test_a_full_server_takes_over_and_clients_go_on(home: Path, data_dir: Path) -> None:
    with connected(turndex_mcp(home)) as call:
        call("session_list", {})
        first = server_of(data_dir)
        with served(home) as client:
            assert client.get("/healthz").json()["on_demand"] is False
            assert server_of(data_dir) != first
            assert text_of(call("session_search", SEARCH)).startswith(FOUND)
            assert not is_on_demand(data_dir)
        assert text_of(call("session_search", SEARCH)).startswith(FOUND)
        assert is_on_demand(data_dir)


def test_a_server_that_was_killed_is_started_again(home: Path, data_dir: Path) -> None:
    with connected(turndex_mcp(home)) as call:
        call("session_list", {})
        first = server_of(data_dir)
        os.kill(first.pid, signal.SIGKILL)
        # It may have been killed before it had read anything.
        wait_for(lambda: text_of(call("session_search", SEARCH)).startswith(FOUND), "what is there is found")
        assert server_of(data_dir).instance != first.instance


def test_a_running_server_is_used(home: Path, data_dir: Path) -> None:
    with served(home), connected(turndex_mcp(home)) as call:
        assert text_of(call("session_search", SEARCH)).startswith(FOUND)
    assert not (data_dir / LOG_FILE).exists()


def test_a_token_is_sent_to_the_server_that_asks_for_it(home: Path, data_dir: Path) -> None:
    config = home / ".config" / "turndex" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[server]\ntoken = 'a-token-of-enough-length'\n", encoding="utf-8")
    with served(home, until_ready=False):
        with connected(turndex_mcp(home)) as call:
            wait_for(lambda: text_of(call("session_search", SEARCH)).startswith(FOUND), "what was there is found")
        with connected(turndex_mcp(home, TURNDEX_SERVER__TOKEN="another-token-of-length")) as call:
            assert text_of(call("session_list", {})).startswith("Error (unauthorized): ")


def test_settings_that_show_less_hold_beside_a_server_that_shows_more(home: Path, data_dir: Path) -> None:
    (data_dir / "turns" / "b.turns.jsonl").write_bytes(
        line_of({**HEAD, "id": "b", "project": "/home/a/lamp"}) + line_of(user("no lid is off here"))
    )
    with served(home) as client:
        assert len(client.get("/session_search?q=lid").json()["hits"]) == 2
        with connected(turndex_mcp(home, TURNDEX_ACCESS__PROJECTS='["/home/a/kettle"]')) as call:
            assert text_of(call("session_search", SEARCH)).startswith(FOUND)
            assert "lamp" not in text_of(call("session_list", {"project": "*"}))
        with connected(turndex_mcp(home, TURNDEX_MCP__TOOLS='["session_read"]')) as call:
            assert text_of(call("session_read", {"session": "lamp#1"})).startswith("lamp#1 The lid — turn 1 of 1")
            with pytest.raises(MCPError, match="there is no tool session_list"):
                call("session_list", {})


def test_a_client_says_which_project_is_meant_and_which_session_it_is(home: Path, data_dir: Path) -> None:
    with served(home), connected(turndex_mcp(home, "--project", "kettle", "--session", "a")) as call:
        text = text_of(call("session_search", {"query": "lid is off", "current": "include"}))
        assert text.startswith(FOUND.removeprefix("kettle"))
        assert "current=include brings them back" in text_of(call("session_search", {"query": "lid is off"}))
        assert text_of(call("session_search", {"query": "lid", "project": "lamp"})).startswith("Error (not_found): ")


@pytest.mark.parametrize(
    ("project", "place"),
    [
        ("kettle", Place(Binding(session="s"), "kettle")),
        ("/home/a/kettle", Place(Binding(project="/home/a/kettle", session="s"))),
        ("/home/a/../b/", Place(Binding(project="/home/b", session="s"))),
        ("*", Place(Binding(session="s"))),
    ],
)
def test_a_project_is_a_path_a_name_or_every_one(project: str, place: Place) -> None:
    assert place_of(project, "s") == place


def test_without_one_it_is_where_the_client_says_or_was_started(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    assert place_of(None, None) == Place(Binding(directory=str(home.resolve())))
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", "/home/a/kettle/src")
    assert place_of(None, None) == Place(Binding(directory="/home/a/kettle/src"))


def test_a_path_that_is_not_absolute_binds_all_the_same(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    here = str(home.resolve())
    assert place_of("./kettle", None) == Place(Binding(project=f"{here}/kettle"))
    for said, directory in (("kettle/src", f"{here}/kettle/src"), (".", here), ("", here)):
        monkeypatch.setenv("CLAUDE_PROJECT_DIR", said)
        assert place_of(None, None) == Place(Binding(directory=directory))


def test_a_directory_that_was_deleted_is_refused_unless_nothing_is_taken_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for said in ("", "kettle"):
        monkeypatch.setenv("CLAUDE_PROJECT_DIR", said)
        with pytest.raises(InvalidArgument, match="the working directory was deleted"):
            place_of(None, None)
    with pytest.raises(InvalidArgument, match="the working directory was deleted"):
        place_of("./kettle", None)
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", "/home/a/kettle")
    assert place_of(None, None) == Place(Binding(directory="/home/a/kettle"))
    assert place_of("kettle", None) == Place(Binding(), "kettle")


def test_a_project_that_is_null_on_a_call_is_the_clients() -> None:
    kettle = Place(Binding(), "kettle")
    assert placed({"query": "lid", "project": None}, kettle) == {"query": "lid", "project": "kettle"}
    assert placed({}, kettle) == {"project": "kettle"}
    assert placed({"project": "*"}, kettle) == {"project": "*"}
    assert placed({"project": ""}, kettle) == {"project": ""}


@pytest.mark.parametrize("is_the_servers", [False, True])
def test_the_form_of_answers_is_one_whoever_sets_it(home: Path, data_dir: Path, is_the_servers: bool) -> None:
    on = {"TURNDEX_MCP__STRUCTURED": "true"}
    config = home / ".config" / "turndex" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f"[mcp]\nstructured = {str(is_the_servers).lower()}\n", encoding="utf-8")
    with served(home), connected(turndex_mcp(home, **({} if is_the_servers else on))) as call:
        # The SDK's client lists the tools first, and refuses an answer that is not what the list says.
        result = call("session_search", SEARCH)
        assert text_of(result).startswith(FOUND)
        assert (result.structured_content is not None) is is_the_servers


def test_where_another_process_writes_the_reason_is_told(
    home: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_demand, "START_SECONDS", 6)
    lock = DataLock(data_dir)
    try:
        with pytest.raises(Unavailable, match=f"process {os.getpid()} already writes to .*; run: turndex serve"):
            OnDemand(Settings(), ["--data-dir", str(data_dir)]).server()
    finally:
        lock.release()


def test_what_is_not_a_server_is_not_made_to_end(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_demand, "SILENT_SECONDS", 0.1)
    Address("http://127.0.0.1:9", os.getpid(), "long gone").write(data_dir)
    lock = DataLock(data_dir)
    try:
        with pytest.raises(Held):
            displacing(data_dir, lambda: DataLock(data_dir).release())
    finally:
        lock.release()
