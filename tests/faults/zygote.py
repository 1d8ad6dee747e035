"""Processes that index, started within a millisecond by forking one that has everything loaded.

    python -m tests.faults.zygote

reads JSON lines from its standard input, `{"flags": <settings>, "patches": {"indexer.pipeline.SLICE_SECONDS": 0}}`,
starts an indexer for each in a process of its own, and answers with that one's id. It ends, and they with it,
when its input does.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from indexer.service import Indexer
from schemas.settings import load_settings
from tests.waiting import wait_for

_REPOSITORY = Path(__file__).parents[2]


class Zygote:
    """The side of the test."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def start(self, flags: Mapping[str, Any], patches: Mapping[str, Any] | None = None) -> int:
        """Start an indexer; its process id."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"flags": flags, "patches": patches or {}}) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def kill(self, process: int) -> None:
        """SIGKILL, and wait until it is gone."""
        os.kill(process, signal.SIGKILL)
        wait_for(lambda: not _is_there(process), "the killed process is gone")


@contextmanager
def zygote(log: Path) -> Iterator[Zygote]:
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "tests.faults.zygote"],
            cwd=_REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            yield Zygote(process)
        finally:
            process.communicate(timeout=30)


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _index_forever(flags: Mapping[str, Any], patches: Mapping[str, Any]) -> None:
    for name, value in patches.items():
        module, _, attribute = name.rpartition(".")
        setattr(importlib.import_module(module), attribute, value)
    Indexer(load_settings(flags=flags)).start()
    threading.Event().wait()


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever ends is gone at once
    children: list[int] = []
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            order = json.loads(line)
            _index_forever(order["flags"], order["patches"])
        children.append(child)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main()
