"""The reference grammar: the short names of sessions and of runs of their turns.

    reference = [ "cydonia://" ] [ project ] "#" number [ ":" turns ]
              | session-id [ ":" turns ]
    turns     = n | n "-" m          n <= m

Parsing and formatting are inverses: `parse_numbered(str(reference)) == reference`.
"""

import re
from dataclasses import dataclass

from schemas.errors import InvalidReference, NotASession, quoted

LINK_SCHEME = "cydonia://"
MAX_SESSION_ARGUMENT_CHARS = 512
MIN_ID_PREFIX_CHARS = 8

_NUMBERED = re.compile(
    r"(?P<link>cydonia://)?(?P<project>[^\s#:/]+)?#(?P<number>[0-9]+)(?::(?P<turns>[0-9]+(?:-[0-9]+)?))?"
)
_CARD = re.compile(r"(?:cydonia://)?[^\s#:/]*#[A-Za-z0-9]+-[0-9]+")
_HEADING = re.compile(r"(?:cydonia://)?[^\s#:/]*#[0-9]+#.+", re.DOTALL)
_TURNS = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_BARE_NUMBER = re.compile(r"(?P<number>[0-9]{1,7})(?::(?P<turns>[0-9]+(?:-[0-9]+)?))?")
_BARE_CARD = re.compile(r"[A-Za-z0-9]+-[0-9]+")
_SESSION_ID = re.compile(r"[A-Za-z0-9._-]+")
_PROJECT_NAME = re.compile(r"[^\s#:/]+")


@dataclass(frozen=True, slots=True)
class Turns:
    """A run of turns, `first` to `last`, both included, counted from 1."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class NumberedReference:
    """`[cydonia://][project]#number[:turns]`."""

    number: int
    project: str | None = None
    turns: Turns | None = None
    is_link: bool = False

    def __str__(self) -> str:
        head = f"{LINK_SCHEME if self.is_link else ''}{self.project or ''}#{self.number}"
        return head if self.turns is None else f"{head}:{self.turns}"


def parse_turns(text: str) -> Turns | None:
    """`5` or `5-7`; None where it is neither, or counts from 0, or backwards."""
    match = _TURNS.fullmatch(text)
    if match is None:
        return None
    first, last = int(match[1]), int(match[2] or match[1])
    return Turns(first, last) if 1 <= first <= last else None


def is_numbered(argument: str) -> bool:
    """Whether the grammar with a `#` decides about this argument, and nothing else is tried."""
    return "#" in argument or argument.startswith(LINK_SCHEME)


def parse_numbered(argument: str) -> NumberedReference:
    """Read a reference that `is_numbered`.

    Raises:
        NotASession: it names a card (`#KEY-7`) or a heading (`#12#setup`).
        InvalidReference: anything else that does not fit the grammar.
    """
    match = _NUMBERED.fullmatch(argument)
    if match is None:
        if _CARD.fullmatch(argument):
            raise NotASession(
                f"{quoted(argument)} is a card, not a session; a session is written #43, its turns #43:5-7"
            )
        if _HEADING.fullmatch(argument):
            raise NotASession(f"{quoted(argument)} is a heading in an article, not a session; a session is written #43")
        raise _invalid(argument)
    number = int(match["number"])
    turns = None if match["turns"] is None else parse_turns(match["turns"])
    if number < 1 or (match["turns"] is not None and turns is None):
        raise _invalid(argument)
    return NumberedReference(number, match["project"], turns, match["link"] is not None)


def parse_bare_number(argument: str) -> NumberedReference | None:
    """`43` or `43:5-7`, one to seven digits; None where it is no such thing.

    Raises:
        InvalidReference: the digits are there, but the number or the turns are off.
    """
    match = _BARE_NUMBER.fullmatch(argument)
    if match is None:
        return None
    number = int(match["number"])
    turns = None if match["turns"] is None else parse_turns(match["turns"])
    if number < 1 or (match["turns"] is not None and turns is None):
        raise _invalid(argument)
    return NumberedReference(number, turns=turns)


def split_id(argument: str) -> tuple[str, Turns | None] | None:
    """A session's id or handle with the turns after its last `:`; None where it is no id."""
    head, colon, tail = argument.rpartition(":")
    if not colon:
        return (argument, None) if _SESSION_ID.fullmatch(argument) else None
    turns = parse_turns(tail)
    return (head, turns) if turns is not None and _SESSION_ID.fullmatch(head) else None


def is_id_word(argument: str) -> bool:
    """Whether every character may stand in a session id."""
    return _SESSION_ID.fullmatch(argument) is not None


def is_bare_card(argument: str) -> bool:
    """`KEY-7` with letters or digits before the dash."""
    return _BARE_CARD.fullmatch(argument) is not None


def can_name_project(name: str) -> bool:
    """Whether a folder's name can stand before a `#`: no white space, `#`, `:` or `/`."""
    return _PROJECT_NAME.fullmatch(name) is not None


def _invalid(argument: str) -> InvalidReference:
    return InvalidReference(
        f"{quoted(argument)} is not a reference; write #43, #43:5, #43:5-7, name#43, "
        "a link cydonia://name#43, or a session's id"
    )
