"""`/mcp`: who may call, both protocol eras, and what is said of calls that are off."""

import asyncio
import json
import threading
from typing import Any

import httpx
import pytest

from schemas.answers import SearchAnswer
from schemas.requests import SearchRequest, SessionsRequest
from search_api.caller import Caller
from tests.search_api.answers import FakeArchive
from tests.search_api.calling import BASE_URL, app_of, call, get
from tests.search_api.calling_mcp import LEGACY, modern, post_mcp, refused, request, tool_request

SEARCH = tool_request("session_search", {"query": "off by one"})
TOKEN = "a-token-of-enough-length"


def text_in(response: httpx.Response) -> str:
    """The text of a tool's answer."""
    assert response.status_code == 200, response.text
    (content,) = response.json()["result"]["content"]
    return str(content["text"])


def test_both_eras_answer_alike() -> None:
    body, headers = modern(SEARCH)
    answers = [post_mcp(app_of(), SEARCH), post_mcp(app_of(), body, headers), post_mcp(app_of(), SEARCH, {})]
    assert len({text_in(answer) for answer in answers}) == 1
    assert all(answer.headers["content-type"] == "application/json" for answer in answers)
    assert all("mcp-session-id" not in answer.headers for answer in answers)


def test_an_older_client_shakes_hands() -> None:
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    result = post_mcp(app_of(), request("initialize", params), {}).json()["result"]
    assert (result["protocolVersion"], result["serverInfo"]["name"]) == ("2025-06-18", "turndex")
    assert result["capabilities"] == {"tools": {"listChanged": False}}
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert post_mcp(app_of(), initialized).status_code == 202


def test_a_current_client_discovers() -> None:
    body, headers = modern(request("server/discover"))
    assert post_mcp(app_of(), body, headers).json()["result"]["supportedVersions"] == ["2026-07-28"]


@pytest.mark.parametrize("origin", ["http://127.0.0.1:7480", "http://localhost:7480", "https://evil.example", "null"])
def test_a_web_page_is_refused_whatever_its_origin(origin: str) -> None:
    archive = FakeArchive()
    response = post_mcp(app_of(archive), SEARCH, {**LEGACY, "origin": origin})
    assert refused(response) == (403, "forbidden")
    preflight = {"origin": origin, "access-control-request-method": "POST"}
    asked_before = call(app_of(archive), "OPTIONS", "/mcp", headers=preflight)
    assert asked_before.status_code == 403
    for answer in (response, asked_before):
        assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert archive.calls == []


@pytest.mark.parametrize("host", ["evil.example", "evil.example:7480", "127.0.0.1.evil.example", "0.0.0.0:7480"])
def test_a_name_that_was_made_to_point_here_is_refused(host: str) -> None:
    response = post_mcp(app_of(), SEARCH, {**LEGACY, "host": host})
    assert refused(response) == (403, "forbidden")


def test_a_token_that_is_set_must_be_sent() -> None:
    app_settings: dict[str, Any] = {"server": {"token": TOKEN}}
    assert refused(post_mcp(app_of(**app_settings), SEARCH)) == (401, "unauthorized")
    assert post_mcp(app_of(**app_settings), SEARCH, {**LEGACY, "authorization": f"Bearer {TOKEN}"}).status_code == 200


@pytest.mark.parametrize("headers", [LEGACY, modern(SEARCH)[1]])
def test_a_body_that_is_too_large_is_refused(headers: dict[str, str]) -> None:
    body = tool_request("session_search", {"query": "x" * 2_000_000})
    response = post_mcp(app_of(), body, headers)
    assert refused(response) == (413, "too_large")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_only_posts_are_answered(method: str) -> None:
    response = call(app_of(), method, "/mcp", headers={"accept": "text/event-stream"})
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


def test_the_description_of_the_routes_is_of_the_others() -> None:
    assert "/mcp" not in get(app_of(), "/openapi.json").json()["paths"]


