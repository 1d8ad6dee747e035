"""Cursors: where an answer ended, and which call it belonged to, as one opaque word."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import orjson

from schemas.errors import InvalidArgument

VERSION = 1


def fingerprint(call: Mapping[str, Any]) -> str:
    """What a cursor is bound to: all of a call but where its answer begins and how long it may be."""
    return blake2b(orjson.dumps(call, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()


def write_cursor(bound_to: str, place: Sequence[int]) -> str:
    packed = orjson.dumps([VERSION, bound_to, *place])
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def read_cursor(cursor: str, bound_to: str, length: int) -> list[int]:
    """The place that a cursor of this very call holds: `length` whole numbers.

    Raises:
        InvalidArgument: the cursor is broken, or belongs to another call.
    """
    try:
        packed = base64.b64decode(cursor.encode() + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        version, bound, *place = orjson.loads(packed)
    except (ValueError, TypeError, binascii.Error) as error:
        raise InvalidArgument("cursor", "cursor is not one that an answer gave") from error
    if (
        version != VERSION
        or len(place) != length
        or not all(type(part) is int and -1 <= part < 2**62 for part in place)
    ):
        raise InvalidArgument("cursor", "cursor is not one that an answer gave")
    if bound != bound_to:
        raise InvalidArgument("cursor", "cursor belongs to another call; pass it with the arguments it came with")
    return [int(part) for part in place]
