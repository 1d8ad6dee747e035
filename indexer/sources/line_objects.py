"""The JSON object on a line of a transcript, whatever happened to the line."""

from collections.abc import Callable
from typing import Any

from indexer.decode import BadJson, decode_object
from indexer.tail import Line


def object_on(line: Line, skip: Callable[[str], None]) -> dict[str, Any] | None:
    """What a line holds, or None; `skip` is told of all that could not be read, with a reason."""
    if line.is_rest:
        skip("rest of a line that was complete without it")
        return None
    if line.has_nuls:
        skip("NUL bytes")
    if not line.raw:
        return None
    try:
        return decode_object(line.raw)
    except BadJson as error:
        skip(error.reason)
        return None
