"""The HTTP door: routes that parse, call the archive and print; who may call is `guard`'s.

Answers are made to bytes once, in the thread that found them. FastAPI routes the calls and describes
them (`openapi`); arguments are read by the same models as at every other door (`http_arguments`).
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from schemas.answers import ProjectsAnswer, SessionsAnswer, StatusAnswer
from schemas.errors import Busy, Internal, MethodNotAllowed, NotFound, Unavailable, quoted
from schemas.requests import ReadRequest, SearchRequest, SessionsRequest
from schemas.requests import Request as Arguments
from schemas.settings import LimitsSettings, Settings
from search_api.archive import Archive
from search_api.caller import Caller
from search_api.docs_page import docs_page
from search_api.guard import Guard
from search_api.http_arguments import NoArguments, read_arguments
from search_api.json_forms import ReadForm, SearchForm
from search_api.mcp_http import mcp_route, mcp_sessions
from search_api.openapi import describe, document
from search_api.render import Answer, json_bytes, json_form, text_form
from search_api.version import VERSION

DEFAULT_MAX_CHARS = 2_000_000
"""Where `session_read` cuts its answer unless `max_chars` says otherwise."""

_ANYONE = Caller()
_PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
}

Returned = TypeVar("Returned")


@dataclass(frozen=True, slots=True)
class _Route:
    """A route that answers a question, in both forms."""

    path: str
    methods: tuple[str, ...]
    summary: str
    arguments: type[Arguments]
    answers: Any
    """The type that its JSON form has."""
    call: Callable[[Any], Answer]


def create_app(
    archive: Archive,
    settings: Settings,
    status: Callable[[], StatusAnswer],
    instance: str | None = None,
    *,
    is_on_demand: bool = False,
) -> FastAPI:
    """The server's application.

    Args:
        status: what `/status` answers and `/readyz` looks at; called in a thread.
        instance: names this start of the server in `/healthz`; a random one by default.
        is_on_demand: whether it makes way for a server that is started by hand, which `/healthz` tells.
    """
    calls = _Calls(settings.limits)
    mcp = mcp_sessions(archive, settings, calls.run)
    instance = instance or secrets.token_hex(16)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with mcp.run():
            yield
        calls.close()

    app = FastAPI(
        title="turndex",
        version=VERSION,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.add_middleware(Guard, settings=settings)
    app.add_exception_handler(HTTPException, _refuse_route)

    def read(request: ReadRequest) -> Answer:
        if request.max_chars is None:
            request = request.model_copy(update={"max_chars": DEFAULT_MAX_CHARS})
        return archive.read(request, _ANYONE)

    for route in (
        _Route(
            "/session_search",
            ("GET", "POST"),
            "Where was this said?",
            SearchRequest,
            SearchForm,
            lambda request: archive.search(request, _ANYONE),
        ),
        _Route("/session_read", ("GET", "POST"), "What was said there?", ReadRequest, ReadForm, read),
        _Route(
            "/sessions",
            ("GET", "POST"),
            "Which sessions are there?",
            SessionsRequest,
            SessionsAnswer,
            lambda request: archive.sessions(request, _ANYONE),
        ),
        _Route(
            "/projects",
            ("GET",),
            "Which projects are there?",
            NoArguments,
            ProjectsAnswer,
            lambda _: archive.projects(),
        ),
        _Route(
            "/status",
            ("GET",),
            "How is the archive, and what is it doing?",
            NoArguments,
            StatusAnswer,
            lambda _: status(),
        ),
    ):
        _add(app, route, calls)

    async def healthz(request: Request) -> Response:
        await read_arguments(request, NoArguments)
        alive = {"status": "alive", "instance": instance, "version": VERSION, "on_demand": is_on_demand}
        return _response(request, json_bytes(alive), "alive")

    async def readyz(request: Request) -> Response:
        await read_arguments(request, NoArguments)
        _check_ready(await asyncio.to_thread(status))
        return _response(request, json_bytes({"status": "ready"}), "ready")

    async def openapi() -> Response:
        return Response(json_bytes(document(app)), media_type="application/json")

    async def docs() -> Response:
        return Response(docs_page(document(app)), media_type="text/html", headers=_PAGE_HEADERS)

    app.add_api_route(
        "/healthz", healthz, summary="Is the server alive?", **describe("GET", NoArguments, dict[str, str | bool])
    )
    app.add_api_route(
        "/readyz", readyz, summary="Is the first scan done?", **describe("GET", NoArguments, dict[str, str])
    )
    app.router.routes.append(mcp_route(mcp))
    app.add_api_route("/openapi.json", openapi, summary="This description.", response_model=None)
    app.add_api_route("/docs", docs, summary="This description as a page.", response_model=None)
    return app


class _Calls:
    """Calls in threads: so many at once, so many more waiting, and the next one is refused."""

    def __init__(self, limits: LimitsSettings) -> None:
        self._threads = ThreadPoolExecutor(limits.concurrent_calls, thread_name_prefix="call")
        self._room = limits.concurrent_calls + limits.waiting_calls

    async def run(self, call: Callable[[], Returned]) -> Returned:
        """Run a call in a thread.

        Raises:
            Busy: as many are running and waiting as may be.
        """
        if self._room == 0:
            raise Busy("too many calls at once; try again in a second")
        self._room -= 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        finally:
            self._room += 1

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _add(app: FastAPI, route: _Route, calls: _Calls) -> None:
    async def endpoint(request: Request) -> Response:
        arguments = await read_arguments(request, route.arguments)
        is_text = request.state.is_text

        def answered() -> bytes:
            answer = route.call(arguments)
            return f"{text_form(answer)}\n".encode() if is_text else json_form(answer)

        body = await calls.run(answered)
        return Response(body, media_type="text/plain" if is_text else "application/json")

    for method in route.methods:
        app.add_api_route(
            route.path,
            endpoint,
            methods=[method],
            summary=route.summary,
            operation_id=f"{method.lower()}_{route.path.removeprefix('/')}",
            **describe(method, route.arguments, route.answers),
        )


def _response(request: Request, json: bytes, text: str) -> Response:
    is_text = request.state.is_text
    return Response(f"{text}\n" if is_text else json, media_type="text/plain" if is_text else "application/json")


def _check_ready(status: StatusAnswer) -> None:
    if status.is_ready:
        return
    scan = status.indexing
    how_far = f": {scan.sessions_done} of {scan.sessions_total} sessions are done" if scan else ""
    raise Unavailable(f"not ready: the first scan is running, or a source stands still{how_far}; see /status")


async def _refuse_route(request: Request, error: Exception) -> NoReturn:
    """Starlette's own refusals as ours; `Guard` renders them."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    methods: dict[str, list[str]] = {}
    for route in request.app.routes:
        methods.setdefault(route.path, []).extend(sorted(route.methods))
    match error.status_code:
        case 404:
            raise NotFound(f"there is no route {quoted(path)}", list(methods)) from error
        case 405:
            allowed = [*methods[path], "HEAD"] if "GET" in methods[path] else methods[path]
            raise MethodNotAllowed(f"{path} does not answer {quoted(request.method)}", allowed) from error
        case _:
            raise Internal(f"refused with status {error.status_code}") from error
