"""`turndex serve`: binds, indexes and answers until it is told to stop.

One process: several workers would be several writers.
"""

import asyncio
import contextlib
import errno
import ipaddress
import os
import re
import secrets
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http import HTTPStatus
from pathlib import Path

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from schemas.errors import Forbidden, InvalidArgument, TooLarge, TurndexError, Unavailable
from schemas.settings import DEFAULT_PORT, LAST_WALKED_PORT, ServerSettings, Settings
from search_api.address import Address
from search_api.archive import Archive
from search_api.guard import refusal, standing_headers
from search_api.http import create_app
from search_api.log import log_to_stderr
from search_api.memory import limit_kept_memory
from search_api.write_side import indexing

MAX_HEADER_BYTES = 256_000
"""A request line with headers that is longer is refused; a query of 4,096 characters is 49,152 bytes at most."""

IDLE_LOOKS = 20
"""How often a server on demand looks whether anyone calls, in the time after which it ends when nobody does."""

HEAD_SECONDS = 10
"""How long a client may take to send a request line with its headers."""

LINGER_SECONDS = 2
"""How long the rest of a request that was answered or refused unread is still taken."""

_BOTH_LOOPBACKS = ("127.0.0.1", "::1")
_NO_IPV6 = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT})
_FREE_PORT_TRIES = 20
_NOT_ASCII = re.compile(rb"[\x80-\xff]")


def serve(settings: Settings, *, is_on_demand: bool = False) -> None:
    """Serve until SIGTERM or SIGINT, on demand also until nobody has called for a while.

    Raises:
        InvalidArgument: an address that is not loopback without a token, or a port that is taken.
        Unavailable: another process writes to the data directory, or store or index cannot be opened.
    """
    log_to_stderr()
    limit_kept_memory()
    addresses = bound_addresses(settings.server)
    with (
        indexing(settings, is_on_demand=is_on_demand) as status_of,
        closing(Archive.open(settings)) as archive,
        listening(addresses, settings.server.port) as sockets,
    ):
        address = Address(url=url_of(sockets[0]), pid=os.getpid(), instance=secrets.token_hex(16))
        app = create_app(archive, settings, lambda: status_of(archive), address.instance, is_on_demand=is_on_demand)
        config = uvicorn.Config(
            app,
            http=_Protocol,
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        )
        idle_seconds = settings.mcp.on_demand_minutes * 60 if is_on_demand else None
        _Server(config, address, settings.data_dir, idle_seconds).run(sockets=sockets)


def bound_addresses(server: ServerSettings) -> Sequence[str]:
    """The IP addresses to bind: both loopbacks by default.

    Raises:
        InvalidArgument: no address, or one that others can reach without a token being set.
    """
    if server.host in ("localhost", "127.0.0.1"):
        return _BOTH_LOOPBACKS
    try:
        is_loopback = ipaddress.ip_address(server.host).is_loopback
    except ValueError:
        raise InvalidArgument("server.host", "server.host is an IP address or localhost") from None
    if not is_loopback and server.token is None:
        raise InvalidArgument(
            "server.host",
            f"{server.host} can be reached from elsewhere: set server.token as well, or serve on 127.0.0.1",
        )
    return (server.host,)


@contextmanager
def listening(addresses: Sequence[str], port: int | None) -> Iterator[list[socket.socket]]:
    """Sockets that listen on all addresses, on one port.

    Raises:
        InvalidArgument: the port is taken or not allowed.
        Unavailable: no port is given and all that are tried are taken.
    """
    sockets = _any_port(addresses, port)
    try:
        yield sockets
    finally:
        for listener in sockets:
            listener.close()


def url_of(listener: socket.socket) -> str:
    """Where a client on this machine reaches a socket."""
    host, port = listener.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _any_port(addresses: Sequence[str], port: int | None) -> list[socket.socket]:
    if port is None:
        ports: Sequence[int] = range(DEFAULT_PORT, LAST_WALKED_PORT + 1)
    else:
        # With 0 the system chooses for the first address, and that port may be taken on the second.
        ports = [port] if port else [0] * _FREE_PORT_TRIES
    for candidate in ports:
        try:
            return _listen(addresses, candidate)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                where = f"{addresses[0]}, port {candidate}"
                raise InvalidArgument("server.port", f"cannot listen on {where}: {error.strerror}") from error
    if port:
        raise InvalidArgument("server.port", f"port {port} is taken; leave --port out to take the next free one")
    raise Unavailable(
        f"ports {DEFAULT_PORT} to {LAST_WALKED_PORT} are all taken; name another with --port, 0 takes any"
    )


