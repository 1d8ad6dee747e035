"""How text becomes the terms of the index, and a query the terms that must be there, side by side.

The same rules cut text and query, so both sides agree by construction; Tantivy only splits at the
spaces put here. All of it works on folded text.

- A **word** is a run of letters and digits. Scripts that write no spaces give one word a character, so
  that a query of two characters is a phrase. A run of more than 64 characters is cut into windows of 64,
  one every 32, so that any 32 characters in a row lie within one of them whole.
- Any other character that is not white space is a term by itself.
- White space within a line is a **gap**, one term, unless it is the single space that mostly stands
  between two terms. Line breaks are nothing: a match lies within one line.

So a query is a phrase of terms, of which only the first can be the end and only the last the beginning
of a longer word in the text.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from schemas.folding import FOLDING_VERSION

WINDOW_CHARS = 64
STRIDE_CHARS = 32

GAP = "\u2423"
"""Stands for a gap. In a text it is itself, which makes such a text a candidate too often, never too seldom."""

RULES_VERSION = f"words-2 {FOLDING_VERSION} letters-{unicodedata.unidata_version}"
"""What is a letter depends on the Unicode version that Python carries; an index by other rules is rebuilt."""

_SPACELESS = (
    "\u0e00-\u0fff"  # Thai, Lao, Tibetan
    "\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf"  # Myanmar, Khmer, Tai
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\u3041-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\uff66-\uff9f"  # kana, Bopomofo
)
_SPACELESS_CHAR = re.compile(f"[{_SPACELESS}]")
_GAP = r"(?<=\S)(?:[^\S\n]{2,}|[^\S\n ])(?=\S)"
_TERM = re.compile(rf"[^\W_{_SPACELESS}]+|[^\w\s]|_|(?=\w)[{_SPACELESS}]|{_GAP}")
_ASCII_TERM = re.compile(rf"[a-z0-9]+|[^\sa-z0-9]|{_GAP}")
"""The same for folded ASCII, twice as fast."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What the index holds of a chunk."""

    text: str
    """Its terms in their order, separated by spaces."""
    distinct: frozenset[str]


def terms_of(folded: str) -> Terms:
    """The terms of a folded text."""
    listed: list[str] = (_ASCII_TERM if folded.isascii() else _TERM).findall(folded)
    distinct = frozenset(listed)
    odd = {gap: [GAP] for gap in filter(str.isspace, distinct)}
    if max(map(len, distinct), default=0) > WINDOW_CHARS:
        odd |= {word: windows(word) for word in distinct if len(word) > WINDOW_CHARS and word not in odd}
    if odd:
        spelled = {term: " ".join(parts) for term, parts in odd.items()}
        listed = [spelled.get(term, term) for term in listed]
        distinct = distinct.difference(odd).union(*odd.values())
    return Terms(" ".join(listed), distinct)


def windows(word: str) -> list[str]:
    """A word as the index holds it: itself, or where it is too long its windows, in order.

    The last window ends where the word does and is longer than the stride, so the first and the last 32
    characters of a word lie whole at the beginning of the first and at the end of the last window.
    """
    if len(word) <= WINDOW_CHARS:
        return [word]
    last = -(-(len(word) - WINDOW_CHARS) // STRIDE_CHARS) * STRIDE_CHARS
    return [word[start : start + WINDOW_CHARS] for start in range(0, last + 1, STRIDE_CHARS)]


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """A term of a query, and on which sides the text may go on with the same word."""

    term: str
    is_open_left: bool = False
    is_open_right: bool = False


def query_terms(folded: str) -> Iterator[QueryTerm]:
    """The terms of a folded query, in order."""
    for match in _TERM.finditer(folded):
        if match[0].isspace():
            yield QueryTerm(GAP)
        elif match[0][0].isalnum() and not _SPACELESS_CHAR.fullmatch(match[0]):
            yield QueryTerm(match[0], is_open_left=match.start() == 0, is_open_right=match.end() == len(folded))
        else:
            yield QueryTerm(match[0])
