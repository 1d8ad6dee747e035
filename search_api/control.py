"""Commands that write, between a command line and the running server: over `control.sock` in the data directory.

There is no route for them on a TCP port, where any program of any user could call. The socket is its owner's alone,
and so is the folder that it lies in; on Linux the system also says who called. A connection carries one order, as
a line of JSON:

    {"id": "6f1c…", "command": {"kind": "forget", "sessions": [43], "keeps_away": true}}

and is answered in lines of JSON, the last of which is `done` or `error`:

    {"accepted": "6f1c…"}
    {"progress": "the index is made anew from what is left"}
    {"done": {"sessions": 1, "turns": 9}}
    {"error": {"code": "invalid_argument", "detail": "this id was given to another command"}}

What was accepted is carried out whether or not the caller waits for it.
"""

import logging
import os
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from pydantic import ValidationError

from indexer.commands import Accepted, Done, Forgotten, News, Order, Progress, Refused, Ticket
from schemas.errors import InvalidArgument, TurndexError, Unavailable

SOCKET_FILE = "control.sock"

MAX_ADDRESS_BYTES = 100
"""A path that is longer is no address: the system takes 103 bytes on macOS and 107 on Linux."""

MAX_ORDER_BYTES = 16_000_000
READ_SECONDS = 10.0
"""How long a caller may take to send its order, which it has at hand."""

_PEER_CREDENTIALS = struct.Struct("3i")
"""Process, user and group (Linux: unix(7), SO_PEERCRED)."""

log = logging.getLogger(__name__)

Submit = Callable[[Order], Ticket]


@contextmanager
def listening_for_commands(data_dir: Path, submit: Submit) -> Iterator[None]:
    """Take orders until the block ends; for the process that holds the data directory.

    Where its file system has no sockets there are none, and the log says so.
    """
    path = data_dir / SOCKET_FILE
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            path.unlink(missing_ok=True)  # of a server that was killed
            with _short(data_dir) as address:
                listener.bind(address)
            path.chmod(0o600)  # before anybody can connect
            listener.listen()
        except OSError as error:
            log.warning("commands that write cannot reach this server: %s: %s", path, error.strerror or error)
            yield
            return
        ending, end = socket.socketpair()
        thread = threading.Thread(target=_accept, args=(listener, ending, submit), name="turndex-control")
        thread.start()
        try:
            yield
        finally:
            end.close()
            thread.join()
            ending.close()
            path.unlink(missing_ok=True)


def ask_server(data_dir: Path, order: Order, tell: Callable[[str], None]) -> Forgotten | None:
    """Have the running server carry out an order; None where there is none.

    Raises:
        TurndexError: it refused, or ended before it was done.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, _short(data_dir) as address:
        try:
            connection.connect(address)
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        is_accepted = False
        try:
            connection.sendall(order.model_dump_json().encode() + b"\n")
            with connection.makefile("rb") as answers:
                for line in answers:
                    says: dict[str, Any] = orjson.loads(line)
                    is_accepted = is_accepted or "accepted" in says
                    if "progress" in says:
                        tell(says["progress"])
                    elif "done" in says:
                        return Forgotten.model_validate(says["done"])
                    elif "error" in says:
                        raise _error(says["error"])
        except (OSError, ValueError) as error:
            raise Unavailable(f"the server did not answer: {error}; {_what_now(is_accepted)}") from error
        raise Unavailable(f"the server ended; {_what_now(is_accepted)}")


def _what_now(is_accepted: bool) -> str:
    return "its next start finishes what was begun" if is_accepted else "nothing was begun, call again"


@contextmanager
def _short(data_dir: Path) -> Iterator[str]:
    """The socket's path, or where that is too long for an address one that leads there."""
    path = str(data_dir / SOCKET_FILE)
    if len(os.fsencode(path)) <= MAX_ADDRESS_BYTES:
        yield path
        return
    with TemporaryDirectory(prefix="turndex-", dir="/tmp") as folder:
        os.symlink(data_dir, f"{folder}/d")
        yield f"{folder}/d/{SOCKET_FILE}"


def _accept(listener: socket.socket, ending: socket.socket, submit: Submit) -> None:
    """Serve whoever connects, each in a thread of its own, until the other end of `ending` is closed."""
    while True:
        ready, _, _ = select.select([listener, ending], [], [])
        if ending in ready:
            return
        connection, _ = listener.accept()
        threading.Thread(target=_serve, args=(connection, submit), name="turndex-order", daemon=True).start()


def _serve(connection: socket.socket, submit: Submit) -> None:
    # Whoever goes away before the end is told nothing more; what it asked for is done all the same.
    with connection, suppress(OSError):
        try:
            _refuse_others(connection)
            ticket = submit(_order(connection))
        except TurndexError as error:
            _send(connection, _form(Refused(error), ""))
            return
        for news in ticket.follow():
            _send(connection, _form(news, ticket.order.id))


def _refuse_others(connection: socket.socket) -> None:
    if not hasattr(socket, "SO_PEERCRED"):
        return  # the mode of the socket and of its folder decide
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
    _, user, _ = _PEER_CREDENTIALS.unpack(raw)
    if user != os.geteuid():
        raise Unavailable("only the user that the server runs as may send commands")


def _order(connection: socket.socket) -> Order:
    connection.settimeout(READ_SECONDS)
    with connection.makefile("rb") as lines:
        line = lines.readline(MAX_ORDER_BYTES)
    connection.settimeout(None)
    try:
        return Order.model_validate_json(line)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, problem["loc"])) or "order"
        raise InvalidArgument(where, f"{where}: {problem['msg']}") from error


def _form(news: News, id_: str) -> Mapping[str, Any]:
    match news:
        case Accepted():
            return {"accepted": id_}
        case Progress(says):
            return {"progress": says}
        case Done(answer):
            return {"done": answer.model_dump()}
        case Refused(error):
            return {"error": {"code": error.code, "detail": error.detail}}


def _send(connection: socket.socket, form: Mapping[str, Any]) -> None:
    connection.sendall(orjson.dumps(form) + b"\n")


def _error(form: Mapping[str, str]) -> TurndexError:
    if form["code"] == InvalidArgument.code:
        return InvalidArgument("order", form["detail"])
    return Unavailable(form["detail"])
