import json
import logging
from collections.abc import AsyncIterator

import httpx
import pytest

from search_api.guard import prefers_text
from tests.search_api.answers import FakeArchive
from tests.search_api.calling import app_of, call, get, post, status_with_headers

TOKEN = "a-token-of-enough-length"


def assert_is_problem(response: httpx.Response, status: int, code: str) -> None:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert list(body) == ["type", "title", "status", "detail", "code", "candidates"]
    assert (body["status"], body["code"], body["type"]) == (status, code, f"/docs#{code}")


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:7480",
        "LocalHost.",
        "localhost.:7480",
        "127.0.0.1",
        "127.0.0.1:1",
        "[::1]",
        "[::1]:7480",
        "my.name:80",
        "other",
        "10.0.0.7:9",
    ],
)
def test_a_host_that_is_ours_is_let_in(host: str) -> None:
    server = {"allowed_hosts": ["My.Name", "other."], "host": "10.0.0.7"}
    assert status_with_headers(app_of(server=server), [("Host", host)]) == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "localhost..",
        "::1",
        "[::1",
        "localhost:",
        "localhost:x",
        "localhost:99999999999",
        "user@localhost",
        "127.0.0.1.nip.example",
        "localhost/",
        "0.0.0.0",
    ],
)
def test_another_host_is_forbidden(host: str) -> None:
    # RFC 9110 allows an empty port; no client sends one.
    expected = 200 if host == "localhost:" else 403
    assert status_with_headers(app_of(), [("Host", host)]) == expected


def test_a_missing_or_doubled_host_is_forbidden() -> None:
    app = app_of()
    assert status_with_headers(app, []) == 403
    assert status_with_headers(app, [("Host", "localhost"), ("Host", "localhost")]) == 403


def test_the_host_is_checked_on_every_route() -> None:
    app = app_of()
    for path in ("/session_search", "/docs", "/openapi.json", "/nowhere"):
        assert_is_problem(get(app, path, headers={"host": "evil.example"}), 403, "forbidden")


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:7480", 200),
        ("http://127.0.0.1:3000", 403),
        ("http://localhost:7480", 403),
        ("https://127.0.0.1:7480", 403),
        ("http://evil.example", 403),
        ("null", 403),
        ("", 403),
    ],
)
def test_an_origin_must_be_the_servers_own(origin: str, status: int) -> None:
    assert get(app_of(), "/session_search?q=x", headers={"origin": origin}).status_code == status


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/session_search?q=x", {"sec-fetch-site": "none"}, 200),
        ("/session_search?q=x", {"sec-fetch-site": "same-origin"}, 200),
        ("/session_search?q=x", {"sec-fetch-site": "cross-site"}, 403),
        ("/session_search?q=x", {"sec-fetch-site": "same-site"}, 403),
        ("/session_search?q=x", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 403),
        ("/docs", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 200),
        ("/docs", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403),
        ("/docs", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}, 403),
    ],
)
def test_another_site_may_only_link_to_a_page(path: str, headers: dict[str, str], status: int) -> None:
    assert get(app_of(), path, headers=headers).status_code == status


def test_with_a_token_every_route_but_healthz_asks_for_it() -> None:
    app = app_of(server={"token": TOKEN})
    assert get(app, "/healthz").status_code == 200
    for path in ("/session_search?q=x", "/status", "/readyz", "/docs", "/openapi.json", "/nowhere"):
        response = get(app, path)
        assert_is_problem(response, 401, "unauthorized")
        assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer {TOKEN}", 200),
        (f"Bearer {TOKEN}x", 401),
        (f"Basic {TOKEN}", 401),
        (TOKEN, 401),
        ("Bearer", 401),
        ("Bearer é", 401),
    ],
)
def test_the_token_must_be_right(authorization: str, status: int) -> None:
    app = app_of(server={"token": TOKEN})
    response = get(app, "/status", headers={"authorization": authorization.encode("latin-1")})
    assert response.status_code == status


