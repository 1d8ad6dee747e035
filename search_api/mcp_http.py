"""The MCP door of the server: Streamable HTTP at `/mcp`, for clients of both protocol eras.

Without sessions in either era: every call carries all that it needs, the headers that bind the caller among them,
and a client that comes and goes leaves nothing behind. Answers are single JSON documents. Who may call, how large a
body may be and how long it may take, is `guard`'s to say, as for every other route.
"""

from http import HTTPStatus

from mcp.server.streamable_http import check_accept_headers
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
    JSONRPCError,
    UnsupportedProtocolVersionErrorData,
)
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from schemas.errors import quoted
from schemas.settings import Settings
from schemas.texts import without_half_pairs
from search_api.archive import Archive
from search_api.binding import Binding, binding_of
from search_api.guard import MCP_PATH
from search_api.http_arguments import check_media_type
from search_api.mcp_calls import ArchiveTools, InThread
from search_api.mcp_messages import Unreadable, as_json, error_of, read_message
from search_api.mcp_server import mcp_server

_VERSION_HEADER = "mcp-protocol-version"
_ACCEPT = (b"accept", b"application/json, text/event-stream")
_CONTENT_TYPE = (b"content-type", b"application/json")


def mcp_sessions(archive: Archive, settings: Settings, in_thread: InThread) -> StreamableHTTPSessionManager:
    """What serves the route; its `run` must be entered for as long as the application lives."""
    return StreamableHTTPSessionManager(
        mcp_server(ArchiveTools(archive, settings.mcp, in_thread, _binding)),
        json_response=True,
        stateless=True,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=settings.limits.body_bytes,
    )


def mcp_route(sessions: StreamableHTTPSessionManager) -> Route:
    """`POST /mcp`. A GET would open a stream for what the server says by itself: it says nothing, and refuses."""
    return Route(MCP_PATH, _Door(StreamableHTTPASGIApp(sessions)), methods=["POST"])


class _Door:
    """Lets in what is a message of a protocol that is spoken here, and answers everything else alike in both eras."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        check_media_type(request)
        # Latin-1 has a character for every byte, whether or not the body is UTF-8.
        body = without_half_pairs((await request.body()).decode("latin-1")).encode("latin-1")
        refused = _refusal(request, body)
        if refused is not None:
            status, error = refused
            await Response(as_json(error), status, media_type="application/json")(scope, receive, send)
            return
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replayed() -> Message:
            return next(messages, None) or await receive()

        # What takes no streams is refused without a word for some methods; there are no streams. What the body is
        # called was looked at: here in any case, there in small letters.
        headers = [(name, value) for name, value in scope["headers"] if name not in (b"accept", b"content-type")]
        await self._app({**scope, "headers": [*headers, _ACCEPT, _CONTENT_TYPE]}, replayed, send)


def _refusal(request: Request, body: bytes) -> tuple[HTTPStatus, JSONRPCError] | None:
    """What answers a request that is not for the SDK, with the status that the transport's specification names."""
    takes_json, _ = check_accept_headers(request)
    if not takes_json:
        says = "answers are application/json, which the Accept header does not take"
        return HTTPStatus.NOT_ACCEPTABLE, error_of(INVALID_REQUEST, says)
    version = request.headers.get(_VERSION_HEADER)
    if version is not None and version not in KNOWN_PROTOCOL_VERSIONS:
        spoken = UnsupportedProtocolVersionErrorData(supported=list(KNOWN_PROTOCOL_VERSIONS), requested=version)
        says = f"there is no protocol version {quoted(version)} here; there are: {', '.join(KNOWN_PROTOCOL_VERSIONS)}"
        return HTTPStatus.BAD_REQUEST, error_of(UNSUPPORTED_PROTOCOL_VERSION, says, data=spoken.model_dump(mode="json"))
    try:
        read_message(body.decode())
    except UnicodeDecodeError:
        return HTTPStatus.BAD_REQUEST, error_of(PARSE_ERROR, "the body is not UTF-8")
    except Unreadable as unreadable:
        return HTTPStatus.BAD_REQUEST, unreadable.error
    return None


def _binding(request: Request) -> Binding:
    return binding_of(request.headers.items())
