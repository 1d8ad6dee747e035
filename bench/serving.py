"""A real `turndex serve` in a process of its own, with an archive of ours."""

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

COMMAND = str(Path(sys.executable).with_name("turndex"))
"""The command as it was installed beside the interpreter that runs the benchmarks."""

READY_SECONDS = 600
POLL_SECONDS = 0.02
FIRST_LINE = "turndex: "


@dataclass(frozen=True)
class Server:
    pid: int
    host: str
    port: int

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=30)

    def is_ready(self) -> bool:
        """Whether the first scan is done."""
        connection = self.connect()
        try:
            return get(connection, "/readyz")[0] == http.client.OK
        finally:
            connection.close()

    def wait_until_ready(self) -> None:
        give_up = time.monotonic() + READY_SECONDS
        while not self.is_ready():
            if time.monotonic() > give_up:
                raise SystemExit(f"the server was not ready within {READY_SECONDS} s")
            time.sleep(POLL_SECONDS)


@contextmanager
def serving(settings_file: Path) -> Iterator[Server]:
    """Serve on a free port until the block ends; yields as soon as the server says where it is."""
    log = settings_file.with_suffix(".log")
    with (
        log.open("ab") as errors,
        subprocess.Popen(
            [COMMAND, "serve", "--port", "0", "--config", str(settings_file)],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith(FIRST_LINE):
                raise SystemExit(f"the server did not start:\n{log.read_text(encoding='utf-8')}")
            address = urlsplit(line.removeprefix(FIRST_LINE).strip())
            yield Server(process.pid, address.hostname or "", address.port or 0)
        finally:
            process.terminate()
            process.communicate(timeout=60)


def get(connection: http.client.HTTPConnection, target: str) -> tuple[int, bytes]:
    """Status and body of a GET; the connection stays open."""
    connection.request("GET", target)
    response = connection.getresponse()
    return response.status, response.read()


def write_settings(path: Path, tree: Mapping[str, Any]) -> Path:
    """Write a settings file; answers its path."""
    path.write_text("\n".join(_toml(tree)) + "\n", encoding="utf-8")
    return path


def environment() -> dict[str, str]:
    """The environment without variables that are settings of turndex."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TURNDEX_")}


def _toml(tree: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Dotted keys; strings, numbers, booleans and lists of these are written alike in JSON and TOML."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _toml(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name} = {json.dumps(value)}"
