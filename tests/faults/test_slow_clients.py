"""Clients that begin and do not go on: none of them is waited for without an end."""

import http.client
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.home import home_environment

PROGRAM = """
from search_api import serving
serving.HEAD_SECONDS = 0.5
serving.LINGER_SECONDS = 0.2
from search_api.cli import main
main()
"""
"""The command, with short times where no setting has them."""

JSON = "content-type: application/json\r\naccept: application/json\r\n"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Where a server listens that is soon tired of waiting."""
    environment = home_environment(tmp_path_factory.mktemp("slow")) | {"TURNDEX_LIMITS__BODY_SECONDS": "0.5"}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "serve", "--port", "0"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().rpartition(":")[2])
        finally:
            process.terminate()
            process.communicate(timeout=30)


@contextmanager
def connection_to(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        yield connection


def post(path: str, port: int, body: bytes, length: int) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{JSON}content-length: {length}\r\n\r\n"
    return head.encode() + body


def rest_of(connection: socket.socket) -> bytes:
    """What is sent until the server closes; one that does not is a failure after ten seconds."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("path", ["/session_search", "/session_read", "/sessions", "/mcp"])
def test_a_body_that_stops_half_way_ends_in_a_refusal(port: int, path: str) -> None:
    with connection_to(port) as connection:
        connection.sendall(post(path, port, b'{"query": ', 100))
        head, _, body = rest_of(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    refusal = json.loads(body)["error"]["data"] if path == "/mcp" else json.loads(body)
    assert (refusal["code"], refusal["detail"]) == ("timeout", "the body did not arrive within 0.5 s")


def test_a_body_that_comes_byte_by_byte_has_no_more_time(port: int) -> None:
    is_over = threading.Event()
    with connection_to(port) as connection:
        connection.sendall(post("/mcp", port, b"{", 100_000))

        def dribble() -> None:
            while not is_over.wait(0.05):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

        dribbling = threading.Thread(target=dribble)
        dribbling.start()
        try:
            assert connection.recv(65536).startswith(b"HTTP/1.1 503 ")
            with pytest.raises(ConnectionError):
                while connection.recv(65536):
                    pass
                raise ConnectionResetError
        finally:
            is_over.set()
            dribbling.join()


def test_a_body_that_no_route_reads_holds_no_connection(port: int) -> None:
    with connection_to(port) as connection:
        connection.sendall(f"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-length: 9\r\n\r\n1".encode())
        assert rest_of(connection).startswith(b"HTTP/1.1 200 ")


def test_a_head_that_stops_half_way_or_does_not_come_is_not_waited_for(port: int) -> None:
    for begun in (b"", b"GET /hea", b"GET /healthz HTTP/1.1\r\nhost: "):
        with connection_to(port) as connection:
            connection.sendall(begun)
            assert rest_of(connection) == b""


def test_nor_is_the_one_of_a_later_request(port: int) -> None:
    with connection_to(port) as connection:
        connection.sendall(f"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"GET /hea")
        assert b"HTTP/1.1" not in rest_of(connection)


def test_a_request_that_follows_in_time_is_answered_on_the_same_connection(port: int) -> None:
    pause = threading.Event()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.auto_open = False
    connection.connect()
    for _ in range(3):
        connection.request("GET", "/healthz")
        assert b"alive" in connection.getresponse().read()
        assert not pause.wait(0.6)  # longer than a head may take, and that is the point
    connection.close()
