"""The MCP door of the server: Streamable HTTP at `/mcp`, for clients of both protocol eras.

Without sessions in either era: every call carries all that it needs, the headers that bind the caller among them,
and a client that comes and goes leaves nothing behind. Answers are single JSON documents. Who may call, and how
large a body may be, is `guard`'s to say, as for every other route.
"""

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from schemas.settings import Settings
from schemas.texts import without_half_pairs
from search_api.archive import Archive
from search_api.binding import Binding, binding_of
from search_api.guard import MCP_PATH
from search_api.mcp_calls import InThread, asking
from search_api.mcp_server import mcp_server


def mcp_sessions(archive: Archive, settings: Settings, in_thread: InThread) -> StreamableHTTPSessionManager:
    """What serves the route; its `run` must be entered for as long as the application lives."""
    return StreamableHTTPSessionManager(
        mcp_server(settings.mcp, asking(archive, settings.mcp, in_thread, _binding)),
        json_response=True,
        stateless=True,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=settings.limits.body_bytes,
    )


def mcp_route(sessions: StreamableHTTPSessionManager) -> Route:
    """`POST /mcp`. A GET would open a stream for what the server says by itself: it says nothing, and refuses."""
    return Route(MCP_PATH, _Mended(StreamableHTTPASGIApp(sessions)), methods=["POST"])


class _Mended:
    """Takes the whole body, which `guard` has bounded, and mends what the SDK's parser would refuse in it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await Request(scope, receive).body()
        # Latin-1 has a character for every byte, whether or not the body is UTF-8.
        mended = without_half_pairs(body.decode("latin-1")).encode("latin-1")
        messages = iter([{"type": "http.request", "body": mended, "more_body": False}])

        async def replayed() -> Message:
            return next(messages, None) or await receive()

        await self._app(scope, replayed, send)


def _binding(request: Request) -> Binding:
    return binding_of(request.headers)
