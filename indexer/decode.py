"""From bytes of JSON to values, however the bytes were mistreated.

Text that comes out never holds a lone surrogate, so that it can be stored, indexed and sent.
"""

import json
import re
from typing import Any

import orjson

_BOM = b"\xef\xbb\xbf"
_MAX_INTEGER_DIGITS = 19
MAX_DEPTH = 500
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


class BadJson(ValueError):
    """The bytes are no JSON; `reason` says why in a few words that hold nothing of their text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def decode(raw: bytes) -> Any:
    """The value that the bytes write.

    Tolerated, as writers do them: a byte order mark, bytes that are not UTF-8 and escapes of lone surrogates
    (both become U+FFFD), `NaN` and infinities, numbers of any size (those over 64 bits become floats), and any
    depth (what is nested more than 500 deep becomes null).

    Raises:
        BadJson: cut, or no JSON at all.
    """
    raw = raw.removeprefix(_BOM)
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _decode_mended(raw)


def decode_object(raw: bytes) -> dict[str, Any]:
    """The JSON object that the bytes write.

    Raises:
        BadJson: no JSON, or JSON of something else.
    """
    value = decode(raw)
    if not isinstance(value, dict):
        raise BadJson("not a JSON object")
    return value


def _decode_mended(raw: bytes) -> Any:
    text = _ESCAPE.sub(_without_lone_surrogate, raw.decode("utf-8", "replace"))
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        # orjson refuses NaN, huge numbers and a depth over 1024, which json may still read.
        try:
            return _loads(text)
        except RecursionError:
            return _loads(_without_depths(text))


def _loads(text: str) -> Any:
    try:
        return json.loads(text, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise BadJson("not JSON") from error


def _without_depths(text: str) -> str:
    """The text with null for what is nested deeper than anything that is ever asked for."""
    pieces: list[str] = []
    depth = done = cut = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth == MAX_DEPTH + 1:
                cut = token.start()
        elif token[0] in "]}":
            if depth == MAX_DEPTH + 1:
                pieces += text[done:cut], "null"
                done = token.end()
            depth -= 1
    return "".join(pieces) + (text[done:] if depth <= MAX_DEPTH else text[done:cut])


def _without_lone_surrogate(escape: re.Match[str]) -> str:
    return "\\ufffd" if escape["lone"] else escape[0]


def _integer(digits: str) -> int | float:
    """`int` refuses more than 4,300 digits."""
    return int(digits) if len(digits) <= _MAX_INTEGER_DIGITS else float(digits)
