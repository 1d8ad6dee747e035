"""How text becomes the terms of the index, and a query the terms that must be there, side by side.

The same code cuts text and query, so both sides agree by construction; Tantivy only splits at the
white space left here. All of it works on folded text.

- A **word** is a run of letters and digits. Scripts that write no spaces give one word a character, so
  that a query of two characters is a phrase. A run of more than 64 characters is cut into windows of 64,
  one every 32, so that any 32 characters in a row lie within one of them whole.
- Any other character that is not white space is a term by itself.
- A **gap** is a run of two or more spaces, or any other white space but the line break. It is a term; the
  single space that mostly stands between two terms is none. Nor is a line break: a match lies within one line.
- A **joint** is the last two characters of a word and the first two of the next one, where one space or one sign
  is between them; the sign is part of it. It finds two words of which the query has but the ends that meet.

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

GAP = "\x80"
"""Stands for a gap: a control character without a use."""

_NO_GAP = "\x82"
"""What that character becomes in texts and queries themselves, another one without a use."""

RULES_VERSION = f"words-6 {FOLDING_VERSION} letters-{unicodedata.unidata_version}"
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
_WIDE_RUN = re.compile(r"[^\x00-\x80]+")

_WIDE_MEETING = re.compile(rf" (?<=([^\W_]{{2}}|\s[^\W_]) )(?:([^\w\s{GAP}]|_) )?(?=([^\W_][^\W_]?))")
_ASCII_MEETING = re.compile(r" (?<=([a-z0-9\s][a-z0-9]) )(?:([^a-z0-9\s]) )?(?=([a-z0-9][a-z0-9]?))")
"""What is between two words once all terms are set apart, with what their joint is made of; of a word of one character
with the white space before it. They begin with a space as what they look for, which makes them twice as fast."""

# Chains of `str.replace` for what is there are several times as fast as one expression that finds terms.
_ASCII = [chr(code) for code in range(128)]
_SPACED_SYMBOLS = [(char, f" {char} ") for char in _ASCII if not char.isalnum() and not char.isspace()]
_OTHER_SPACES = [char for char in _ASCII if char.isspace() and char not in " \n"]


@dataclass(frozen=True, slots=True)
class Terms:
    """What the index holds of a chunk."""

    text: str
    """Its terms in their order, separated by white space."""
    distinct: set[str]
    joints: set[str]


def terms_of(folded: str) -> Terms:
    """The terms of a folded text."""
    text = _spaced(folded)
    listed = text.split()
    distinct = set(listed)
    # Joined and split, as that takes white space off all of them at once.
    joints = set(" ".join(map("".join, set(_meeting(text).findall(f" {text}")))).split())
    if max(map(len, distinct), default=0) > WINDOW_CHARS:
        long = {word: windows(word) for word in distinct if len(word) > WINDOW_CHARS}
        text = " ".join(" ".join(long[word]) if word in long else word for word in listed)
        distinct = distinct.difference(long).union(*long.values())
    return Terms(text, distinct, joints)


def _meeting(text: str) -> re.Pattern[str]:
    return _ASCII_MEETING if text.isascii() else _WIDE_MEETING


def _spaced(folded: str) -> str:
    """The text with white space around every term, and nowhere within one."""
    if folded.isascii():
        text = _without_runs(folded)
    else:
        text = _WIDE_RUN.sub(_with_wide_terms, _without_runs(folded.replace(GAP, _NO_GAP)))
    for char in _OTHER_SPACES:
        if char in text:
            text = text.replace(char, GAP)
    if GAP in text:
        # Indentation, and what stands before a line break, is in no match: it would make gaps of little use.
        while f"\n{GAP}" in text:
            text = text.replace(f"\n{GAP}", "\n")
        while f"{GAP}\n" in text:
            text = text.replace(f"{GAP}\n", "\n")
        text = text.strip(GAP).replace(GAP, f" {GAP} ")
    for symbol, spaced in _SPACED_SYMBOLS:
        if symbol in text:
            text = text.replace(symbol, spaced)
    return text


def _with_wide_terms(run: re.Match[str]) -> str:
    return _WIDE_SPACE.sub(GAP, _WIDE_TERM.sub(r" \g<0> ", run[0]))


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


@dataclass(frozen=True, slots=True)
class QueryJoint:
    """What a query knows of the joint of two of its words."""

    text: str
    is_whole: bool
    """Whether that is all of the joint; else a word goes on before or behind it."""


def query_joints(folded: str) -> Iterator[QueryJoint]:
    """The joints at open ends of a folded query; `folded` has no white space at its ends."""
    spaced = f" {_spaced(folded).strip()}"
    for meeting in _meeting(spaced).finditer(spaced):
        tail, sign, head = meeting[1].lstrip(), meeting[2] or "", meeting[3]
        is_first = " " not in spaced[1 : meeting.start()] and _goes_on(folded[0])
        is_last = " " not in spaced[meeting.end() :] and _goes_on(folded[-1])
        if is_first or is_last:
            is_cut = (is_first and len(tail) == 1) or (is_last and len(head) == 1)
            yield QueryJoint(tail + sign + head, is_whole=not is_cut)


def _goes_on(char: str) -> bool:
    """Whether a word that has this character at its end may have more characters there."""
    return char.isalnum() and _SPACELESS_CHAR.fullmatch(char) is None
