"""`turndex mcp`: the same tools over standard input and output, for clients that start a program.

Calls go to the server of the data directory, which is started on demand where none is running, so that any number
of editors share one index. With `[access] projects` in its own settings it answers by itself: another server's
settings may show more.
"""

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, closing, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

import anyio
import anyio.to_thread
import httpx2
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, JSONRPCError, ListToolsResult, TextContent
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from schemas.errors import Internal, InvalidArgument, Timeout, Unavailable
from schemas.settings import Settings, absolute
from search_api.address import Address
from search_api.archive import Archive
from search_api.binding import Binding
from search_api.guard import MCP_PATH
from search_api.log import log_to_stderr
from search_api.mcp_calls import ArchiveTools, Tools, no_such_tool
from search_api.mcp_lines import serve_lines
from search_api.mcp_server import mcp_server
from search_api.mcp_tools import offered, tool_list
from search_api.on_demand import OnDemand
from search_api.render import REFUSED

PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"
"""Where a client says which project it works in, whatever directory it starts programs in."""

ALIVE_LOOKS = 4
"""How often a client tells its server that it is there, in the time after which a server on demand would end."""

SLACK_SECONDS = 20.0
"""How much longer than a search may take an answer is waited for: calls before it may be waiting as well."""

LIST_SECONDS = 5.0
"""How long the server's list of tools is waited for, its start included: some clients give up after ten."""

KEPT_SECONDS = 4.0
"""How long a connection without a call is kept: the server closes it after five."""


Answer = TypeVar("Answer", ListToolsResult, CallToolResult)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the client is."""

    binding: Binding
    project: str | None = None
    """A project's name, which counts for calls that name none."""


def place_of(project: str | None, session: str | None) -> Place:
    """Where a client is that was started here; `project` is a path, a name, or `*` for every open project.

    Raises:
        InvalidArgument: a path is to be taken from the working directory, which was deleted.
    """
    if project is None:
        # A path that is not absolute would bind nothing, and nothing is every project.
        directory = os.path.normpath(absolute(Path(os.environ.get(PROJECT_VARIABLE, ""))))
        return Place(Binding(directory=directory, session=session))
    if project == "*":
        return Place(Binding(session=session))
    if "/" in project:
        return Place(Binding(project=os.path.normpath(absolute(Path(project))), session=session))
    return Place(Binding(session=session), project)


def serve_stdio(settings: Settings, words: Sequence[str], place: Place) -> None:
    """Serve until the client has left or a signal comes; nothing but protocol gets onto standard output meanwhile.

    Args:
        words: the options that the settings were read with, for a server that has to be started.

    Raises:
        Unavailable: standard input or output was closed before.
    """
    if sys.stdin is None or sys.stdout is None:
        raise Unavailable("turndex mcp speaks with a client on standard input and output, and one of them is closed")
    log_to_stderr()
    anyio.run(_serve, settings, words, place)


async def _serve(settings: Settings, words: Sequence[str], place: Place) -> None:
    async with AsyncExitStack() as opened:
        served = await opened.enter_async_context(_ServedTools(settings, words, place))
        tools: Tools = served if settings.access.projects is None else _OwnTools(settings, served, opened)
        await serve_lines(mcp_server(tools), served.keep_alive)


