"""Where a running server is: the file in the data directory that says so, and a look whether it is true."""

import contextlib
import http.client
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

FILE_NAME = "address.json"
TIMEOUT_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Address:
    """A server's address, as `address.json` holds it."""

    url: str
    pid: int
    instance: str
    """Random for every start, and answered by `/healthz`: whoever took over the port later has another."""

    def write(self, data_dir: Path) -> None:
        """Write the file, readable by its owner only, whole or not at all."""
        path = data_dir / f".{FILE_NAME}.{secrets.token_hex(4)}"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(orjson.dumps(asdict(self)))
        path.replace(data_dir / FILE_NAME)

    def remove(self, data_dir: Path) -> None:
        """Remove the file unless another server has written its own meanwhile."""
        if read_address(data_dir) == self:
            with contextlib.suppress(FileNotFoundError):
                (data_dir / FILE_NAME).unlink()


def read_address(data_dir: Path) -> Address | None:
    """What the file says; None where there is none, or it is not ours. The server may be gone."""
    try:
        values = orjson.loads((data_dir / FILE_NAME).read_bytes())
        return Address(url=str(values["url"]), pid=int(values["pid"]), instance=str(values["instance"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


class Silent(Exception):
    """What listens where a server wrote that it is does not answer."""

    def __init__(self, address: Address) -> None:
        super().__init__(f"{address.url} does not answer within {TIMEOUT_SECONDS} s")
        self.address = address


def running_server(data_dir: Path) -> Address | None:
    """The server of this data directory, if it answers and is the one that wrote its address."""
    with contextlib.suppress(Silent):
        return find_server(data_dir)
    return None


def find_server(data_dir: Path) -> Address | None:
    """As `running_server`, but tells a server that is not there from one that hangs.

    Raises:
        Silent: something is there, and does not answer.
    """
    found = _look(data_dir)
    return None if found is None else found[0]


def is_on_demand(data_dir: Path) -> bool:
    """Whether a server of this data directory is running that was started on demand."""
    with contextlib.suppress(Silent):
        found = _look(data_dir)
        return found is not None and found[1].get("on_demand") is True
    return False


def _look(data_dir: Path) -> tuple[Address, dict[str, Any]] | None:
    """The server that is running, and what it says of its health."""
    address = read_address(data_dir)
    if address is None:
        return None
    try:
        health = orjson.loads(ask(address, "/healthz"))
        return (address, health) if health["instance"] == address.instance else None
    except TimeoutError as timeout:
        raise Silent(address) from timeout
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None


def ask(address: Address, path: str, token: str | None = None) -> bytes:
    """The body that a server answers to a GET.

    Raises:
        OSError, http.client.HTTPException: it cannot be reached, refuses, or speaks something else.
    """
    parts = urlsplit(address.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise http.client.HTTPException(f"{path} was answered with status {response.status}")
        return response.read()
    finally:
        connection.close()


def served_status(data_dir: Path, token: str | None, form: str) -> bytes | None:
    """What the running server answers to `/status`, in `json` or `text`; None without one."""
    address = running_server(data_dir)
    if address is None:
        return None
    try:
        return ask(address, f"/status?format={form}", token)
    except (OSError, http.client.HTTPException):
        return None