@pytest.mark.parametrize(
    ("headers", "caller"),
    [
        ({}, Caller()),
        ({"x-cydonia-project": "/home/a/kettle", "x-cydonia-session": "1790"}, Caller("/home/a/kettle", "1790")),
        ({"x-turndex-project": "%2Fhome%2Fa"}, Caller("/home/a")),
        ({"x-cydonia-project": "%ff"}, Caller()),
    ],
)
@pytest.mark.parametrize("is_modern", [False, True])
def test_headers_bind_a_call(headers: dict[str, str], caller: Caller, is_modern: bool) -> None:
    archive = FakeArchive()
    body, era = modern(SEARCH) if is_modern else (SEARCH, LEGACY)
    assert post_mcp(app_of(archive), body, {**era, **headers}).status_code == 200
    assert archive.calls == [(SearchRequest(query="off by one"), caller)]


@pytest.mark.parametrize("is_modern", [False, True])
def test_a_header_that_binds_to_no_path_is_refused(is_modern: bool) -> None:
    archive = FakeArchive()
    body, era = modern(SEARCH) if is_modern else (SEARCH, LEGACY)
    response = post_mcp(app_of(archive), body, {**era, "x-turndex-project": "kettle"})
    assert text_in(response).startswith("Error (invalid_argument): the header x-turndex-project takes an absolute path")
    assert (response.json()["result"]["isError"], archive.calls) == (True, [])


@pytest.mark.parametrize("is_modern", [False, True])
def test_a_header_that_binds_twice_is_refused(is_modern: bool) -> None:
    archive = FakeArchive()
    body, era = modern(SEARCH) if is_modern else (SEARCH, LEGACY)
    headers = [*era.items(), ("x-turndex-project", "/home/a"), ("x-turndex-project", "/home/b")]
    response = post_mcp(app_of(archive), body, headers)
    assert text_in(response).startswith("Error (invalid_argument): the header x-turndex-project is there twice")
    assert archive.calls == []


def test_arguments_may_be_left_out() -> None:
    archive = FakeArchive()
    assert post_mcp(app_of(archive), request("tools/call", {"name": "session_list"})).status_code == 200
    assert archive.calls == [(SessionsRequest(), Caller())]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (tool_request("session_write", {}), -32602),
        (tool_request("session_search", ["query"]), -32602),
        (request("tools/call", {}), -32602),
        (request("resources/list"), -32601),
        (request("no/such/method"), -32601),
    ],
)
@pytest.mark.parametrize("is_modern", [False, True])
def test_only_what_the_protocol_calls_an_error_is_one(body: dict[str, Any], code: int, is_modern: bool) -> None:
    body, headers = modern(body) if is_modern else (body, LEGACY)
    response = post_mcp(app_of(), body, headers)
    assert response.json()["error"]["code"] == code
    assert "Traceback" not in response.text


@pytest.mark.parametrize(
    ("body", "code", "request_id"),
    [
        (b"", -32700, None),
        (b"{", -32700, None),
        (b"\xff", -32700, None),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"n": NaN}}', -32700, None),
        (b"[" * 900_000, -32700, None),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"n": -%s}}' % (b"1" * 5000), -32600, 7),
        (b'{"jsonrpc": "2.0", "id": %s, "method": "ping"}' % (b"1" * 5000), -32600, None),
        (b"[]", -32600, None),
        (b"null", -32600, None),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600, None),
        (b'{"jsonrpc": "2.0"}', -32600, None),
        (b'{"jsonrpc": "1.0", "id": "a", "method": "ping"}', -32600, "a"),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call"}', -32602, 7),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": 3}}', -32602, 7),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "a", "arguments": []}}', -32602, 7),
    ],
)
@pytest.mark.parametrize("headers", [LEGACY, {}, {"mcp-protocol-version": "2026-07-28"}])
def test_a_body_that_is_no_request_is_answered_with_an_error_of_the_protocol(
    body: bytes, code: int, request_id: str | int | None, headers: dict[str, str]
) -> None:
    response = post_mcp(app_of(), body, headers)
    assert (response.status_code, response.headers["content-type"]) == (400, "application/json")
    said = response.json()
    assert (list(said), said["id"], said["error"]["code"]) == (["jsonrpc", "id", "error"], request_id, code)
    assert "pydantic" not in response.text