class _ServedTools:
    """Tools of the server, which lists them and answers their calls; without those that our settings leave out."""

    def __init__(self, settings: Settings, words: Sequence[str], place: Place) -> None:
        self.place = place
        self._settings = settings
        self._offered = offered(settings.mcp)
        self._on_demand = OnDemand(settings, words)
        self._one_at_a_time = anyio.Lock()
        self._alive_seconds = settings.mcp.on_demand_minutes * 60 / ALIVE_LOOKS
        self._answer_seconds = settings.limits.search_seconds + SLACK_SECONDS
        headers = {
            **place.binding.headers(),
            "accept": "application/json",
            "content-type": "application/json",
            "mcp-protocol-version": LATEST_HANDSHAKE_VERSION,
        }
        if settings.server.token is not None:
            headers["authorization"] = f"Bearer {settings.server.token}"
        self._client = httpx2.AsyncClient(
            headers=headers,
            timeout=self._answer_seconds,
            limits=httpx2.Limits(keepalive_expiry=KEPT_SECONDS),
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._on_demand.stop_waiting()
        await self._client.aclose()

    async def listed(self) -> ListToolsResult:
        """
        The server's list. Where it cannot be had, or not soon, it is that of the settings, without schemas of
        answers, so that calls can still say what is wrong.
        """
        try:
            with anyio.fail_after(LIST_SECONDS):
                listed = await self._ask("tools/list", {}, ListToolsResult)
        except (_Refused, Unavailable, Timeout, Internal, TimeoutError) as error:
            _log.warning("the server does not list its tools: %s", str(error) or f"not within {LIST_SECONDS:g} s")
            return ListToolsResult(tools=tool_list(self._settings.mcp.model_copy(update={"structured": False})))
        return listed.model_copy(update={"tools": [tool for tool in listed.tools if tool.name in self._offered]})

    async def call(self, name: str, arguments: Mapping[str, Any], _: Any) -> CallToolResult:
        """
        Raises:
            MCPError: there is no such tool, or the server answered another error of the protocol.
            InvalidArgument: an argument is a number that cannot be passed on.
            Timeout, Unavailable: it does not answer, or cannot be reached or started.
        """
        if name not in self._offered:
            raise no_such_tool(name, self._offered)
        _check_numbers(arguments)
        params = {"name": name, "arguments": placed(arguments, self.place)}
        try:
            return await self._ask("tools/call", params, CallToolResult)
        except _Refused as refused:
            return CallToolResult(content=[TextContent(text=str(refused))], is_error=True)

    async def keep_alive(self) -> None:
        while True:
            await anyio.sleep(self._alive_seconds)
            await anyio.to_thread.run_sync(self._on_demand.keep_alive, abandon_on_cancel=True)

    async def server(self) -> Address:
        """The server, which is started where none is running."""
        async with self._one_at_a_time:
            return await anyio.to_thread.run_sync(self._on_demand.server, abandon_on_cancel=True)

    async def _ask(self, method: str, params: Mapping[str, Any], form: type[Answer]) -> Answer:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        try:
            return _result_of(await self._post(await self.server(), body), form)
        except _Gone:
            # It ended, or made way for another: calls only read, so asking again is safe.
            try:
                return _result_of(await self._post(await self.server(), body), form)
            except _Gone as gone:
                raise Unavailable(f"the server cannot be reached: {gone}") from gone

    async def _post(self, address: Address, body: bytes) -> httpx2.Response:
        try:
            return await self._client.post(f"{address.url}{MCP_PATH}", content=body)
        except httpx2.ReadTimeout as timeout:
            raise Timeout(
                f"the server at {address.url} (process {address.pid}) took the call and has not answered it for "
                f"{self._answer_seconds:g} s"
            ) from timeout
        except httpx2.TransportError as error:
            raise _Gone(str(error) or type(error).__name__) from error


class _Gone(Exception):
    """The server does not answer any more."""


class _Refused(Exception):
    """The server refused before it came to a tool; says how, in the line of a refusal."""


class _OwnTools:
    """Tools that read store and index in this process; a server keeps them fresh meanwhile, if one can be had."""

    def __init__(self, settings: Settings, served: _ServedTools, opened: AsyncExitStack) -> None:
        self._settings = settings
        self._served = served
        self._opened = opened

    @cached_property
    def _tools(self) -> ArchiveTools:
        archive = self._opened.enter_context(closing(Archive.open(self._settings)))
        return ArchiveTools(archive, self._settings.mcp, _in_thread, lambda _: self._served.place.binding)

    async def listed(self) -> ListToolsResult:
        return ListToolsResult(tools=tool_list(self._settings.mcp))

    async def call(self, name: str, arguments: Mapping[str, Any], request: Any) -> CallToolResult:
        """
        Raises:
            TurndexError: the call is refused, or nothing is indexed yet.
        """
        with suppress(Unavailable):
            await self._served.server()
        return await self._tools.call(name, placed(arguments, self._served.place), request)


def placed(arguments: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """The arguments of a call, with the name of the client's project where they name none."""
    if place.project is None or arguments.get("project") is not None:
        return dict(arguments)
    return {**arguments, "project": place.project}


def _check_numbers(arguments: Mapping[str, Any]) -> None:
    """
    Raises:
        InvalidArgument: a number is too large for Python to have it as one.
    """
    for name, value in arguments.items():
        try:
            json.dumps(value, allow_nan=False)
        except ValueError as error:
            raise InvalidArgument(name, f"{name}: no number here is that large") from error


async def _in_thread(call: Callable[[], CallToolResult]) -> CallToolResult:
    return await anyio.to_thread.run_sync(call, abandon_on_cancel=True)


def _result_of(response: httpx2.Response, form: type[Answer]) -> Answer:
    """The result of what the server answered.

    Raises:
        MCPError: an error of the protocol.
        _Refused: it refused before it came to the protocol.
        Internal: what came back is none of these.
    """
    try:
        said = json.loads(response.content)
        if response.is_success and "result" in said:
            return form.model_validate(said["result"])
        error = JSONRPCError.model_validate(said).error
    except (ValueError, TypeError) as unclear:
        raise Internal(f"the server answered what is no answer, with status {response.status_code}") from unclear
    if error.code == REFUSED:
        raise _Refused(error.message)
    raise MCPError(error.code, error.message, error.data)
