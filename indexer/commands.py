"""What callers may have written: typed commands, stored under an id of the caller's before they are acknowledged.

A command that was stored is carried out, whatever happens: by this process, or by the next that writes. One
that is sent twice with the same id is carried out once.
"""

import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from indexer.store.writer import StoreWriter
from schemas.errors import InvalidArgument, TurndexError, Unavailable

MAX_ID_CHARS = 128


class Forget(BaseModel):
    """Remove sessions, until nothing in the data directory holds their text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["forget"] = "forget"
    sessions: tuple[int, ...]
    """Their keys in the store, which are never given again."""
    keeps_away: bool = True
    """Whether a transcript that is still there may not bring them back; then all that they started goes with them."""


Command: TypeAlias = Forget


class Order(BaseModel):
    """A command with the id that makes sending it twice the same as sending it once."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(min_length=1, max_length=MAX_ID_CHARS)
    command: Command


class Forgotten(BaseModel):
    """What a `Forget` came to."""

    model_config = ConfigDict(frozen=True)

    sessions: int
    turns: int


class Step(IntEnum):
    """How far a command was carried out."""

    ACCEPTED = 0
    REMOVED = 1
    """No question finds it any more."""
    PURGED = 2
    """Nor do the bytes of the store hold it."""
    REPLACING = 3
    """An index that never had it is being made."""
    DONE = 4


@dataclass(frozen=True, slots=True)
class Accepted:
    """It is stored, and will be carried out."""


@dataclass(frozen=True, slots=True)
class Progress:
    says: str


@dataclass(frozen=True, slots=True)
class Done:
    answer: Forgotten


@dataclass(frozen=True, slots=True)
class Refused:
    """The last that is heard of it; where it was accepted before, the next start goes on with it."""

    error: TurndexError


News: TypeAlias = Accepted | Progress | Done | Refused


class Ticket:
    """What one caller hears of an order."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()

    def tell(self, news: News) -> None:
        self._news.put(news)

    def heard(self) -> Iterator[News]:
        """What was told and not heard yet."""
        while not self._news.empty():
            yield self._news.get()

    def follow(self) -> Iterator[News]:
        """All that is told, to the end; waits for it."""
        while True:
            news = self._news.get()
            yield news
            if isinstance(news, Done | Refused):
                return


class Commands:
    """Takes orders of any thread, and stores them in the one that writes."""

    def __init__(self, store: StoreWriter) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._is_closed = False
        self._inbox: list[Ticket] = []
        self._tickets: list[Ticket] = []
        """Of orders that are stored and not done."""
        self._told_last = ""
        self.are_open = bool(self.at(*(step for step in Step if step is not Step.DONE)))
        """Whether there are commands to be carried out."""

    def submit(self, order: Order) -> Ticket:
        """Hand in an order; whoever writes is to be woken."""
        ticket = Ticket(order)
        with self._lock:
            if self._is_closed:
                ticket.tell(Refused(Unavailable("the server is ending; send the command again")))
            else:
                self._inbox.append(ticket)
        return ticket

    def accept(self) -> bool:
        """Store what was handed in; whether there was anything."""
        with self._lock:
            inbox, self._inbox = self._inbox, []
        for ticket in inbox:
            try:
                step, answer = self.store(ticket.order)
            except InvalidArgument as refusal:
                ticket.tell(Refused(refusal))
                continue
            ticket.tell(Accepted())
            if step is Step.DONE and answer is not None:
                ticket.tell(Done(answer))
            else:
                self._tickets.append(ticket)
        return bool(inbox)

    def store(self, order: Order) -> tuple[Step, Forgotten | None]:
        """Store an order unless it is; how far it was carried out.

        Raises:
            InvalidArgument: its id was given to another command.
        """
        body = order.command.model_dump_json()
        known = self._store.connection.execute(
            "SELECT body, step, answer FROM commands WHERE id = ?", (order.id,)
        ).fetchone()
        if known is None:
            with self._store.durably(), self._store.transaction():
                self._store.connection.execute(
                    "INSERT INTO commands VALUES (?, ?, ?, NULL)", (order.id, body, Step.ACCEPTED)
                )
            self.are_open = True
            return Step.ACCEPTED, None
        if known[0] != body:
            raise InvalidArgument("id", "this id was given to another command")
        return Step(known[1]), None if known[2] is None else Forgotten.model_validate_json(known[2])

    def at(self, *steps: Step) -> list[Order]:
        """The commands that have come so far."""
        marks = ",".join("?" * len(steps))
        rows = self._store.connection.execute(f"SELECT id, body FROM commands WHERE step IN ({marks})", steps)
        return [Order(id=id_, command=Forget.model_validate_json(body)) for id_, body in rows]

    def advance(self, orders: Sequence[Order], step: Step) -> None:
        """Note, as part of a transaction, how far they have come."""
        self._store.connection.executemany(
            "UPDATE commands SET step = ? WHERE id = ?", [(step, order.id) for order in orders]
        )

    def answer(self, order: Order, answer: Forgotten) -> None:
        """Note, as part of a transaction, what a command came to."""
        self._store.connection.execute(
            "UPDATE commands SET answer = ? WHERE id = ?", (answer.model_dump_json(), order.id)
        )

    def tell(self, says: str) -> None:
        """Tell everyone who waits what is being done now, unless that was the last that they heard."""
        if says == self._told_last:
            return
        self._told_last = says
        for ticket in self._tickets:
            ticket.tell(Progress(says))

    def tell_done(self) -> None:
        """Tell those whose commands are done."""
        waiting: list[Ticket] = []
        for ticket in self._tickets:
            step, answer = self.store(ticket.order)
            if step is Step.DONE and answer is not None:
                ticket.tell(Done(answer))
            else:
                waiting.append(ticket)
        self._tickets = waiting
        self.are_open = bool(self.at(*(step for step in Step if step is not Step.DONE)))

    def close(self) -> None:
        """Let nobody wait who would wait for ever."""
        with self._lock:
            self._is_closed = True
            inbox, self._inbox = self._inbox, []
        for ticket in inbox:
            ticket.tell(Refused(Unavailable("the server has ended; send the command again")))
        for ticket in self._tickets:
            ticket.tell(Refused(Unavailable("the server has ended before it was done; its next start goes on with it")))
        self._tickets = []
