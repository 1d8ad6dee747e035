import asyncio
import threading
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest

from schemas.answers import Indexing, SearchAnswer
from schemas.errors import Timeout
from schemas.items import Kind
from schemas.requests import ReadRequest, SearchRequest, SessionsRequest
from schemas.settings import Settings
from search_api.caller import Caller
from search_api.docs_page import error_kinds
from search_api.http import create_app
from search_api.render import json_form, text_form
from tests.search_api.answers import PROJECTS, READ, SEARCHED, STATUS, FakeArchive
from tests.search_api.calling import BASE_URL, app_of, get, post

ROUTES = ["/session_search", "/session_read", "/sessions", "/projects", "/status", "/healthz", "/readyz"]
DOCS = Path(__file__).parents[2] / "docs" / "http.md"


def code_of(response: httpx.Response) -> str:
    assert not response.is_success, response.text
    return str(response.json()["code"])


def test_a_search_answers_its_json_form() -> None:
    response = get(app_of(), "/session_search", params={"q": "off by one"})
    assert response.headers["content-type"] == "application/json"
    assert response.content == json_form(SEARCHED)


def test_a_search_answers_its_text_form() -> None:
    response = get(app_of(), "/session_search", params={"q": "off by one", "format": "text"})
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.text == text_form(SEARCHED) + "\n"


def test_get_and_post_read_the_same_arguments() -> None:
    archive = FakeArchive()
    app = app_of(archive)
    query = "query=off+by+one&session=%2343:5&full=1&kind=user,tool&kind=notice&agent=codex&limit=3&archived=only"
    arguments = {
        "query": "off by one",
        "session": "#43:5",
        "full": True,
        "kind": ["user", "tool", "notice"],
        "agent": ["codex"],
        "limit": 3,
        "archived": "only",
    }
    assert get(app, f"/session_search?{query}").status_code == 200
    assert post(app, "/session_search", json=arguments).status_code == 200
    (by_get, caller), (by_post, _) = archive.calls
    assert by_get == by_post
    assert caller == Caller()
    assert by_get == SearchRequest(
        query="off by one",
        session="#43:5",
        full=True,
        kind=[Kind.USER, Kind.TOOL, Kind.NOTICE],
        agent=["codex"],
        limit=3,
        archived="only",
    )


def test_q_is_another_name_of_query() -> None:
    archive = FakeArchive()
    app = app_of(archive)
    assert post(app, "/session_search", json={"q": "x"}).status_code == 200
    assert archive.calls[0][0] == SearchRequest(query="x")
    assert code_of(get(app, "/session_search?q=x&query=x")) == "invalid_argument"
    assert code_of(post(app, "/session_search", json={"q": "x", "query": "y"})) == "invalid_argument"
    assert code_of(get(app, "/session_read?session=43&q=x")) == "invalid_argument"


def test_a_read_is_cut_at_two_million_characters_unless_it_says_otherwise() -> None:
    archive = FakeArchive()
    app = app_of(archive)
    get(app, "/session_read?session=43")
    post(app, "/session_read", json={"session": "43", "max_chars": 5000})
    assert [request.max_chars for request, _ in archive.calls] == [2_000_000, 5000]


def test_a_read_answers_both_forms() -> None:
    app = app_of()
    assert get(app, "/session_read?session=43").json()["items"][1]["label"] == "cargo test parser"
    assert post(app, "/session_read", json={"session": "43", "format": "text"}).text == text_form(READ) + "\n"


def test_sessions_projects_and_status_answer() -> None:
    archive = FakeArchive()
    app = app_of(archive)
    assert get(app, "/sessions?limit=200&title=parser").json()["sessions"][0]["reference"] == "#43"
    assert archive.calls == [(SessionsRequest(limit=200, title="parser"), Caller())]
    assert get(app, "/projects").content == json_form(PROJECTS)
    assert get(app, "/status").content == json_form(STATUS)
    assert get(app, "/status?format=text").text == text_form(STATUS) + "\n"


