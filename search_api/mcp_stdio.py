"""`turndex mcp`: the same tools over standard input and output, for clients that start a program.

Calls go to the server of the data directory, which is started on demand where none is running, so that any number
of editors share one index. With `[access] projects` in its own settings it answers by itself: another server's
settings may show more.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, closing, suppress
from dataclasses import dataclass
from functools import cached_property
from io import TextIOWrapper
from typing import Any, Self

import anyio
import anyio.to_thread
import httpx2
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, JSONRPCError, TextContent
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from schemas.errors import Internal, Unavailable
from schemas.settings import Settings
from schemas.texts import without_half_pairs
from search_api.address import Address
from search_api.archive import Archive
from search_api.binding import Binding
from search_api.guard import MCP_PATH
from search_api.log import log_to_stderr
from search_api.mcp_calls import Call, asking
from search_api.mcp_server import mcp_server
from search_api.mcp_tools import ToolDescription
from search_api.on_demand import OnDemand

PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"
"""Where a client says which project it works in, whatever directory it starts programs in."""

ALIVE_LOOKS = 4
"""How often a client tells its server that it is there, in the time after which a server on demand would end."""

SLACK_SECONDS = 20.0
"""How much longer than a search may take an answer is waited for: calls before it may be waiting as well."""

KEPT_SECONDS = 4.0
"""How long a connection without a call is kept: the server closes it after five."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the client is."""

    binding: Binding
    project: str | None = None
    """A project's name, which counts for calls that name none."""


def place_of(project: str | None, session: str | None) -> Place:
    """Where a client is that was started here; `project` is a path, a name, or `*` for every open project."""
    if project is None:
        return Place(Binding(directory=os.environ.get(PROJECT_VARIABLE) or os.getcwd(), session=session))
    if project == "*":
        return Place(Binding(session=session))
    if "/" in project:
        return Place(Binding(project=project, session=session))
    return Place(Binding(session=session), project)


def serve_stdio(settings: Settings, words: Sequence[str], place: Place) -> None:
    """Serve until standard input ends. While it does, nothing but protocol can get onto standard output.

    Args:
        words: the options that the settings were read with, for a server that has to be started.
    """
    log_to_stderr()
    anyio.run(_serve, settings, words, place)


async def _serve(settings: Settings, words: Sequence[str], place: Place) -> None:
    async with AsyncExitStack() as opened:
        served = await opened.enter_async_context(_Served(settings, words, place.binding))
        call: Call = served.call
        if settings.access.projects is not None:
            call = _Alone(settings, served, opened).call

        async def placed(tool: ToolDescription, arguments: dict[str, Any], request: Any) -> CallToolResult:
            named = {} if place.project is None else {"project": place.project}
            return await call(tool, {**named, **arguments}, request)

        server = mcp_server(settings.mcp, placed)
        lines = _MendedLines(TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace"))
        async with stdio_server(lines) as (read_stream, write_stream), anyio.create_task_group() as beside:
            beside.start_soon(served.keep_alive)
            await server.run(read_stream, write_stream, server.create_initialization_options())
            beside.cancel_scope.cancel()


class _MendedLines(anyio.AsyncFile[str]):
    """Standard input; the SDK drops a line that its parser refuses, and the client would wait for ever."""

    async def readline(self) -> str:
        return without_half_pairs(await super().readline())


class _Served:
    """Answers by asking the server."""

    def __init__(self, settings: Settings, words: Sequence[str], binding: Binding) -> None:
        self.binding = binding
        self._on_demand = OnDemand(settings, words)
        self._one_at_a_time = anyio.Lock()
        self._alive_seconds = settings.mcp.on_demand_minutes * 60 / ALIVE_LOOKS
        headers = {
            **binding.headers(),
            "accept": "application/json",
            "content-type": "application/json",
            "mcp-protocol-version": LATEST_HANDSHAKE_VERSION,
        }
        if settings.server.token is not None:
            headers["authorization"] = f"Bearer {settings.server.token}"
        self._client = httpx2.AsyncClient(
            headers=headers,
            timeout=settings.limits.search_seconds + SLACK_SECONDS,
            limits=httpx2.Limits(keepalive_expiry=KEPT_SECONDS),
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._on_demand.stop_waiting()
        await self._client.aclose()

    async def call(self, tool: ToolDescription, arguments: dict[str, Any], _: Any) -> CallToolResult:
        """
        Raises:
            MCPError: the server answered an error of the protocol.
            Unavailable: no server can be reached or started.
        """
        params = {"name": tool.name, "arguments": arguments}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        try:
            return await self._post(await self.server(), body)
        except _Gone:
            # It ended, or made way for another: calls only read, so asking again is safe.
            try:
                return await self._post(await self.server(), body)
            except _Gone as gone:
                raise Unavailable(f"the server cannot be reached: {gone}") from gone

    async def keep_alive(self) -> None:
        while True:
            await anyio.sleep(self._alive_seconds)
            await anyio.to_thread.run_sync(self._on_demand.keep_alive, abandon_on_cancel=True)

    async def server(self) -> Address:
        """The server, which is started where none is running."""
        async with self._one_at_a_time:
            return await anyio.to_thread.run_sync(self._on_demand.server, abandon_on_cancel=True)

    async def _post(self, address: Address, body: bytes) -> CallToolResult:
        try:
            response = await self._client.post(f"{address.url}{MCP_PATH}", content=body)
        except httpx2.TransportError as error:
            raise _Gone(str(error) or type(error).__name__) from error
        return _result_of(response)


class _Gone(Exception):
    """The server does not answer any more."""


class _Alone:
    """Answers by reading store and index in this process; a server keeps them fresh meanwhile, if one can be had."""

    def __init__(self, settings: Settings, served: _Served, opened: AsyncExitStack) -> None:
        self._settings = settings
        self._served = served
        self._opened = opened

    @cached_property
    def _ask(self) -> Call:
        archive = self._opened.enter_context(closing(Archive.open(self._settings)))
        return asking(archive, self._settings.mcp, _in_thread, lambda _: self._served.binding)

    async def call(self, tool: ToolDescription, arguments: dict[str, Any], request: Any) -> CallToolResult:
        """
        Raises:
            TurndexError: the call is refused, or nothing is indexed yet.
        """
        with suppress(Unavailable):
            await self._served.server()
        return await self._ask(tool, arguments, request)


async def _in_thread(call: Callable[[], CallToolResult]) -> CallToolResult:
    return await anyio.to_thread.run_sync(call, abandon_on_cancel=True)


def _result_of(response: httpx2.Response) -> CallToolResult:
    """What the server answered, or refused before it came to the tool.

    Raises:
        MCPError: an error of the protocol.
        Internal: what came back is none of these.
    """
    try:
        said = json.loads(response.content)
        if response.is_success and "result" in said:
            return CallToolResult.model_validate(said["result"])
        if "code" in said and "detail" in said:
            refusal = f"Error ({said['code']}): {said['detail']}"
            return CallToolResult(content=[TextContent(text=refusal)], is_error=True)
        error = JSONRPCError.model_validate(said).error
    except (ValueError, TypeError) as unclear:
        raise Internal(f"the server answered what is no answer, with status {response.status_code}") from unclear
    raise MCPError(error.code, error.message, error.data)
