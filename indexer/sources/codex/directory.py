"""The directory of a thread whose first line does not tell it: the agent was told it before the first message."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from indexer.decode import BadJson, decode_object
from indexer.sources.codex.home import tail_of
from indexer.sources.codex.prompts import working_directory
from indexer.sources.codex.values import fields

MAX_LINES = 200
"""So many lines of a file are looked through, or"""

MAX_BYTES = 4_000_000


def find_directory(path: Path) -> tuple[str | None, bool]:
    """The directory that the first lines of a file name, and whether these were all that are to be looked through.

    Raises:
        OSError, Unreadable: the file cannot be read.
    """
    is_all = True

    def first_items() -> Iterator[dict[str, Any]]:
        nonlocal is_all
        size = 0
        with tail_of(path) as tail:
            for line in tail:
                size += len(line.raw)
                if line.number > MAX_LINES or size > MAX_BYTES:
                    is_all = False
                    return
                try:
                    value = decode_object(line.raw)
                except BadJson:
                    continue
                yield fields(value.get("payload")) if value.get("type") == "response_item" else value

    return directory_among(first_items()), is_all


def directory_among(items: Iterable[dict[str, Any]]) -> str | None:
    """The directory that the first environment context among some items names."""
    contents = (item.get("content") for item in items if item.get("type") == "message" and item.get("role") == "user")
    return next((found for content in contents if (found := working_directory(content)) is not None), None)
