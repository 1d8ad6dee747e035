"""Who may call, and the one shape in which every refusal leaves the server.

A page in the user's browser can send requests to this machine, and a name can be made to point at
it; so a call must name a host that is ours (`Host`), come from no other site (`Origin`,
`Sec-Fetch-Site`), carry the token where one is set, and have a body of a bounded size that arrives in time.
"""

import asyncio
import hmac
import logging
import re
import secrets
from collections.abc import Iterable
from email.utils import formatdate
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from schemas.errors import (
    Busy,
    Forbidden,
    Internal,
    MethodNotAllowed,
    Timeout,
    TooLarge,
    TurndexError,
    Unauthorized,
    quoted,
)
from schemas.settings import Settings
from search_api.render import error_line, json_bytes, problem, protocol_error

PAGES = frozenset({"/docs"})
"""What another site may link to: pages for people. Everything else answers programs."""

_ALIVE = "/healthz"
"""The one route without a token."""

MCP_PATH = "/mcp"
"""What answers agents, and no page of any site, this server's own included."""

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^\s\[\]:@/?#]+)(?::(?P<port>[0-9]{0,5}))?", re.IGNORECASE)
_SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)

MAX_LENGTH_DIGITS = 18
"""A Content-Length with more is too large without being read as a number."""

_log = logging.getLogger(__name__)


class Guard:
    """ASGI middleware around every route: admits calls, renders refusals, and sets the headers of every answer.

    `scope["state"]["is_text"]` says which form the caller wants; a route that reads `format` from a
    body sets it.
    """

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        self._app = app
        self._body_bytes = settings.limits.body_bytes
        self._body_seconds = settings.limits.body_seconds
        self._token = settings.server.token
        bound = settings.server.host.lower()
        self._names = _LOOPBACK_NAMES | {f"[{bound}]" if ":" in bound else bound}
        self._names |= {name.lower().removesuffix(".") for name in settings.server.allowed_hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send, path=scope["path"], is_bodiless=scope["method"] == "HEAD")
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        scope["state"] = {**scope.get("state", {}), "is_text": wants_text(scope)}
        try:
            self._admit(scope)
            await self._app(scope, self._bounded(receive), answer.send)
        except ClientDisconnect:
            return
        except TurndexError as error:
            await answer.refuse(error, is_text=scope["state"]["is_text"])
        except Exception as error:
            # The last resort: whatever it was, the caller gets an answer and the log the rest.
            if answer.is_started:
                raise
            incident = secrets.token_hex(6)
            _log.exception("internal error %s at %s", incident, scope["path"])
            internal = Internal(f"a fault of ours ({type(error).__name__}); the log has it under the id {incident}")
            await answer.refuse(internal, is_text=scope["state"]["is_text"])

    def _admit(self, scope: Scope) -> None:
        """Refuse what must not come in.

        Raises:
            Forbidden, Unauthorized, TooLarge: as their names say.
        """
        host = self._check_host(_values(scope, b"host"))
        self._check_site(scope, host)
        if self._token is not None and scope["path"] != _ALIVE:
            self._check_token(_values(scope, b"authorization"), self._token)
        for length in _values(scope, b"content-length"):
            if length.isdecimal() and (len(length) > MAX_LENGTH_DIGITS or int(length) > self._body_bytes):
                raise self._too_large()

    def _check_host(self, hosts: list[str]) -> tuple[str, int]:
        if len(hosts) != 1:
            raise Forbidden("a call needs exactly one Host header")
        host = _split_host(hosts[0])
        if host is None or host[0] not in self._names:
            raise Forbidden(
                f"the Host {quoted(hosts[0])} is not this server's; a name of your own goes into server.allowed_hosts"
            )
        return host

    def _check_site(self, scope: Scope, host: tuple[str, int]) -> None:
        for origin in _values(scope, b"origin"):
            if scope["path"] == MCP_PATH:
                raise Forbidden(f"no web page may call {MCP_PATH}, and the Origin {quoted(origin)} is one's")
            scheme, _, rest = origin.partition("://")
            if scheme.lower() != "http" or _split_host(rest) != host:
                raise Forbidden(f"the Origin {quoted(origin)} is another site's")
        sites = {site.lower() for site in _values(scope, b"sec-fetch-site")}
        if sites & {"cross-site", "same-site"} and not _is_page_visit(scope):
            raise Forbidden("another site sent this call; only pages of this server may be linked to")

    def _check_token(self, values: list[str], token: str) -> None:
        scheme, _, given = values[0].partition(" ") if len(values) == 1 else ("", "", "")
        is_right = hmac.compare_digest(given.strip().encode("latin-1"), token.encode())
        if scheme.lower() != "bearer" or not is_right:
            raise Unauthorized("this server asks for `Authorization: Bearer` with its token (server.token)")

    def _bounded(self, receive: Receive) -> Receive:
        """`receive` that ends a body as soon as it is too large, announced or not, or when it takes too long."""
        received = 0
        is_whole = False
        late_at = asyncio.get_running_loop().time() + self._body_seconds

        async def bounded() -> Message:
            nonlocal received, is_whole
            try:
                # Behind the body nothing comes but the end of the connection, which may take as long as it likes.
                async with asyncio.timeout_at(None if is_whole else late_at):
                    message = await receive()
            except TimeoutError as late:
                raise Timeout(f"the body did not arrive within {self._body_seconds:g} s") from late
            received += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            if received > self._body_bytes:
                raise self._too_large()
            return message

        return bounded

    def _too_large(self) -> TooLarge:
        return TooLarge(f"the body is larger than {self._body_bytes:,} bytes")