def test_a_body_over_the_limit_is_too_large_and_never_parsed() -> None:
    archive = FakeArchive()
    app = app_of(archive, limits={"body_bytes": 100})
    assert post(app, "/session_search", json={"query": "x" * 50}).status_code == 200
    assert_is_problem(post(app, "/session_search", json={"query": "x" * 100}), 413, "too_large")
    assert len(archive.calls) == 1


def test_a_body_of_unannounced_length_is_too_large_as_soon_as_it_is() -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while taken < 10_000:
            taken += 1
            yield b"x" * 64

    app = app_of(limits={"body_bytes": 1000})
    response = post(app, "/session_search", content=endless(), headers={"content-type": "application/json"})
    assert_is_problem(response, 413, "too_large")
    assert taken < 20


@pytest.mark.parametrize("path", ["/session_search?q=x", "/session_search", "/nowhere", "/docs", "/healthz"])
def test_every_answer_carries_the_security_headers(path: str) -> None:
    headers = get(app_of(), path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert headers.get_list("date") == [headers["date"]]


def test_an_unknown_route_is_not_found_and_names_those_there_are() -> None:
    response = get(app_of(), "/session_search/")
    assert_is_problem(response, 404, "not_found")
    assert "/session_search" in response.json()["candidates"]


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", "/session_search", "GET, POST, HEAD"),
        ("OPTIONS", "/session_read", "GET, POST, HEAD"),
        ("POST", "/status", "GET, HEAD"),
        ("POST", "/docs", "GET, HEAD"),
    ],
)
def test_another_method_is_not_allowed(method: str, path: str, allow: str) -> None:
    response = call(app_of(), method, path)
    assert_is_problem(response, 405, "method_not_allowed")
    assert response.headers["allow"] == allow


@pytest.mark.parametrize("path", ["/session_search?q=x", "/session_search", "/status", "/docs", "/nowhere"])
def test_head_answers_as_get_without_a_body(path: str) -> None:
    app = app_of()
    got, head = get(app, path), call(app, "HEAD", path)
    assert head.content == b""
    assert head.status_code == got.status_code
    assert head.headers["content-length"] == got.headers["content-length"]


def test_a_fault_of_ours_is_logged_with_the_id_that_the_answer_names(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        response = get(app_of(FakeArchive(searched=KeyError("a secret line"))), "/session_search?q=x")
    assert_is_problem(response, 500, "internal")
    assert "secret" not in response.text
    incident = response.json()["detail"].rsplit(" ", 1)[1]
    assert incident in caplog.text
    assert "a secret line" in caplog.text


@pytest.mark.parametrize(
    ("path", "headers"),
    [("/nowhere?format=text", {}), ("/nowhere", {"accept": "text/plain"}), ("/session_search?format=text", {})],
)
def test_a_refusal_takes_the_form_that_the_caller_wants(path: str, headers: dict[str, str]) -> None:
    response = get(app_of(), path, headers=headers)
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.text.startswith("Error (")
    assert response.text.count("\n") == 1


def test_a_refusal_of_the_guard_takes_that_form_too() -> None:
    response = get(app_of(), "/status", headers={"host": "evil.example", "accept": "text/plain"})
    assert response.text.startswith("Error (forbidden): the Host evil.example is not this server's")


@pytest.mark.parametrize(
    ("accept", "is_text"),
    [
        ("text/plain", True),
        ("Text/Plain;q=0.5", True),
        ("text/plain, */*;q=0.1", True),
        ("text/plain;q=0.9, application/json;q=0.8", True),
        ("application/json, text/plain, */*", False),
        ("text/plain, application/json", False),
        ("text/plain;q=0.5, */*;q=0.8", False),
        ("text/html, text/plain;q=0.9", False),
        ("text/plain;q=0", False),
        ("*/*", False),
        ("", False),
        (",;,", False),
    ],
)
def test_accept_chooses_text_only_where_it_has_the_highest_weight(accept: str, is_text: bool) -> None:
    assert prefers_text([accept]) is is_text


def test_a_problem_is_json_that_any_client_reads() -> None:
    response = get(app_of(), "/session_search?q=x&limit=21")
    assert json.loads(response.content)["detail"].startswith("limit: ")
