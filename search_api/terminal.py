"""What the command line writes: UTF-8 whatever the locale, no control characters, quiet when nobody reads on.

Control characters in transcripts (escape sequences of coloured tool output, mostly) are shown as the
symbols of Unicode's Control Pictures block, also where standard output is a file or a pipe: what goes
through `head` or `less -R` reaches a terminal all the same. The JSON form has every character, escaped.
"""

import os
import sys

from schemas.texts import without_surrogates

_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
_PICTURES |= {0x7F: "␡"} | dict.fromkeys(range(0x80, 0xA0), "\ufffd")
_ESCAPES = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}
"""What JSON may hold raw and terminals would obey; JSON has them within strings only."""

_HIGHLIGHT = ("\x1b[1;33m", "\x1b[0m")


def write_text(text: str) -> None:
    """Write a text form to standard output, with a last line break."""
    _write(f"{text}\n")


def write_json(form: bytes) -> None:
    """Write a JSON form to standard output, with a last line break."""
    _write(form.decode().translate(_ESCAPES) + "\n")


def write_note(line: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"{visible(without_surrogates(line))}\n")
    sys.stderr.flush()


def visible(text: str) -> str:
    """The text with control characters other than line feeds and tabs as symbols."""
    return text.translate(_PICTURES)


def highlighted(text: str) -> str:
    return f"{_HIGHLIGHT[0]}{text}{_HIGHLIGHT[1]}"


def has_colour() -> bool:
    """Whether standard output is a terminal whose user wants colour (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _write(text: str) -> None:
    try:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Whoever read has enough, as `head` has. Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
