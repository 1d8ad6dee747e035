"""`turndex mcp` as a process: nothing but protocol on standard output, and gone when its client is."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from indexer.lock import DataLock
from search_api.address import Address
from search_api.on_demand import LOG_FILE
from tests.home import home_environment
from tests.search_api.calling_mcp import request, tool_request
from tests.waiting import wait_for

END_SECONDS = 20
"""More than a process may take to end, on a machine that is busy with other things."""

INITIALIZE = request(
    "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
)
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}

CLI = "from search_api.cli import main; main()"
QUICK = f"""
from search_api import mcp_stdio
mcp_stdio.SLACK_SECONDS = 0
{CLI}
"""
"""The command, which waits no longer for a call than the call may take."""

NOISY = f"""
import os, warnings
from search_api import mcp_stdio
def server(self):
    print("printed by accident")
    os.system("echo said by a child")
    warnings.warn("a warning")
    raise KeyError("a fault")
mcp_stdio.OnDemand.server = server
{CLI}
"""
"""The command, with a fault of ours in every call that is as noisy as can be."""


@contextmanager
def started(home: Path, program: str = CLI, **environment: str) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(
        [sys.executable, "-W", "always", "-c", program, "mcp"],
        env=home_environment(home) | environment,
        cwd=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(home: Path, lines: Sequence[Any], program: str = CLI) -> tuple[list[dict[str, Any]], str]:
    """What the process answers to lines of input (values are sent as JSON), and what it writes to standard error."""
    raw = b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    with started(home, program) as process:
        output, errors = process.communicate(raw, timeout=60)
    assert process.returncode == 0, errors.decode()
    return [json.loads(line) for line in output.splitlines()], errors.decode()


def ask(process: "subprocess.Popen[bytes]", message: dict[str, Any]) -> dict[str, Any]:
    """Send one request and wait for its answer."""
    send(process, message)
    assert process.stdout is not None
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def send(process: "subprocess.Popen[bytes]", message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def leave(process: "subprocess.Popen[bytes]") -> None:
    """Close what the process reads and writes, as a client does that has ended, and wait for its end."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.stdout.close()
    assert process.wait(END_SECONDS) == 0


def test_a_noisy_fault_leaves_standard_output_to_the_protocol(home: Path) -> None:
    with started(home, NOISY) as process:
        assert ask(process, INITIALIZE)["result"]["serverInfo"]["name"] == "turndex"
        send(process, INITIALIZED)
        result = ask(process, tool_request("session_list", {}))["result"]
        assert result["isError"] is True
        assert result["content"][0]["text"].startswith("Error (internal): a fault of ours (KeyError); the log has it")
        rest, errors = process.communicate(timeout=END_SECONDS)
    assert (process.returncode, rest) == (0, b"")
    for noise in (b"printed by accident", b"said by a child", b"a warning", b"a fault"):
        assert noise in errors


def test_lines_that_are_no_protocol_are_answered_and_passed_over(home: Path) -> None:
    no_messages = [b"garbage", b"\xff\xfe", b"[" * 50_000, b"[]", b'{"id": 7}']
    answers, _ = said(home, [*no_messages, b"", b"  ", INITIALIZE, INITIALIZED, b'{"half": '])
    assert [(answer["id"], answer.get("error", {}).get("code")) for answer in answers if answer["id"] != 1] == [
        (None, -32700),
        (None, -32700),
        (None, -32700),
        (None, -32600),
        (7, -32600),
        (None, -32700),
    ]
    assert [answer["result"]["serverInfo"]["name"] for answer in answers if answer["id"] == 1] == ["turndex"]


def test_the_tools_are_those_of_the_server_that_answers_their_calls(home: Path) -> None:
    tool = {"name": "session_read", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}}
    with serving(home, json.dumps(answer).encode()) as server, started(home) as process:
        ask(process, INITIALIZE)
        send(process, INITIALIZED)
        assert ask(process, request("tools/list"))["result"]["tools"] == [tool]
        process.communicate(timeout=END_SECONDS)
    assert [body["method"] for body in server.bodies] == ["tools/list"]


def test_the_settings_of_a_client_leave_tools_of_the_server_out(home: Path) -> None:
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("session_search", "session_read")]
    answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).encode()
    with (
        serving(home, answer) as server,
        started(home, TURNDEX_MCP__TOOLS='["session_read", "session_list"]') as process,
    ):
        ask(process, INITIALIZE)
        send(process, INITIALIZED)
        assert ask(process, request("tools/list"))["result"]["tools"] == tools[1:]
        error = ask(process, tool_request("session_search", {"query": "lid"}))["error"]
        assert error["message"] == "there is no tool session_search; there are: session_read, session_list"
        process.communicate(timeout=END_SECONDS)
    assert [body["method"] for body in server.bodies] == ["tools/list"]


