"""Calls of the MCP door: the tools in memory, and `POST /mcp` of the application without a socket."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
from fastapi import FastAPI
from mcp_types import CallToolResult

from schemas.settings import McpSettings
from search_api.archive import Archive
from search_api.binding import Binding
from search_api.mcp_calls import ArchiveTools
from search_api.mcp_server import mcp_server
from tests.mcp_clients import connected
from tests.search_api.calling import BASE_URL

JSON_HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
LEGACY = {"mcp-protocol-version": "2025-11-25"}
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


def call_tool(
    archive: Archive,
    tool: str,
    arguments: Mapping[str, Any],
    binding: Binding | None = None,
    settings: McpSettings | None = None,
) -> CallToolResult:
    """What the SDK's client gets for a call of a server in this process."""
    settings = settings or McpSettings()
    tools = ArchiveTools(archive, settings, asyncio.to_thread, lambda _: binding or Binding())
    with connected(mcp_server(tools)) as call:
        return call(tool, arguments)


def post_mcp(
    app: FastAPI, body: Any, headers: Mapping[str, str] | Sequence[tuple[str, str]] = LEGACY
) -> httpx.Response:
    """The answer to one POST; a body that is not bytes is sent as JSON."""
    given = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    names = [name for name, _ in given]
    standing = [(name, value) for name, value in JSON_HEADERS.items() if name not in names]

    async def send() -> httpx.Response:
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE_URL) as client,
        ):
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            return await client.post("/mcp", content=content, headers=[*standing, *given])

    return asyncio.run(send())


def refused(response: httpx.Response) -> tuple[int, str]:
    """Status and code of what is refused before it comes to the protocol, in the form that clients of MCP show."""
    assert response.headers["content-type"] == "application/json"
    said = response.json()
    error = said["error"]
    assert (list(said), said["jsonrpc"], said["id"], error["code"]) == (["jsonrpc", "id", "error"], "2.0", None, -32000)
    assert error["message"].startswith(f"Error ({error['data']['code']}): {error['data']['detail']}")
    assert error["data"]["status"] == response.status_code
    return response.status_code, error["data"]["code"]


def request(method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, **({} if params is None else {"params": params})}


def tool_request(tool: str, arguments: Any) -> dict[str, Any]:
    return request("tools/call", {"name": tool, "arguments": arguments})


def modern(body: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """A request as the current revision of the protocol sends it, and its headers."""
    params = {**body.get("params", {}), "_meta": MODERN_META}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": str(body["method"])}
    if "name" in params:
        headers["mcp-name"] = str(params["name"])
    return {**body, "params": params}, headers
