"""The directory of a thread whose first line does not tell it: the first turn says it, or the first message."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from indexer.decode import BadJson, decode_object
from indexer.sources.codex.home import tail_of
from indexer.sources.codex.prompts import working_directory
from indexer.sources.codex.values import fields
from indexer.sources.values import text

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
    """The directory that the first environment context or turn context among some items names."""
    return next((found for item in items if (found := _directory_in(item)) is not None), None)


def _directory_in(item: dict[str, Any]) -> str | None:
    match item.get("type"):
        case "turn_context":
            return text(fields(item.get("payload")).get("cwd"))
        case "message" if item.get("role") == "user":
            return working_directory(item.get("content"))
    return None