@pytest.mark.parametrize(
    "query",
    [
        "",
        "q=x&colour=red",
        "q=x&limit=0",
        "q=x&limit=21",
        "q=x&limit=many",
        "q=x&full=yes",
        "q=x&kind=usr",
        "q=x&order=up",
        "q=x&q=y",
        "q=x&session=43&session=44",
        "q=x&format=xml",
        "q=x&format=text&format=json",
        "q=%FF",
        "q=%ED%A0%BD",
    ],
)
def test_an_argument_that_is_off_is_refused(query: str) -> None:
    archive = FakeArchive()
    assert code_of(get(app_of(archive), f"/session_search?{query}")) == "invalid_argument"
    assert archive.calls == []


@pytest.mark.parametrize("path", ["/projects", "/status", "/healthz", "/readyz"])
def test_a_route_without_arguments_refuses_them(path: str) -> None:
    response = get(app_of(), f"{path}?colour=red")
    assert response.json()["detail"] == "unknown argument colour; there are format"


@pytest.mark.parametrize("session", ["", "%20", "&turns=5"])
def test_an_empty_session_says_how_to_write_a_number_sign(session: str) -> None:
    response = get(app_of(), f"/session_read?session={session}")
    assert code_of(response) == "invalid_argument"
    assert "`#` must be written %23 in a URL, or left out: session=43:5" in response.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b"null",
        b'{"query": "\xff"}',
        b'{"query": NaN}',
        b'{"query": 1}',
        b'{"query": "x", "limit": "3"}',
        b'{"query": "x", "limit": 3.5}',
        b'{"query": "x", "limit": true}',
        b'{"query": "x", "full": "true"}',
        b'{"query": ["x"]}',
        b'{"query": null}',
        b'{"query": "x", "format": 1}',
        b'{"query": "x", "format": ["text"]}',
        b'{"query": "x", "colour": "red"}',
        b"[" * 500_000,
        b'{"query": "\\ud83d", "x": ' + b"[" * 400_000,
    ],
)
def test_a_body_that_is_off_is_refused(body: bytes) -> None:
    response = post(app_of(), "/session_search", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert code_of(response) == "invalid_argument"


def test_half_an_emoji_in_a_body_is_searched_as_it_is_stored() -> None:
    archive = FakeArchive()
    body = b'{"query": "cut \\ud83d"}'
    assert post(
        app_of(archive), "/session_search", content=body, headers={"content-type": "application/json"}
    ).is_success
    assert archive.calls[0][0].query == "cut \ufffd"


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx"])
def test_a_body_of_another_type_is_unsupported(content_type: str | None) -> None:
    headers = {"content-type": content_type} if content_type else {}
    response = post(app_of(), "/session_search", content=b'{"query": "x"}', headers=headers)
    assert response.status_code == 415
    assert code_of(response) == "unsupported_media_type"


def test_a_content_type_may_have_parameters() -> None:
    headers = {"content-type": "Application/JSON; charset=utf-8"}
    assert post(app_of(), "/session_search", content=b'{"query": "x"}', headers=headers).is_success


def test_the_arguments_of_a_post_stand_in_its_body_alone() -> None:
    app = app_of()
    assert code_of(post(app, "/session_search?q=x", json={})) == "invalid_argument"
    assert post(app, "/session_search?format=text", json={"q": "x"}).text == text_form(SEARCHED) + "\n"


def test_format_wins_over_accept() -> None:
    app = app_of()
    as_text = get(app, "/projects", headers={"accept": "text/plain"})
    as_json = get(app, "/projects?format=json", headers={"accept": "text/plain"})
    assert as_text.headers["content-type"] == "text/plain; charset=utf-8"
    assert as_json.headers["content-type"] == "application/json"
    refused = post(app, "/session_search", json={"format": "text", "limit": 99, "query": "x"})
    assert refused.text.startswith("Error (invalid_argument): limit")


def test_a_refusal_of_the_archive_keeps_its_code() -> None:
    response = get(app_of(FakeArchive(searched=Timeout("10 s passed after 4 of 9 windows"))), "/session_search?q=x")
    assert (response.status_code, code_of(response)) == (503, "timeout")
    assert "retry-after" not in response.headers


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


def test_one_call_too_many_is_busy_and_says_when_to_come_back() -> None:
    archive = _Blocked()
    app = app_of(archive, limits={"concurrent_calls": 1, "waiting_calls": 0})

    async def calls() -> tuple[httpx.Response, httpx.Response, httpx.Response, httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE_URL) as client:
            first = asyncio.create_task(client.get("/session_search?q=x"))
            assert await asyncio.to_thread(archive.entered.wait, 30)
            second = await client.get("/session_search?q=x")
            alive = await client.get("/healthz")
            archive.go_on.set()
            return await first, second, alive, await client.get("/session_search?q=x")

    first, second, alive, third = asyncio.run(calls())
    assert (first.status_code, alive.status_code, third.status_code) == (200, 200, 200)
    assert (second.status_code, code_of(second), second.headers["retry-after"]) == (503, "busy", "1")


def test_healthz_names_the_instance() -> None:
    assert get(app_of(), "/healthz").json()["instance"] == "the-instance"
    assert get(app_of(), "/healthz?format=text").text == "alive\n"


def test_readyz_waits_for_the_first_scan() -> None:
    status = replace(STATUS, is_ready=False, indexing=Indexing(12, 40, 3, 9))
    app = create_app(FakeArchive(), Settings(), lambda: status)
    response = get(app, "/readyz")
    assert (response.status_code, code_of(response)) == (503, "unavailable")
    assert "12 of 40 sessions" in response.json()["detail"]
    assert get(app_of(), "/readyz").json() == {"status": "ready"}


def test_openapi_describes_every_route_argument_and_form() -> None:
    document = get(app_of(), "/openapi.json").json()
    assert set(document["paths"]) == {*ROUTES, "/openapi.json", "/docs"}
    for path, model in (
        ("/session_search", SearchRequest),
        ("/session_read", ReadRequest),
        ("/sessions", SessionsRequest),
    ):
        operations = document["paths"][path]
        parameters = {parameter["name"]: parameter for parameter in operations["get"]["parameters"]}
        body = operations["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
        assert set(model.argument_names()) <= set(parameters) == set(body)
        assert all(parameter["description"] for parameter in parameters.values())
        content = operations["get"]["responses"]["200"]["content"]
        assert set(content) == {"application/json", "text/plain"}
        assert content["application/json"]["schema"]["$ref"].startswith("#/components/schemas/")
        assert "application/problem+json" in operations["get"]["responses"]["default"]["content"]


def test_every_reference_in_openapi_leads_somewhere() -> None:
    document = get(app_of(), "/openapi.json").json()

    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [name for inner in value.values() for name in references(inner)]
        return [name for inner in value for name in references(inner)] if isinstance(value, list) else []

    names = {reference.removeprefix("#/components/schemas/") for reference in references(document)}
    assert names <= set(document["components"]["schemas"])
    assert "Problem" in names


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        self.ids += [value or "" for name, value in attrs if name == "id"]


def test_the_docs_page_runs_nothing_and_loads_nothing() -> None:
    response = get(app_of(), "/docs")
    page = _Page()
    page.feed(response.text)
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert page.links == ["/openapi.json"]
    assert {kind.code for kind in error_kinds()} <= set(page.ids)
    assert set(ROUTES) <= set(page.ids)


def test_every_route_argument_and_code_is_documented() -> None:
    text = DOCS.read_text(encoding="utf-8")
    arguments = {name for model in (SearchRequest, ReadRequest, SessionsRequest) for name in model.argument_names()}
    wanted = {*ROUTES, "/openapi.json", "/docs", *arguments, "q", "format", *(kind.code for kind in error_kinds())}
    missing = {name for name in wanted if f"`{name}`" not in text}
    assert missing == set()
