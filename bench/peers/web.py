"""Tools that answer over HTTP: a server of their own for the time of the measurement."""

import json
import os
import signal
import socket
import subprocess
import time
from abc import abstractmethod
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlencode

from bench.peers.base import CALL_SECONDS, Bench, Program, Unusable

START_SECONDS = 60
POLL_SECONDS = 0.05


class Served(Program):
    """Asked over one connection that is kept open where the server lets it be."""

    timed = "the HTTP call on loopback, to a server that is running"

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self._server: subprocess.Popen[bytes] | None = None
        self._port = _free_port()
        self._connection = HTTPConnection("127.0.0.1", self._port, timeout=CALL_SECONDS)

    @abstractmethod
    def serve_arguments(self, port: int) -> Sequence[str]: ...

    def get(self, path: str, arguments: dict[str, str | int]) -> Any:
        """A JSON answer.

        Raises:
            Unusable: it was refused, or did not come.
        """
        self._serve()
        try:
            self._connection.request("GET", f"{path}?{urlencode(arguments)}")
            response = self._connection.getresponse()
            body = response.read()
        except (OSError, HTTPException) as error:
            self._connection.close()
            raise Unusable(f"its server did not answer: {error!r}") from error
        if response.status != 200:
            raise Unusable(f"{response.status} {body[:200].decode(errors='replace')}")
        return json.loads(body)

    def close(self) -> None:
        self._connection.close()
        if self._server is not None and self._server.poll() is None:
            # Its own group: a script in front of the program may have started it as another process.
            os.killpg(self._server.pid, signal.SIGTERM)
            self._server.wait(timeout=30)

    def _serve(self) -> None:
        if self._server is not None:
            return
        self._server = subprocess.Popen(
            [self.path, *self.serve_arguments(self._port)],
            env=self.environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        give_up = time.monotonic() + START_SECONDS
        while time.monotonic() < give_up and self._server.poll() is None:
            try:
                self._connection.connect()
            except ConnectionRefusedError:
                time.sleep(POLL_SECONDS)
            else:
                return
        raise Unusable(f"its server did not answer within {START_SECONDS} s")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
