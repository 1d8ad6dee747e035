"""Rules about characters that hold for every text, whoever wrote it."""

import re

WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""The characters with the Unicode property White_Space. `str.strip()` takes U+001C to U+001F too."""

_SURROGATES = re.compile("[\ud800-\udfff]")
_ESCAPES = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
"""In JSON source: an escaped backslash, the escapes of a surrogate pair, and that of a surrogate alone."""

LONE_ESCAPE_CHARS = len(r"\ud83d")

_WHITE_RUN = re.compile(f"[{WHITE_SPACE}]+")
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def without_surrogates(text: str) -> str:
    """The text with U+FFFD for every lone surrogate, which neither UTF-8 nor an index can hold."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def without_half_pairs(json: str) -> str:
    """JSON source in which every escape of a lone surrogate is one of U+FFFD, of the same length.

    Strict parsers refuse the whole document for one: an emoji that a caller cut in two.
    """
    if "\\ud" not in json and "\\uD" not in json:
        return json
    return _ESCAPES.sub(lambda found: "\\ufffd" if len(found[0]) == LONE_ESCAPE_CHARS else found[0], json)


def trimmed(text: str) -> str:
    """The text without Unicode white space at its ends."""
    return text.strip(WHITE_SPACE)


def collapsed(text: str) -> str:
    """The text with every run of white space as one space, and none at the ends."""
    return trimmed(_WHITE_RUN.sub(" ", text))


def printable(text: str) -> str:
    """The text with control characters and line separators replaced by spaces, one for one."""
    return _UNPRINTABLE.sub(" ", text)


def counted(count: int, noun: str) -> str:
    """`1 turn`, `2,000 turns`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def lines_of(text: str) -> list[str]:
    """The lines of an item: split at `\\n` alone; a `\\r` before it is not part of the line."""
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in lines[:-1]] + lines[-1:]