class _Answer:
    """What goes back, with the headers that every answer carries."""

    def __init__(self, send: Send, *, path: str, is_bodiless: bool) -> None:
        self._send = send
        self._is_mcp = path == MCP_PATH
        self._is_bodiless = is_bodiless
        self.is_started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.is_started = True
            message = {**message, "headers": [*message.get("headers", ()), *standing_headers()]}
        elif self._is_bodiless:
            message = {**message, "body": b""}
        await self._send(message)

    async def refuse(self, error: TurndexError, *, is_text: bool) -> None:
        headers, body = refusal(error, is_text=is_text, is_mcp=self._is_mcp)
        await self.send({"type": "http.response.start", "status": error.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


def standing_headers() -> list[tuple[bytes, bytes]]:
    """The headers of every answer, errors included."""
    return [*_SECURITY_HEADERS, (b"date", formatdate(usegmt=True).encode())]


def refusal(error: TurndexError, *, is_text: bool, is_mcp: bool = False) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Headers and body of a refusal: problem+json, or one line of text, or what clients of MCP read."""
    if is_mcp:
        media_type, body = b"application/json", json_bytes(protocol_error(error))
    elif is_text:
        media_type, body = b"text/plain; charset=utf-8", f"{error_line(error)}\n".encode()
    else:
        media_type, body = b"application/problem+json", json_bytes(problem(error))
    headers = [(b"content-type", media_type), (b"content-length", str(len(body)).encode())]
    match error:
        case Busy():
            headers.append((b"retry-after", b"1"))
        case Unauthorized():
            headers.append((b"www-authenticate", b"Bearer"))
        case MethodNotAllowed():
            headers.append((b"allow", ", ".join(error.candidates).encode()))
    return headers, body


def wants_text(scope: Scope) -> bool:
    """Whether the caller wants the text form: `format` says so, or else `Accept`."""
    query = parse_qsl(scope["query_string"].decode("latin-1"), errors="replace")
    formats = [value for name, value in query if name == "format"]
    return formats[-1] == "text" if formats else prefers_text(_values(scope, b"accept"))


def prefers_text(accepts: Iterable[str]) -> bool:
    """Whether `text/plain` has the highest weight of all media types in the Accept headers (RFC 9110, 12.5.1)."""
    weights: dict[str, float] = {}
    for media_range in ",".join(accepts).split(","):
        name, *parameters = (part.strip().lower() for part in media_range.split(";"))
        if name:
            weights[name] = max(_weight(parameters), weights.get(name, 0.0))
    text = weights.pop("text/plain", 0.0)
    return text > max(weights.values(), default=0.0)


def _weight(parameters: Iterable[str]) -> float:
    for parameter in parameters:
        if re.fullmatch(r"q\s*=\s*(0(\.[0-9]{0,3})?|1(\.0{0,3})?)", parameter):
            return float(parameter.partition("=")[2])
    return 1.0


def _split_host(host: str) -> tuple[str, int] | None:
    """A host's name in lower case, without a final dot, and its port."""
    match = _HOST.fullmatch(host)
    if match is None:
        return None
    return match["name"].lower().removesuffix("."), int(match["port"] or 80)


def _is_page_visit(scope: Scope) -> bool:
    is_navigation = _values(scope, b"sec-fetch-mode") == ["navigate"]
    is_document = _values(scope, b"sec-fetch-dest") in ([], ["document"])
    return is_navigation and is_document and scope["method"] == "GET" and scope["path"] in PAGES


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for header, value in scope["headers"] if header.lower() == name]