def test_where_no_server_can_be_had_the_tools_are_listed_and_their_calls_say_why(home: Path) -> None:
    (home / ".local").write_bytes(b"")
    with started(home, TURNDEX_MCP__STRUCTURED="true", TURNDEX_MCP__TOOLS='["session_list"]') as process:
        ask(process, INITIALIZE)
        send(process, INITIALIZED)
        (tool,) = ask(process, request("tools/list"))["result"]["tools"]
        assert (tool["name"], "outputSchema" in tool) == ("session_list", False)
        result = ask(process, tool_request("session_list", {}))["result"]
        assert result["content"][0]["text"].startswith("Error (unavailable): no server could be started in ")
        _, errors = process.communicate(timeout=END_SECONDS)
    assert b"the server does not list its tools: Error (unavailable)" in errors


def test_what_cannot_be_understood_says_so_on_standard_error_alone(home: Path) -> None:
    environment = home_environment(home) | {"TURNDEX_COLOUR": "red"}
    command = [sys.executable, "-c", CLI, "mcp"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error (invalid_argument): ")


def test_it_ends_with_its_client_although_it_waits_for_a_server(home: Path) -> None:
    data_dir = home / ".local" / "share" / "turndex"
    lock = DataLock(data_dir)
    try:
        with started(home) as process:
            ask(process, INITIALIZE)
            send(process, INITIALIZED)
            send(process, tool_request("session_list", {}))
            wait_for((data_dir / LOG_FILE).exists, "a server is being started")
            began = time.monotonic()
            leave(process)
            assert time.monotonic() - began < 5
        wait_for(lambda: "already writes" in (data_dir / LOG_FILE).read_text("utf-8"), "that server has ended, too")
    finally:
        lock.release()


def test_the_tools_are_not_waited_for_as_long_as_a_server_is(home: Path) -> None:
    program = f"from search_api import mcp_stdio; mcp_stdio.LIST_SECONDS = 0.5; {CLI}"
    data_dir = home / ".local" / "share" / "turndex"
    lock = DataLock(data_dir)
    try:
        with started(home, program, TURNDEX_MCP__STRUCTURED="true") as process:
            ask(process, INITIALIZE)
            send(process, INITIALIZED)
            began = time.monotonic()
            tools = ask(process, request("tools/list"))["result"]["tools"]
            assert time.monotonic() - began < 5
            assert [(len(tools), "outputSchema" in tool) for tool in tools] == [(3, False)] * 3
            leave(process)
        wait_for(lambda: "already writes" in (data_dir / LOG_FILE).read_text("utf-8"), "that server has ended, too")
    finally:
        lock.release()


class _Server(ThreadingHTTPServer):
    """Says that it is alive, and then what a test wants said."""

    daemon_threads = True

    def __init__(self, answer: bytes | None, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Said)
        self.answer = answer
        self.status = status
        self.called = threading.Event()
        self.go_on = threading.Event()
        self.bodies: list[Any] = []

    def answer_with(self, result: dict[str, Any]) -> None:
        """Answer the call that is kept waiting."""
        self.answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()
        self.go_on.set()


class _Said(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self._send(200, b'{"instance": "the-instance"}')

    def do_POST(self) -> None:
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.server.called.set()
        if self.server.answer is None:
            self.server.go_on.wait(60)
        if self.server.answer is not None:
            self._send(self.server.status, self.server.answer)

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


@contextmanager
def serving(home: Path, answer: bytes | None, status: int = 200) -> Iterator[_Server]:
    """A server that `turndex mcp` in `home` takes for its own; one without an answer keeps callers waiting."""
    data_dir = home / ".local" / "share" / "turndex"
    data_dir.mkdir(parents=True)
    with _Server(answer, status) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        Address(f"http://127.0.0.1:{server.server_port}", 1, "the-instance").write(data_dir)
        yield server
        server.go_on.set()
        server.shutdown()
        thread.join()


@contextmanager
def under_way(home: Path, **environment: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process with a call that its server does not answer."""
    with serving(home, None) as server, started(home, QUICK, **environment) as process:
        ask(process, INITIALIZE)
        send(process, INITIALIZED)
        send(process, tool_request("session_list", {}))
        assert server.called.wait(END_SECONDS)
        yield process


def test_it_ends_with_its_client_although_a_call_is_under_way(home: Path) -> None:
    with under_way(home, TURNDEX_LIMITS__SEARCH_SECONDS="1000") as process:
        leave(process)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_although_a_call_is_under_way(home: Path, number: signal.Signals) -> None:
    with under_way(home, TURNDEX_LIMITS__SEARCH_SECONDS="1000") as process:
        process.send_signal(number)
        assert process.wait(END_SECONDS) == 0
        assert process.stdout is not None
        assert [json.loads(line)["error"]["message"] for line in process.stdout] == ["Connection closed"]


def test_a_signal_ends_it_while_it_waits_for_its_client(home: Path) -> None:
    with started(home) as process:
        ask(process, INITIALIZE)
        process.send_signal(signal.SIGINT)
        assert process.wait(END_SECONDS) == 0
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


def test_it_ends_when_nobody_takes_its_answers(home: Path) -> None:
    with started(home) as process:
        ask(process, INITIALIZE)
        assert process.stdout is not None
        process.stdout.close()
        send(process, request("ping"))
        assert process.wait(END_SECONDS) == 0
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


def test_what_was_asked_before_the_input_ended_is_answered(home: Path) -> None:
    with serving(home, None) as server, started(home) as process:
        for message in (INITIALIZE, INITIALIZED, tool_request("session_list", {}) | {"id": 2}):
            send(process, message)
        assert process.stdin is not None
        process.stdin.close()
        assert server.called.wait(END_SECONDS)
        server.answer_with({"content": [{"type": "text", "text": "found"}]})
        assert process.stdout is not None
        answers = [json.loads(line) for line in process.stdout]
        assert process.wait(END_SECONDS) == 0
    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[1]["result"]["content"][0]["text"] == "found"


def test_what_was_called_off_is_not_waited_for(home: Path) -> None:
    with under_way(home, TURNDEX_LIMITS__SEARCH_SECONDS="1000") as process:
        send(process, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        output, errors = process.communicate(timeout=END_SECONDS)
    assert (process.returncode, output) == (0, b""), errors


def test_a_server_that_takes_a_call_and_does_not_answer_is_said_to_do_so(home: Path) -> None:
    with under_way(home, TURNDEX_LIMITS__SEARCH_SECONDS="0.5") as process:
        assert process.stdout is not None
        result = json.loads(process.stdout.readline())["result"]
        assert result["isError"] is True
        assert re.fullmatch(
            r"Error \(timeout\): the server at http://127.0.0.1:[0-9]+ \(process 1\) took the call and has not "
            r"answered it for 0.5 s",
            result["content"][0]["text"],
        )
        process.communicate(timeout=END_SECONDS)


@pytest.mark.parametrize(
    ("status", "answer", "says"),
    [
        (200, b"<html>", "Error (internal): the server answered what is no answer, with status 200"),
        (200, b"[]", "Error (internal): the server answered what is no answer, with status 200"),
        (500, b"", "Error (internal): the server answered what is no answer, with status 500"),
        (
            413,
            b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "Error (too_large): too much"}}',
            "Error (too_large): too much",
        ),
    ],
)
def test_what_a_server_says_otherwise_is_told(home: Path, status: int, answer: bytes, says: str) -> None:
    with serving(home, answer, status), started(home) as process:
        ask(process, INITIALIZE)
        send(process, INITIALIZED)
        result = ask(process, tool_request("session_list", {}))["result"]
        assert (result["isError"], result["content"][0]["text"]) == (True, says)
        process.communicate(timeout=END_SECONDS)


def test_a_number_that_no_server_could_read_is_refused(home: Path) -> None:
    with serving(home, None) as server, started(home) as process:
        ask(process, INITIALIZE)
        send(process, INITIALIZED)
        call = json.dumps(tool_request("session_search", {"query": "x", "limit": 7}))
        assert process.stdin is not None
        assert process.stdout is not None
        for number in ("1e400", "1" * 5000):
            process.stdin.write(call.replace('"limit": 7', f'"limit": {number}').encode() + b"\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        error, result = (next(answer[key] for answer in answers if key in answer) for key in ("error", "result"))
        assert (error["code"], error["message"]) == (-32600, "a number has more than 4,000 digits")
        says = "Error (invalid_argument): limit: no number here is that large"
        assert (result["isError"], result["content"][0]["text"]) == (True, says)
        assert [answer["id"] for answer in answers] == [1, 1]
        process.communicate(timeout=END_SECONDS)
    assert server.bodies == []


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_without_standard_input_or_output_it_says_so(home: Path, closed: str) -> None:
    command = ["sh", "-c", f'exec "$0" -c "{CLI}" mcp {closed}', sys.executable]
    done = subprocess.run(
        command,
        env=home_environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error (unavailable): turndex mcp speaks with a client on standard input and output")


def test_half_an_emoji_is_passed_on_as_it_is_stored(home: Path) -> None:
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "found"}]}}
    with serving(home, json.dumps(answer).encode()) as server, started(home) as process:
        ask(process, INITIALIZE)
        send(process, INITIALIZED)
        answered = ask(process, tool_request("session_search", {"query": "cut \ud83d, whole \U0001f389"}))
        assert answered["result"]["content"][0]["text"] == "found"
        process.communicate(timeout=END_SECONDS)
    assert server.bodies[0]["params"]["arguments"] == {"query": "cut \ufffd, whole \U0001f389"}
