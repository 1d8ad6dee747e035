"""How text becomes the terms of the index, and a query the terms that must be there.

The same rules cut text and query, so both sides agree by construction; Tantivy only splits at the
spaces put here. All of it works on folded text.

- A **word** is a run of letters and digits. Scripts that write no spaces give one word a character, so
  that a query of two characters is a phrase. A run of more than 64 characters is cut into windows of 64,
  one every 32, so that any 32 characters in a row lie within one of them whole.
- A **symbol** is any other character that is not white space, and every pair of neighbours of them.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from schemas.folding import FOLDING_VERSION

WINDOW_CHARS = 64
STRIDE_CHARS = 32

RULES_VERSION = f"words-1 {FOLDING_VERSION} letters-{unicodedata.unidata_version}"
"""What is a letter depends on the Unicode version that Python carries; an index by other rules is rebuilt."""

_SPACELESS = (
    "\u0e00-\u0fff"  # Thai, Lao, Tibetan
    "\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf"  # Myanmar, Khmer, Tai
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\u3041-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\uff66-\uff9f"  # kana, Bopomofo
)
_WORD = re.compile(rf"[^\W_{_SPACELESS}]+|(?=\w)[{_SPACELESS}]")
_SPACELESS_CHAR = re.compile(f"[{_SPACELESS}]")
_SYMBOLS = re.compile(r"(?:[^\w\s]|_)+")

# For ASCII the classes are byte tables, four times as fast as the expressions above.
_ASCII = [chr(code) for code in range(128)]
_WORD_BYTES = bytes(ord(char) if char.isalnum() else 32 for char in _ASCII) + bytes(128)
_SYMBOL_BYTES = bytes(32 if char.isalnum() or char.isspace() else ord(char) for char in _ASCII) + bytes(128)


@dataclass(frozen=True, slots=True)
class Terms:
    """What the index holds of a chunk."""

    text: str
    """Its words in their order, separated by spaces."""
    words: frozenset[str]
    symbols: frozenset[str]


def terms_of(folded: str) -> Terms:
    """The terms of a folded text."""
    if folded.isascii():
        raw = folded.encode()
        text = raw.translate(_WORD_BYTES).decode()
        listed = text.split()
        runs = set(raw.translate(_SYMBOL_BYTES).decode().split())
    else:
        listed = _WORD.findall(folded)
        text = " ".join(listed)
        runs = set(_SYMBOLS.findall(folded))
    words = frozenset(listed)
    if any(len(word) > WINDOW_CHARS for word in words):
        listed = [part for word in listed for part in windows(word)]
        text, words = " ".join(listed), frozenset(listed)
    return Terms(text, words, symbols_of_runs(runs))


def windows(word: str) -> list[str]:
    """A word as the index holds it: itself, or where it is too long its windows, in order.

    The last window ends where the word does and is longer than the stride, so the first and the last 32
    characters of a word lie whole at the beginning of the first and at the end of the last window.
    """
    if len(word) <= WINDOW_CHARS:
        return [word]
    last = -(-(len(word) - WINDOW_CHARS) // STRIDE_CHARS) * STRIDE_CHARS
    return [word[start : start + WINDOW_CHARS] for start in range(0, last + 1, STRIDE_CHARS)]


def symbols_of_runs(runs: Iterable[str]) -> frozenset[str]:
    """Every symbol, and every two neighbours, of runs of symbols."""
    return frozenset(symbol for run in runs for symbol in _symbols_of_run(run))


def symbol_runs(folded: str) -> list[str]:
    """The runs of symbols in a folded text."""
    return _SYMBOLS.findall(folded)


@lru_cache(maxsize=20_000)
def _symbols_of_run(run: str) -> frozenset[str]:
    return frozenset(run) | {run[at : at + 2] for at in range(len(run) - 1)}


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a query, and on which sides the text may go on with the same word."""

    word: str
    is_open_left: bool
    is_open_right: bool


def query_words(folded: str) -> Iterator[QueryWord]:
    """The words of a folded query, in order.

    Only the first can be the end, and only the last the beginning, of a longer word: the others have
    something that is no part of a word beside them in the query itself.
    """
    for match in _WORD.finditer(folded):
        is_single = _SPACELESS_CHAR.fullmatch(match[0]) is not None
        yield QueryWord(
            match[0],
            is_open_left=match.start() == 0 and not is_single,
            is_open_right=match.end() == len(folded) and not is_single,
        )