@pytest.mark.parametrize("version", ["2023-01-01", "2027-01-01", "x", ""])
@pytest.mark.parametrize("is_modern", [False, True])
def test_a_version_of_the_protocol_that_is_not_spoken_is_refused_with_those_that_are(
    version: str, is_modern: bool
) -> None:
    body, era = modern(SEARCH) if is_modern else (SEARCH, LEGACY)
    response = post_mcp(app_of(), body, {**era, "mcp-protocol-version": version})
    assert (response.status_code, response.headers["content-type"]) == (400, "application/json")
    error = response.json()["error"]
    assert (error["code"], error["data"]["requested"]) == (-32022, version)
    assert {"2025-06-18", "2025-11-25", "2026-07-28"} < set(error["data"]["supported"])


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])
@pytest.mark.parametrize("is_modern", [False, True])
def test_a_body_of_another_type_is_refused_as_on_every_route(media_type: str, is_modern: bool) -> None:
    body, era = modern(SEARCH) if is_modern else (SEARCH, LEGACY)
    response = post_mcp(app_of(), body, {**era, "content-type": media_type})
    assert refused(response) == (415, "unsupported_media_type")


@pytest.mark.parametrize("is_modern", [False, True])
def test_how_the_type_of_a_body_is_written_does_not_matter(is_modern: bool) -> None:
    body, era = modern(SEARCH) if is_modern else (SEARCH, LEGACY)
    response = post_mcp(app_of(), body, {**era, "content-type": "APPLICATION/JSON ; Charset=UTF-8"})
    assert "result" in response.json()


@pytest.mark.parametrize("is_modern", [False, True])
def test_a_client_that_takes_no_json_is_told_so(is_modern: bool) -> None:
    body, era = modern(SEARCH) if is_modern else (SEARCH, LEGACY)
    response = post_mcp(app_of(), body, {**era, "accept": "text/event-stream"})
    assert (response.status_code, response.json()["error"]["code"]) == (406, -32600)


@pytest.mark.parametrize("accept", ["application/json", "*/*", "application/json;q=0.5, text/event-stream"])
@pytest.mark.parametrize("is_modern", [False, True])
def test_a_client_that_takes_json_gets_it(accept: str, is_modern: bool) -> None:
    for message in (SEARCH, request("subscriptions/listen", {"notifications": {}})):
        body, era = modern(message) if is_modern else (message, LEGACY)
        response = post_mcp(app_of(), body, {**era, "accept": accept})
        assert response.headers["content-type"] == "application/json"
        assert "result" in response.json() or response.json()["error"]["code"] == -32601


@pytest.mark.parametrize("is_modern", [False, True])
def test_half_an_emoji_is_searched_as_it_is_stored(is_modern: bool) -> None:
    archive = FakeArchive()
    body = tool_request("session_search", {"query": "cut \ud83d, whole \U0001f389"})
    body, headers = modern(body) if is_modern else (body, LEGACY)
    assert post_mcp(app_of(archive), json.dumps(body).encode(), headers).status_code == 200
    assert archive.calls[0][0] == SearchRequest(query="cut \ufffd, whole \U0001f389")


class _Blocked(FakeArchive):
    """Searches until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Event()
        self.go_on = threading.Event()

    def search(self, request: SearchRequest, caller: Caller) -> SearchAnswer:
        self.entered.set()
        assert self.go_on.wait(30)
        return super().search(request, caller)


def test_one_call_too_many_is_busy() -> None:
    archive = _Blocked()
    app = app_of(archive, limits={"concurrent_calls": 1, "waiting_calls": 0})

    async def calls() -> list[httpx.Response]:
        headers = {"accept": "application/json", **LEGACY}
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE_URL, headers=headers) as client,
        ):
            first = asyncio.create_task(client.post("/mcp", json=SEARCH))
            assert await asyncio.to_thread(archive.entered.wait, 30)
            second = await client.post("/mcp", json=SEARCH)
            listed = await client.post("/mcp", json=request("tools/list"))
            archive.go_on.set()
            return [await first, second, listed]

    first, second, listed = asyncio.run(calls())
    assert "off by one" in text_in(first)
    assert text_in(second) == "Error (busy): too many calls at once; try again in a second"
    assert second.json()["result"]["isError"] is True
    assert len(listed.json()["result"]["tools"]) == 3
