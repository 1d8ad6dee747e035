"""Calls of the HTTP application, in process and without a socket."""

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
from fastapi import FastAPI

from schemas.settings import Settings
from search_api.http import create_app
from tests.search_api.answers import STATUS, FakeArchive

BASE_URL = "http://127.0.0.1:7480"


def app_of(archive: FakeArchive | None = None, **tables: Any) -> FastAPI:
    """The application on an archive, with settings given as tables."""
    return create_app(archive or FakeArchive(), Settings(**tables), lambda: STATUS, "the-instance")


def call(app: FastAPI, method: str, url: str, **options: Any) -> httpx.Response:
    """One call; `options` are those of `httpx.AsyncClient.request`."""

    async def send() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE_URL) as client:
            return await client.request(method, url, **options)

    return asyncio.run(send())


def get(app: FastAPI, url: str, **options: Any) -> httpx.Response:
    return call(app, "GET", url, **options)


def post(app: FastAPI, url: str, **options: Any) -> httpx.Response:
    return call(app, "POST", url, **options)


def status_with_headers(app: FastAPI, headers: Sequence[tuple[str, str]], path: str = "/healthz") -> int:
    """The status of a GET with just these headers, which no client library would send."""
    statuses: list[int] = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    asyncio.run(app(scope, receive, send))
    (status,) = statuses
    return status
