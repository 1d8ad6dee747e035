"""The MCP door of the server: Streamable HTTP at `/mcp`, for clients of both protocol eras.

Without sessions in either era: every call carries all that it needs, the headers that bind the caller among them,
and a client that comes and goes leaves nothing behind. Answers are single JSON documents. Who may call, and how
large a body may be, is `guard`'s to say, as for every other route.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolResult
from starlette.requests import Request
from starlette.routing import Route

from schemas.settings import Settings
from schemas.texts import without_surrogates
from search_api.archive import Archive
from search_api.binding import Binding, binding_of
from search_api.guard import MCP_PATH
from search_api.mcp_answers import answer
from search_api.mcp_server import mcp_server
from search_api.mcp_tools import ToolDescription

InThread = Callable[[Callable[[], CallToolResult]], Awaitable[CallToolResult]]
"""Runs a call in a thread, or refuses it where there are too many."""


def mcp_sessions(archive: Archive, settings: Settings, in_thread: InThread) -> StreamableHTTPSessionManager:
    """What serves the route; its `run` must be entered for as long as the application lives."""

    async def call(tool: ToolDescription, arguments: dict[str, Any], request: Request | None) -> CallToolResult:
        asked = tool.arguments.read(_cleaned(arguments))
        binding = Binding() if request is None else binding_of(request.headers)

        def answered() -> CallToolResult:
            return answer(archive, asked, binding.caller(archive), is_structured=settings.mcp.structured)

        return await in_thread(answered)

    return StreamableHTTPSessionManager(
        mcp_server(settings.mcp, call),
        json_response=True,
        stateless=True,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=settings.limits.body_bytes,
    )


def mcp_route(sessions: StreamableHTTPSessionManager) -> Route:
    """`POST /mcp`. A GET would open a stream for what the server says by itself: it says nothing, and refuses."""
    return Route(MCP_PATH, StreamableHTTPASGIApp(sessions), methods=["POST"])


def _cleaned(value: Any) -> Any:
    """Arguments without halves of surrogate pairs, which callers cut out of texts now and then."""
    if isinstance(value, dict):
        return {_cleaned(name): _cleaned(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_cleaned(one) for one in value]
    return without_surrogates(value) if isinstance(value, str) else value