def _listen(addresses: Sequence[str], port: int) -> list[socket.socket]:
    sockets: list[socket.socket] = []
    try:
        for address in addresses:
            try:
                listener = _listener(address, port)
            except OSError as error:
                if sockets and error.errno in _NO_IPV6:
                    continue
                raise
            sockets.append(listener)
            port = listener.getsockname()[1]
    except OSError:
        for listener in sockets:
            listener.close()
        raise
    return sockets


def _listener(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # Named, as only then asyncio sends small answers at once: Nagle's algorithm makes them 40 ms late.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((address, port))
        # Listening at once, not when the server starts, is what takes the port.
        listener.listen(socket.SOMAXCONN)
    except OSError:
        listener.close()
        raise
    return listener


class _Server(uvicorn.Server):
    """uvicorn's server, which says where it is, sleeps while nothing happens, and ends with exit code 0."""

    def __init__(
        self, config: uvicorn.Config, address: Address, data_dir: Path, idle_seconds: float | None = None
    ) -> None:
        """`idle_seconds`: how long nobody may have called before it ends by itself; None: for ever."""
        super().__init__(config)
        self._address = address
        self._data_dir = data_dir
        self._idle_seconds = idle_seconds
        self._ending = asyncio.Event()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for number in signals:
            loop.add_signal_handler(number, self._end)
        try:
            await self._serve(sockets)
        finally:
            self._address.remove(self._data_dir)
            for number in signals:
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._address.write(self._data_dir)
        sys.stdout.write(f"turndex: {self._address.url}\n")
        sys.stdout.flush()

    async def main_loop(self) -> None:
        """Wait for the end; uvicorn's own loop wakes ten times a second."""
        if self._idle_seconds is None:
            await self._ending.wait()
            return
        idle_looks = 0
        while idle_looks < IDLE_LOOKS and not self._ending.is_set():
            answered = self.server_state.total_requests
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), self._idle_seconds / IDLE_LOOKS)
            is_idle = answered == self.server_state.total_requests and not self.server_state.tasks
            idle_looks = idle_looks + 1 if is_idle else 0

    def _end(self) -> None:
        self.should_exit = True
        self._ending.set()


class _Protocol(H11Protocol):
    """uvicorn's protocol: takes URLs as they are typed, refuses in our shape what cannot be routed, and waits for
    nobody for ever. uvicorn itself only limits the time between an answer and the first byte of what follows.

    What the caller is still sending after an answer is taken and dropped for a while: closing at once would
    reset the connection, and the answer would never arrive.
    """

    _is_refused = False
    _late_head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._limit_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._limit_head()

    def on_response_complete(self) -> None:
        unread = self.cycle if self.conn.their_state is h11.SEND_BODY else None
        super().on_response_complete()
        if unread is not None:
            self.loop.call_later(LINGER_SECONDS, self._close_if_unread, unread)

    def _close_if_unread(self, cycle: RequestResponseCycle) -> None:
        if self.cycle is cycle and self.conn.their_state is h11.SEND_BODY:
            self.transport.close()

    def _limit_head(self) -> None:
        """Close the connection unless the head that is now awaited has come in time."""
        is_awaited = self.conn.their_state is h11.IDLE and not self.transport.is_closing()
        if is_awaited and self._late_head is None:
            self._late_head = self.loop.call_later(HEAD_SECONDS, self.transport.close)
        elif not is_awaited and self._late_head is not None:
            self._late_head.cancel()
            self._late_head = None

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        if self.conn.their_state is h11.IDLE:
            # curl sends `?q=错误` as the bytes that were typed; h11 takes only what was percent-encoded.
            line, end, rest = data.partition(b"\r\n")
            data = _NOT_ASCII.sub(lambda byte: b"%%%02X" % byte[0][0], line) + end + rest
        super().data_received(data)
        self._limit_head()

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        error = _malformed(sys.exception())
        headers, body = refusal(error, is_text=False)
        headers += [*standing_headers(), (b"connection", b"close")]
        response = h11.Response(status_code=error.status, headers=headers)
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self._is_refused = True
        self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)


def _malformed(reason: BaseException | None) -> TurndexError:
    """Why a request could not be read, by the exception that h11 raised."""
    if isinstance(reason, h11.RemoteProtocolError):
        if reason.error_status_hint == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            return TooLarge(f"the request line and headers are longer than {MAX_HEADER_BYTES:,} bytes")
        if "Host" in str(reason):
            return Forbidden("a call needs exactly one Host header")
    return InvalidArgument("request", "this is no HTTP request that the server can read")
