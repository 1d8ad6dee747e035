"""MCP over standard input and output: a message a line, until the client has left.

Two threads of their own read and write, and neither keeps the process: a read that waits for a client cannot be
called off, and would hold up an end by a signal. What was asked before standard input ended is answered still, for as
long as someone reads the answers.
"""

import asyncio
import fcntl
import math
import os
import queue
import select
import signal
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from schemas.texts import without_half_pairs
from search_api.mcp_messages import Message, Unreadable, as_json, read_message

LAST_ANSWER_SECONDS = 90.0
"""How long answers are waited for once standard input has ended: more than a call takes that starts a server first."""

LAST_WRITE_SECONDS = 2.0
"""How long a client that has left, or was sent a signal for, may take to read what is written already."""

_READ_BYTES = 65_536
_POLL_SECONDS = 0.05


async def serve_lines(server: Server[Any], beside: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Serve until standard input ends, nobody reads standard output any more, or SIGINT or SIGTERM comes.

    Meanwhile whatever else the process prints goes to standard error. `beside` runs until then.
    """
    reading, writing = _claimed()
    to_server, for_server = anyio.create_memory_object_stream[SessionMessage | Exception]()
    # Unbounded, as the SDK's last words must not wait for anyone to take them.
    from_server, for_client = anyio.create_memory_object_stream[SessionMessage](math.inf)
    open_requests = _OpenRequests()
    async with anyio.create_task_group() as tasks:
        output = _Output(writing, tasks.cancel_scope.cancel)

        async def take_lines() -> None:
            async with to_server:
                lines = _lines_of(reading)
                while (line := await lines.get()) is not None:
                    await _take(line, to_server, open_requests, output)
                with anyio.move_on_after(LAST_ANSWER_SECONDS):
                    while not _is_gone(writing):
                        with anyio.move_on_after(_POLL_SECONDS):
                            await open_requests.are_answered()
                            break

        async def give_lines() -> None:
            async for sent in for_client:
                open_requests.answered(sent.message)
                output.write(as_json(sent.message))

        async def end_at_a_signal() -> None:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    tasks.cancel_scope.cancel()

        tasks.start_soon(beside)
        for work in (take_lines, give_lines, end_at_a_signal):
            tasks.start_soon(work)
        await server.run(for_server, from_server, server.create_initialization_options())
        tasks.cancel_scope.cancel()
    with for_client:
        for left in _left_in(for_client):
            output.write(as_json(left.message))
    output.close()


class _OpenRequests:
    """The requests that were taken and not answered."""

    def __init__(self) -> None:
        self._ids: Counter[str] = Counter()
        self._one_less = anyio.Event()

    async def are_answered(self) -> None:
        """Wait until there are none."""
        while self._ids.total():
            await self._one_less.wait()

    def asked(self, message: Message) -> None:
        match message:
            case JSONRPCRequest():
                self._ids[repr(message.id)] += 1
            case JSONRPCNotification(method="notifications/cancelled"):
                # Nobody waits for it, and it is not answered.
                self._remove((message.params or {}).get("requestId"))

    def answered(self, message: Message) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._remove(message.id)

    def _remove(self, request_id: Any) -> None:
        self._ids -= Counter([repr(request_id)])
        self._one_less.set()
        self._one_less = anyio.Event()


async def _take(
    line: bytes,
    to_server: MemoryObjectSendStream[SessionMessage | Exception],
    open_requests: _OpenRequests,
    output: "_Output",
) -> None:
    """Pass a line on as the message that it is; what is none is answered here."""
    if not line.strip():
        return
    try:
        message = read_message(without_half_pairs(line.decode(errors="replace")))
    except Unreadable as unreadable:
        output.write(as_json(unreadable.error))
        return
    open_requests.asked(message)
    await to_server.send(SessionMessage(message))


def _left_in(messages: MemoryObjectReceiveStream[SessionMessage]) -> Iterator[SessionMessage]:
    with suppress(anyio.WouldBlock, anyio.EndOfStream):
        while True:
            yield messages.receive_nowait()


def _claimed() -> tuple[int, int]:
    """Descriptors of what are standard input and output now; from here on these are nothing, and standard error.

    Children have neither, and what anyone prints by accident cannot get between two messages.
    """
    reading, writing = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3) for number in (0, 1))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no standard error
        os.dup2(nothing, 1)
    os.close(nothing)
    return reading, writing


def _is_gone(writing: int) -> bool:
    """Whether nobody is at the other end any more; not known of a file, which takes everything."""
    poll = select.poll()
    poll.register(writing, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _lines_of(reading: int) -> "asyncio.Queue[bytes | None]":
    """The lines as they come in, without their ends; None where the input ends."""
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    in_loop = _in_loop()

    def read() -> None:
        unfinished = bytearray()
        with suppress(OSError):  # the terminal is gone: the end as well
            while chunk := os.read(reading, _READ_BYTES):
                *whole, rest = chunk.split(b"\n")
                for line in whole:
                    in_loop(lines.put_nowait, bytes(unfinished) + line)
                    unfinished.clear()
                unfinished += rest
        in_loop(lines.put_nowait, bytes(unfinished))
        in_loop(lines.put_nowait, None)

    threading.Thread(target=read, name="standard input", daemon=True).start()
    return lines


class _Output:
    """Writes lines in their order, in a thread."""

    def __init__(self, writing: int, on_gone: Callable[[], None]) -> None:
        """`on_gone` is called in the event loop when nobody takes them any more."""
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._write, args=(writing, on_gone, _in_loop()), name="standard output", daemon=True
        )
        self._thread.start()

    def write(self, line: bytes) -> None:
        self._lines.put(line + b"\n")

    def close(self) -> None:
        self._lines.put(None)
        self._thread.join(LAST_WRITE_SECONDS)

    def _write(self, writing: int, on_gone: Callable[[], None], in_loop: Callable[..., None]) -> None:
        try:
            while (line := self._lines.get()) is not None:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(writing, rest) :]
        except OSError:
            in_loop(on_gone)


def _in_loop() -> Callable[..., None]:
    """What calls a function in this event loop from another thread; once the loop has ended it does nothing."""
    loop = asyncio.get_running_loop()

    def call(function: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(function, *arguments)

    return call
