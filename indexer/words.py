"""How text becomes the terms of the index, and a query the terms that must be there, side by side.

The same code cuts text and query, so both sides agree by construction; Tantivy only splits at the
white space left here. All of it works on folded text.

- A **word** is a run of letters and digits. Scripts that write no spaces give one word a character, so
  that a query of two characters is a phrase. A run of more than 64 characters is cut into windows of 64,
  one every 32, so that any 32 characters in a row lie within one of them whole.
- Any other character that is not white space is a term by itself.
- A **gap** is a run of two or more spaces, or any other white space but the line break. It is a term; the
  single space that mostly stands between two terms is none. Nor is a line break: a match lies within one line.
- A **joint** is the end of a word and the beginning of the next one, of one character each and of two. It finds
  two words of which the query has but the ends that meet.

So a query is a phrase of terms, of which only the first can be the end and only the last the beginning
of a longer word in the text.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from indexer.query import JOINED
from schemas.folding import FOLDING_VERSION

WINDOW_CHARS = 64
STRIDE_CHARS = 32

GAP = "\x80"
"""Stands for a gap: a control character without a use."""

_NO_GAP = "\x82"
"""What that character becomes in texts and queries themselves, another one without a use."""

RULES_VERSION = f"words-4 {FOLDING_VERSION} letters-{unicodedata.unidata_version}"
"""What is a letter depends on the Unicode version that Python carries; an index by other rules is rebuilt."""

_SPACELESS = (
    "\u0e00-\u0fff"  # Thai, Lao, Tibetan
    "\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf"  # Myanmar, Khmer, Tai
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\u3041-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\uff66-\uff9f"  # kana, Bopomofo
)
_SPACELESS_CHAR = re.compile(f"[{_SPACELESS}]")
_WIDE_TERM = re.compile(rf"[^\w\s\x00-\x80]|(?=\w)[{_SPACELESS}]")
_WIDE_SPACE = re.compile(r"[^\S\x00-\x7f]")

# Chains of `str.replace` are several times as fast as one expression that finds terms.
_ASCII = [chr(code) for code in range(128)]
_SPACED_SYMBOLS = [(char, f" {char} ") for char in _ASCII if not char.isalnum() and not char.isspace()]
_OTHER_SPACES = [char for char in _ASCII if char.isspace() and char not in " \n"]


@dataclass(frozen=True, slots=True)
class Terms:
    """What the index holds of a chunk."""

    text: str
    """Its terms in their order, separated by white space."""
    distinct: frozenset[str]
    joints: frozenset[str]


def terms_of(folded: str) -> Terms:
    """The terms of a folded text."""
    text = _spaced(folded)
    listed = text.split()
    distinct = frozenset(listed)
    if max(map(len, distinct), default=0) > WINDOW_CHARS:
        long = {word: windows(word) for word in distinct if len(word) > WINDOW_CHARS}
        text = " ".join(" ".join(long[word]) if word in long else word for word in listed)
        distinct = distinct.difference(long).union(*long.values())
    return Terms(text, distinct, frozenset(_joints(listed)))


def joint(left: str, right: str, chars: int) -> str:
    """The joint of two words, of so many characters each where they have them."""
    return f"{left[-chars:]}{JOINED}{right[:chars]}"


def _joints(terms: Sequence[str]) -> Iterator[str]:
    """The joints of neighbours that are words."""
    pairs = {(left[-2:], right[:2]) for left, right in pairwise(terms) if left[0].isalnum() and right[0].isalnum()}
    yield from (f"{left}{JOINED}{right}" for left, right in pairs)
    # Of two words with one character each the longer joint is the shorter one, too.
    yield from {f"{left[-1]}{JOINED}{right[0]}" for left, right in pairs if len(left) == 2 or len(right) == 2}


def _spaced(folded: str) -> str:
    """The text with white space around every term, and nowhere within one."""
    text = _without_runs(folded.replace(GAP, _NO_GAP))
    if not text.isascii():
        text = _WIDE_SPACE.sub(GAP, _WIDE_TERM.sub(r" \g<0> ", text))
    for char in _OTHER_SPACES:
        text = text.replace(char, GAP)
    # Indentation, and what stands before a line break, is in no match: it would make gaps of little use.
    while f"\n{GAP}" in text:
        text = text.replace(f"\n{GAP}", "\n")
    while f"{GAP}\n" in text:
        text = text.replace(f"{GAP}\n", "\n")
    text = text.strip(GAP)
    for symbol, spaced in _SPACED_SYMBOLS:
        text = text.replace(symbol, spaced)
    return text.replace(GAP, f" {GAP} ")


def _without_runs(text: str) -> str:
    """The text with a gap for every run of two or more spaces."""
    if "  " not in text:
        return text
    text = text.replace(" " * 16, "  ")
    while "   " in text:
        text = text.replace("   ", "  ")
    return text.replace("  ", GAP)


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
    """The terms of a folded query, in order; `folded` has no white space at its ends."""
    terms = _spaced(folded).split()
    # Nor is there a gap at the ends of a line; a query may have one, of characters that are white space to some only.
    while terms and terms[0] == GAP:
        del terms[0]
    while terms and terms[-1] == GAP:
        del terms[-1]
    for place, term in enumerate(terms):
        yield QueryTerm(
            term,
            is_open_left=place == 0 and _goes_on(folded[0]),
            is_open_right=place == len(terms) - 1 and _goes_on(folded[-1]),
        )


def _goes_on(char: str) -> bool:
    """Whether a word that has this character at its end may have more characters there."""
    return char.isalnum() and _SPACELESS_CHAR.fullmatch(char) is None
