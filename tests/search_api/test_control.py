"""Orders that reach a running server over the control socket, and what it answers to those that are none."""

import json
import os
import queue
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from indexer.commands import Accepted, Done, Forget, Forgotten, News, Order, Progress, Refused, Ticket
from schemas.errors import InvalidArgument, Unavailable
from search_api.control import SOCKET_FILE, ask_server, listening_for_commands

ORDER = Order(id="f1", command=Forget(sessions=(1, 2)))


@contextmanager
def answering(data_dir: Path, *news: News) -> Iterator[list[Order]]:
    """A server that tells these of every order; yields the orders."""
    orders: list[Order] = []

    def submit(order: Order) -> Ticket:
        orders.append(order)
        ticket = Ticket(order)
        for one in news:
            ticket.tell(one)
        return ticket

    with listening_for_commands(data_dir, submit):
        yield orders


def test_an_order_is_accepted_told_of_and_done(tmp_path: Path) -> None:
    told: list[str] = []
    done = Forgotten(sessions=2, turns=9)
    with answering(tmp_path, Accepted(), Progress("half"), Done(done)) as orders:
        assert stat.S_IMODE((tmp_path / SOCKET_FILE).stat().st_mode) == 0o600
        assert ask_server(tmp_path, ORDER, told.append) == done
    assert (orders, told) == ([ORDER], ["half"])
    assert not (tmp_path / SOCKET_FILE).exists()


def test_without_a_server_there_is_no_answer(tmp_path: Path) -> None:
    assert ask_server(tmp_path, ORDER, print) is None
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / SOCKET_FILE))
    assert ask_server(tmp_path, ORDER, print) is None
    with answering(tmp_path, Done(Forgotten(sessions=0, turns=0))):
        assert ask_server(tmp_path, ORDER, print) is not None


def test_a_path_that_is_too_long_for_an_address_is_reached_all_the_same(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100) / ("é" * 50)
    deep.mkdir(parents=True)
    done = Forgotten(sessions=1, turns=1)
    with answering(deep, Accepted(), Done(done)):
        assert (deep / SOCKET_FILE).is_socket()
        assert ask_server(deep, ORDER, print) == done


def test_where_there_can_be_no_socket_the_server_serves_without(tmp_path: Path) -> None:
    (tmp_path / SOCKET_FILE).mkdir()
    with answering(tmp_path) as orders:
        assert ask_server(tmp_path, ORDER, print) is None
    assert not orders


@pytest.mark.parametrize(
    ("news", "says"),
    [
        ([Refused(InvalidArgument("id", "given to another"))], "given to another"),
        ([Accepted(), Refused(Unavailable("it has ended"))], "it has ended"),
    ],
)
def test_a_refusal_arrives_as_what_it_is(tmp_path: Path, news: list[News], says: str) -> None:
    refused = news[-1]
    assert isinstance(refused, Refused)
    with answering(tmp_path, *news), pytest.raises(type(refused.error), match=says):
        ask_server(tmp_path, ORDER, print)


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"{}\n",
        b"\xff\xfe\n",
        b'{"id": "", "command": {"kind": "forget", "sessions": []}}\n',
        b'{"id": "a", "command": {"kind": "burn", "sessions": []}}\n',
        b'{"id": "a", "command": {"kind": "forget", "sessions": ["x"]}}\n',
        b'{"id": "a", "command": {"kind": "forget", "sessions": [], "path": "/"}}\n',
    ],
)
def test_what_is_no_order_is_refused(tmp_path: Path, line: bytes) -> None:
    with answering(tmp_path) as orders, socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(tmp_path / SOCKET_FILE))
        connection.sendall(line)
        with connection.makefile("rb") as answers:
            (answer,) = map(json.loads, answers)
    assert answer["error"]["code"] == "invalid_argument"
    assert not orders


def test_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(socket, "SO_PEERCRED"):
        return  # there the modes of socket and folder decide
    other = os.getuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with answering(tmp_path) as orders, pytest.raises(Unavailable, match="only the user"):
        ask_server(tmp_path, ORDER, print)
    assert not orders


def test_whoever_goes_away_does_not_keep_the_server_from_ending(tmp_path: Path) -> None:
    arrived: queue.SimpleQueue[Ticket] = queue.SimpleQueue()

    def submit(order: Order) -> Ticket:
        ticket = Ticket(order)
        arrived.put(ticket)
        return ticket

    with listening_for_commands(tmp_path, submit):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(tmp_path / SOCKET_FILE))
            connection.sendall(ORDER.model_dump_json().encode() + b"\n")
            ticket = arrived.get(timeout=10)
        ticket.tell(Progress("nobody hears it"))
        ticket.tell(Done(Forgotten(sessions=0, turns=0)))
