"""Clients of `/mcp` that do not behave: the server stays well, and says what was wrong."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from mcp.shared.exceptions import MCPError

from tests.indexer.archives import line_of, user
from tests.mcp_clients import connected
from tests.search_api.calling_mcp import JSON_HEADERS, LEGACY, modern, refused, tool_request
from tests.served import served
from tests.waiting import wait_for

HEAD = {"type": "session", "version": 1, "id": "a", "project": "/home/a/kettle", "title": "The lid"}
SEARCH = tool_request("session_search", {"query": "lid is off"})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    home = tmp_path_factory.mktemp("nasty")
    turns = home / ".local" / "share" / "turndex" / "turns"
    turns.mkdir(parents=True)
    (turns / "a.turns.jsonl").write_bytes(line_of(HEAD) + line_of(user("the lid is off")))
    with served(home) as client:
        client.headers.update(JSON_HEADERS)
        yield client


@pytest.fixture
def pid(server: httpx.Client) -> int:
    data_dir = Path(server.get("/status").json()["data_dir"])
    return int(json.loads((data_dir / "address.json").read_bytes())["pid"])


def post(server: httpx.Client, body: object, headers: dict[str, str]) -> httpx.Response:
    return server.post("/mcp", content=json.dumps(body).encode(), headers=headers)


def check_it_is_well(server: httpx.Client) -> None:
    """Both eras are answered."""
    for body, headers in ((SEARCH, LEGACY), modern(SEARCH)):
        result = post(server, body, headers).json()["result"]
        assert result["content"][0]["text"].startswith("kettle#1:1 The lid — the lid is off\n")


def raw_request(server: httpx.Client, length: int, body: bytes, *, is_modern: bool) -> bytes:
    era = modern(SEARCH)[1] if is_modern else LEGACY
    headers = {**JSON_HEADERS, **era, "host": f"127.0.0.1:{server.base_url.port}", "content-length": str(length)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body


def connection_to(server: httpx.Client) -> socket.socket:
    return socket.create_connection((server.base_url.host, server.base_url.port), timeout=30)


def open_sockets(pid: int) -> int:
    """How many sockets a process has open, where the system tells."""
    count = 0
    for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
        with suppress(FileNotFoundError):  # closed meanwhile
            count += os.readlink(descriptor).startswith("socket:")
    return count


@pytest.mark.parametrize("is_modern", [False, True])
def test_half_a_body_and_gone(server: httpx.Client, pid: int, is_modern: bool) -> None:
    check_it_is_well(server)
    before = open_sockets(pid)
    for _ in range(20):
        with connection_to(server) as connection:
            connection.sendall(raw_request(server, 10_000, b'{"jsonrpc": "2.0", ', is_modern=is_modern))
    check_it_is_well(server)
    wait_for(lambda: open_sockets(pid) <= before, "the connections are closed")


@pytest.mark.parametrize("is_modern", [False, True])
def test_gone_before_the_answer(server: httpx.Client, pid: int, is_modern: bool) -> None:
    check_it_is_well(server)
    before = open_sockets(pid)
    body = json.dumps(modern(SEARCH)[0] if is_modern else SEARCH).encode()
    for _ in range(20):
        with connection_to(server) as connection:
            connection.sendall(raw_request(server, len(body), body, is_modern=is_modern))
    check_it_is_well(server)
    wait_for(lambda: open_sockets(pid) <= before, "the connections are closed")


def test_a_stream_cannot_be_held_open(server: httpx.Client) -> None:
    response = server.get("/mcp", headers={"accept": "text/event-stream", **LEGACY})
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    listening = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {"notifications": {}}}
    body, headers = modern(listening)
    assert post(server, body, headers).json()["error"]["code"] == -32601
    check_it_is_well(server)


@pytest.mark.parametrize("is_modern", [False, True])
def test_ten_megabytes_of_arguments(server: httpx.Client, is_modern: bool) -> None:
    call = tool_request("session_search", {"query": "x" * 10_000_000})
    body, headers = modern(call) if is_modern else (call, LEGACY)
    response = post(server, body, headers)
    assert refused(response) == (413, "too_large")
    check_it_is_well(server)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_is_told_that_its_arguments_are_too_large(server: httpx.Client, mode: str) -> None:
    with connected(str(server.base_url.join("/mcp")), mode) as call:
        with pytest.raises(MCPError, match=r"^Error \(too_large\): the body is larger than 1,000,000 bytes$"):
            call("session_search", {"query": "x" * 10_000_000})
        assert not call("session_search", {"query": "x"}).is_error
    check_it_is_well(server)


@pytest.mark.parametrize("is_modern", [False, True])
def test_ten_megabytes_of_arguments_of_a_length_that_is_not_told(server: httpx.Client, is_modern: bool) -> None:
    headers = modern(SEARCH)[1] if is_modern else LEGACY
    response = server.post("/mcp", content=(b"x" * 100_000 for _ in range(100)), headers=headers)
    assert refused(response) == (413, "too_large")
    check_it_is_well(server)


@pytest.mark.parametrize("is_modern", [False, True])
def test_a_tool_that_does_not_exist(server: httpx.Client, is_modern: bool) -> None:
    call = tool_request("session_write", {})
    body, headers = modern(call) if is_modern else (call, LEGACY)
    error = post(server, body, headers).json()["error"]
    assert error["message"] == "there is no tool session_write; there are: session_search, session_read, session_list"
    check_it_is_well(server)


def test_a_million_arguments_and_arguments_nested_beyond_reason(server: httpx.Client) -> None:
    many = tool_request("session_search", {f"a{n}": n for n in range(50_000)})
    assert post(server, many, LEGACY).json()["result"]["isError"] is True
    deep = tool_request("session_search", {"query": json.loads("[" * 400 + "]" * 400)})
    for body, headers in ((deep, LEGACY), modern(deep)):
        response = post(server, body, headers)
        assert response.status_code < 500, response.text
        assert "error" in response.json() or response.json()["result"]["isError"]
    nested = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_search","arguments":{"query":'
    for headers in (LEGACY, modern(SEARCH)[1]):
        response = server.post("/mcp", content=nested + b"[" * 400_000, headers=headers)
        assert "error" in response.json()
    check_it_is_well(server)
