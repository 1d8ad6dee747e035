"""Many searches over HTTP from a process of its own: connections that stay open, each asking one after the other."""

import http.client
import multiprocessing
import threading
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import cycle, islice
from multiprocessing.connection import Connection
from urllib.parse import urlencode

import orjson

from bench.queries import Query
from bench.serving import Server, get

MAX_EXAMPLES = 5


@dataclass
class Asked:
    seconds: float = 0.0
    took_ms: list[float] = field(default_factory=list)
    errors: int = 0
    examples: list[str] = field(default_factory=list)
    """What some of the errors were."""

    def fail(self, example: str) -> None:
        self.errors += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(example)


def ask_over_http(
    server: Server, queries: list[Query], *, connections: int, searches: int | None = None, seconds: float = 1e9
) -> Asked:
    """Ask the queries round and round, so many searches in all or for so many seconds; every fourth with detail."""
    targets = [
        "/session_search?" + urlencode({"q": query.text, "mode": query.mode, "full": str(number % 4 == 3).lower()})
        for number, query in enumerate(queries)
    ]
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_ask, args=(sender, server, targets, connections, searches, seconds))
    process.start()
    sender.close()
    try:
        asked: Asked = receiver.recv()
    except EOFError:
        raise SystemExit("the client failed; see above") from None
    finally:
        process.join()
    return asked


def _ask(
    sender: Connection, server: Server, targets: list[str], connections: int, searches: int | None, seconds: float
) -> None:
    share = None if searches is None else -(-searches // connections)
    asked = Asked()
    started = time.perf_counter()
    until = started + seconds

    def keep_asking(number: int) -> None:
        connection = server.connect()
        first = number * len(targets) // connections
        for target in islice(cycle(targets[first:] + targets[:first]), share):
            began = time.perf_counter()
            if began >= until:
                break
            try:
                status, body = get(connection, target)
            except (OSError, http.client.HTTPException) as error:
                asked.fail(f"{target}: {error!r}")
                connection.close()  # the next request opens it again
                continue
            asked.took_ms.append((time.perf_counter() - began) * 1000)
            if status != HTTPStatus.OK or "hits" not in orjson.loads(body):
                asked.fail(f"{target}: {status} {body[:200].decode('utf-8', 'replace')}")
        connection.close()

    threads = [threading.Thread(target=keep_asking, args=(number,)) for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asked.seconds = time.perf_counter() - started
    sender.send(asked)
    sender.close()
