"""The server as a process: where it listens, what it says of itself, and what it answers on a bare socket."""

import json
import os
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from schemas.errors import InvalidArgument, Unavailable
from schemas.settings import ServerSettings
from search_api import serving
from search_api.address import Address, read_address, running_server
from search_api.serving import bound_addresses, listening, url_of
from tests.home import home_environment
from tests.served import COMMAND, served

END_SECONDS = 10
"""More than a server may take to end, on a machine that is busy with other things."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("serving")


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[httpx.Client]:
    """A server without transcripts."""
    with served(home) as client:
        yield client


def data_dir(home: Path) -> Path:
    return home / ".local/share/turndex"


def turndex(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *words], env=home_environment(home), capture_output=True, text=True, timeout=60, check=False
    )


def answer_to(client: httpx.Client, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and the rest of what comes back for bytes on a socket of their own."""
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=30) as connection:
        connection.sendall(request)
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(first.split(" ")[1]), headers, body


def test_address_json_says_where_it_is_and_healthz_that_it_is_the_same(home: Path, server: httpx.Client) -> None:
    path = data_dir(home) / "address.json"
    written = json.loads(path.read_bytes())
    assert written == {
        "url": str(server.base_url).rstrip("/"),
        "pid": written["pid"],
        "instance": server.get("/healthz").json()["instance"],
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    os.kill(written["pid"], 0)


def test_an_answer_on_a_kept_connection_does_not_wait_for_an_acknowledgement(server: httpx.Client) -> None:
    took = []
    for _ in range(20):
        began = time.perf_counter()
        assert server.get("/healthz").is_success
        took.append(time.perf_counter() - began)
    # Nagle's algorithm and late acknowledgements make it 40 ms each time.
    assert min(took) < 0.03


def test_it_listens_on_both_loopbacks(server: httpx.Client) -> None:
    if not _has_ipv6():
        return
    with httpx.Client(base_url=f"http://[::1]:{server.base_url.port}", trust_env=False) as client:
        assert client.get("/healthz").json() == server.get("/healthz").json()


def test_a_second_server_says_who_holds_the_data(home: Path, server: httpx.Client) -> None:
    done = turndex(home, "serve", "--port", str(server.base_url.port))
    assert (done.returncode, done.stdout) == (2, "")
    pid = json.loads((data_dir(home) / "address.json").read_bytes())["pid"]
    assert f"Error (unavailable): the server at {str(server.base_url).rstrip('/')} (process {pid})" in done.stderr


def test_a_port_that_is_taken_is_an_error(home: Path, server: httpx.Client) -> None:
    done = turndex(home, "serve", "--data-dir", str(home / "other"), "--port", str(server.base_url.port))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Error (invalid_argument): port {server.base_url.port} is taken" in done.stderr


def test_another_address_needs_a_token(home: Path) -> None:
    done = turndex(home, "serve", "--data-dir", str(home / "other"), "--host", "0.0.0.0")
    assert (done.returncode, done.stdout) == (2, "")
    assert "set server.token as well" in done.stderr


def test_status_asks_the_running_server(home: Path, server: httpx.Client) -> None:
    assert json.loads(turndex(home, "status", "--json").stdout)["uptime_s"] > 0
    assert " · up 0 min " in turndex(home, "status").stdout


@pytest.mark.parametrize(
    ("request_bytes", "status", "code"),
    [
        (b"GET /healthz HTTP/1.1\r\n\r\n", 403, "forbidden"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 403, "forbidden"),
        (b"GET /healthz HTTP/1.0\r\n\r\n", 403, "forbidden"),
        (b"what is this\r\n\r\n", 400, "invalid_argument"),
        (b"GET /session_search?q=" + b"x" * 1_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 413, "too_large"),
    ],
)
def test_what_is_no_request_is_refused_in_the_one_shape(
    server: httpx.Client, request_bytes: bytes, status: int, code: str
) -> None:
    answered, headers, body = answer_to(server, request_bytes)
    assert (answered, json.loads(body)["code"]) == (status, code)
    assert headers["content-type"] == "application/problem+json"
    assert headers["x-content-type-options"] == "nosniff"
    assert "date" in headers


def test_a_body_that_is_too_large_leaves_the_connection_usable(server: httpx.Client) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(40):
            yield b"x" * 50_000

    headers = {"content-type": "application/json"}
    for content in (b"x" * 2_000_000, chunks()):
        response = server.post("/session_search", content=content, headers=headers)
        assert (response.status_code, response.json()["code"]) == (413, "too_large")
        assert server.get("/healthz").status_code == 200


def test_a_url_is_taken_as_it_was_typed(server: httpx.Client) -> None:
    request = "GET /session_search?q=错误&format=text HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    status, _, body = answer_to(server, request.encode())
    assert (status, body.splitlines()[0].decode()) == (200, "nothing matches 错误")


def test_a_query_of_4096_wide_characters_fits_into_a_url(server: httpx.Client) -> None:
    assert server.get("/session_search", params={"q": "🎉" * 4096}).status_code == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_told_to_although_a_connection_is_open(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [COMMAND, "serve", "--port", "0"],
        env=home_environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("turndex: ").strip()
        with httpx.Client(base_url=url, trust_env=False) as client:
            assert client.get("/healthz").status_code == 200
            process.send_signal(number)
            began = time.monotonic()
            _, errors = process.communicate(timeout=60)
            assert time.monotonic() - began < END_SECONDS
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert not (data_dir(tmp_path) / "address.json").exists()


def test_the_demo_can_be_searched_and_leaves_nothing(tmp_path: Path) -> None:
    with served(tmp_path, ["--demo"]) as client:
        hits = client.get("/session_search", params={"q": "解析器"}).json()["hits"]
        folder = Path(client.get("/status").json()["data_dir"]).parent
        assert [hit["title"] for hit in hits] == ["错误处理"]
        assert client.get("/sessions").json()["sessions"][0]["source"] == "turn-file"
        assert folder.is_dir()
    assert not folder.exists()


def test_a_taken_port_is_stepped_over_where_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(("127.0.0.1",), 0) as first:
        taken = first[0].getsockname()[1]
        monkeypatch.setattr(serving, "DEFAULT_PORT", taken)
        monkeypatch.setattr(serving, "LAST_WALKED_PORT", taken + 15)
        with listening(("127.0.0.1",), None) as second:
            assert taken < second[0].getsockname()[1] <= taken + 15
        monkeypatch.setattr(serving, "LAST_WALKED_PORT", taken)
        with pytest.raises(Unavailable, match="are all taken"), listening(("127.0.0.1",), None):
            pass
        with pytest.raises(InvalidArgument, match="is taken"), listening(("127.0.0.1",), taken):
            pass


def test_a_port_that_only_one_loopback_has_free_is_stepped_over(monkeypatch: pytest.MonkeyPatch) -> None:
    if not _has_ipv6():
        return
    with listening(("::1",), 0) as first:
        taken = first[0].getsockname()[1]
        with pytest.raises(InvalidArgument, match="is taken"), listening(("127.0.0.1", "::1"), taken):
            pass
    with listening(("127.0.0.1", "::1"), 0) as both:
        assert both[0].getsockname()[1] == both[1].getsockname()[1]
        assert url_of(both[1]) == f"http://[::1]:{both[1].getsockname()[1]}"


@pytest.mark.parametrize(
    ("host", "addresses"),
    [
        ("127.0.0.1", ("127.0.0.1", "::1")),
        ("localhost", ("127.0.0.1", "::1")),
        ("::1", ("::1",)),
        ("127.0.0.2", ("127.0.0.2",)),
    ],
)
def test_loopback_needs_no_token(host: str, addresses: tuple[str, ...]) -> None:
    assert tuple(bound_addresses(ServerSettings(host=host))) == addresses


def test_elsewhere_needs_a_token_and_an_address() -> None:
    assert bound_addresses(ServerSettings(host="0.0.0.0", token="a-token-of-enough-length")) == ("0.0.0.0",)
    for host in ("0.0.0.0", "::", "10.0.0.7", "my.name"):
        with pytest.raises(InvalidArgument):
            bound_addresses(ServerSettings(host=host))


def test_an_address_is_believed_only_while_its_instance_answers(tmp_path: Path, server: httpx.Client) -> None:
    url = str(server.base_url).rstrip("/")
    Address(url, 1, "another-instance").write(tmp_path)
    assert read_address(tmp_path) == Address(url, 1, "another-instance")
    assert running_server(tmp_path) is None
    Address(url, 1, server.get("/healthz").json()["instance"]).write(tmp_path)
    assert running_server(tmp_path) is not None
    Address(url, 1, "another-instance").remove(tmp_path)
    assert running_server(tmp_path) is not None
    assert [path.name for path in tmp_path.iterdir()] == ["address.json"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"url": "http://localhost"}', b'{"url":"x","pid":"y","instance":"z"}']
)
def test_an_address_that_is_not_ours_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "address.json").write_bytes(content)
    assert read_address(tmp_path) is None


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.parametrize("command", ["serve", "index"])
def test_a_data_directory_that_cannot_be_made_is_unavailable(tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    done = turndex(tmp_path, command, "--data-dir", str(tmp_path / "file" / "data"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "Error (unavailable): the data directory " in done.stderr
    assert "Traceback" not in done.stderr
