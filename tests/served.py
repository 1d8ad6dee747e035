"""A real `turndex serve` in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.home import home_environment
from tests.waiting import wait_for

COMMAND = str(Path(sys.executable).with_name("turndex"))
"""The command as it was installed beside the interpreter that runs the tests."""

_FIRST_LINE = "turndex: "


@contextmanager
def served(home: Path, arguments: Sequence[str] = (), *, until_ready: bool = True) -> Iterator[httpx.Client]:
    """Serve on a free port in the environment of `home`; yields a client of that server, and stops it."""
    log = home / "serve.log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [COMMAND, "serve", "--port", "0", *arguments],
            env=home_environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith(_FIRST_LINE), f"{line!r} is no first line\n{log.read_text(encoding='utf-8')}"
            with httpx.Client(base_url=line.removeprefix(_FIRST_LINE).strip(), timeout=30, trust_env=False) as client:
                if until_ready:
                    wait_for(lambda: client.get("/readyz").is_success, "the server is ready")
                yield client
        finally:
            process.terminate()
            process.communicate(timeout=30)
