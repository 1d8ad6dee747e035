"""Regular expressions in RE2 syntax: compiled, refused with a reason, and matched line by line.

A whole text is searched at once, as no match can reach over a line break and no match is empty: the first
match in a text is the first one of its first line that has one. RE2 takes time linear in the text, but a hard
expression may need a second for a few megabytes, and one call of it cannot be stopped. So long texts are
searched in pieces, with a look at the clock before each.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

import re2  # type: ignore[import-untyped]  # the package carries no types; what is used of it is `_Expression`

from schemas.errors import InvalidQuery, Timeout, quoted
from schemas.texts import without_surrogates
from search_api.regex_literals import NO_LINE, LiteralTree, pattern_facts

MAX_PATTERN_CHARS = 1000

MAX_MEMORY_BYTES = 8_000_000
"""For one expression: its program, and the states that a search remembers."""

MAX_PROGRAM_SIZE = 25_000
"""Instructions. With so many the worst expressions that were tried took 1.2 s for a piece; `\\pL{20}` fits."""

PIECE_BYTES = 16_384

GROWTH = 4
"""Each piece of a long line is so many times the one before, where a match may have any length."""

MAX_STEP_S = 1.0
"""No piece of a long line is begun that would take longer, judging by the one before it."""

CheckTime = Callable[[], None]
"""Called every few milliseconds; raises what shall end the search."""

_ESCAPES = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.", re.DOTALL)
_CLEARS_LINES = re.compile(r"\(\?[imsU]*-[imsU]*m")
_LOOK_AROUND = ("(?=", "(?!", "(?<=", "(?<!")
_TEXT_ENDS = {r"\A", r"\z"}
_TOO_LARGE = "the expression is too large when its repetitions are written out; repeat less, or without an end"

# An empty match depends on nothing but what stands on both sides of it: an end, a word character, another.
_NEIGHBOURS = [(before, after) for before in (b"", b"a", b"-") for after in (b"", b"a", b"-")]


class _Found(Protocol):
    def start(self) -> int: ...
    def end(self) -> int: ...


class _Expression(Protocol):
    """What is used of a compiled expression; positions are bytes, and text around them is seen by `^`, `$`, `\\b`."""

    @property
    def programsize(self) -> int: ...
    def search(self, text: bytes, pos: int, endpos: int) -> _Found | None: ...
    def fullmatch(self, text: bytes, pos: int, endpos: int) -> _Found | None: ...


@dataclass(frozen=True, slots=True)
class CompiledRegex:
    """An expression that can be searched for. May be shared between threads."""

    pattern: str
    required: LiteralTree
    """What every line that matches contains, folded."""
    _expression: _Expression
    _longest_bytes: int | None
    """No match is longer; None: not known."""
    _is_by_line: bool
    """Whether it asks where a text begins or ends, which must be the line's place then."""
    piece_bytes: int = PIECE_BYTES
    """How much of a text is searched between two looks at the clock."""

    def search(self, text: str, check_time: CheckTime) -> tuple[int, int] | None:
        """The first match in the first line that has one, as `[from, to)` in code points of the text.

        `text` is that of an item: lines separated by `\\n`, where a `\\r` before it belongs to no line.

        Raises:
            Timeout: a line is so long, and the expression so hard, that it would take too long.
        """
        raw = text.encode()
        if b"\r\n" in raw:
            raw = raw.replace(b"\r\n", b"\n\n")  # as long as before; an empty line more matches nothing
        found = self._in_lines(raw, check_time) if self._is_by_line else self._next(raw, 0, check_time)
        if found is None or text.isascii():
            return found
        start = len(raw[: found[0]].decode())
        return start, start + len(raw[found[0] : found[1]].decode())

    def matches(self, line: str, check_time: CheckTime) -> Iterator[tuple[int, int]]:
        """All matches in one line, from left to right, as `[from, to)` in code points; they do not overlap.

        Each costs a search of the rest of the line at worst: take no more than are needed.

        Raises:
            Timeout: as `search`.
        """
        raw = line.encode()
        done_bytes = done_chars = 0
        while (found := self._next(raw, done_bytes, check_time)) is not None:
            start = done_chars + len(raw[done_bytes : found[0]].decode())
            end = start + len(raw[found[0] : found[1]].decode())
            yield start, end
            done_bytes, done_chars = found[1], end

    def _in_lines(self, raw: bytes, check_time: CheckTime) -> tuple[int, int] | None:
        start = 0
        for line in raw.split(b"\n"):
            found = self._next(line, 0, check_time) if line else None
            if found is not None:
                return start + found[0], start + found[1]
            start += len(line) + 1
        return None

    def _next(self, raw: bytes, start: int, check_time: CheckTime) -> tuple[int, int] | None:
        """The first match from `start` on, in bytes."""
        if self._longest_bytes is None or self._longest_bytes > self.piece_bytes:
            return self._next_of_any_length(raw, start, check_time)
        while start < len(raw):
            check_time()
            stop = start + self.piece_bytes
            found = self._expression.search(raw, start, min(stop + self._longest_bytes, len(raw)))
            if found is not None and found.start() < stop:
                return found.start(), found.end()
            start = stop
        return None

    def _next_of_any_length(self, raw: bytes, start: int, check_time: CheckTime) -> tuple[int, int] | None:
        while start < len(raw):
            check_time()
            stop = raw.find(b"\n", start + self.piece_bytes)
            stop = len(raw) if stop < 0 else stop
            self._check_pace(raw, start, stop, check_time)
            found = self._expression.search(raw, start, stop)
            if found is not None:
                return found.start(), found.end()
            start = stop
        return None

    def _check_pace(self, raw: bytes, start: int, stop: int, check_time: CheckTime) -> None:
        """Try ever longer pieces of a long line, until it is known that the whole will not take too long."""
        length, size = stop - start, self.piece_bytes
        while size * GROWTH < length:
            began = monotonic()
            self._expression.search(raw, start, start + size)
            size_after = size * GROWTH if size * GROWTH * GROWTH < length else length
            if (monotonic() - began) * size_after / size > MAX_STEP_S:
                raise Timeout(
                    f"a line of {length:,} bytes takes too long with this expression; "
                    "one whose matches have an end (.{0,100} for .*) is searched for in pieces"
                )
            check_time()
            size *= GROWTH


def compile_regex(pattern: str) -> CompiledRegex:
    """An expression in RE2 syntax, ignoring case, with `^` and `$` as the ends of a line.

    Raises:
        InvalidQuery: RE2 cannot read it, it is too large, matches the empty string or no line at all; says why.
    """
    pattern = without_surrogates(pattern)
    if len(pattern) > MAX_PATTERN_CHARS:
        raise InvalidQuery(f"the expression has {len(pattern):,} characters; at most {MAX_PATTERN_CHARS:,} are read")
    expression = _compiled(pattern)
    escapes = set(_ESCAPES.findall(pattern))
    if r"\C" in escapes:
        raise InvalidQuery(r"\C matches a part of a character; write . for a whole one")
    if expression.programsize > MAX_PROGRAM_SIZE:
        raise InvalidQuery(_TOO_LARGE)
    if any(_is_empty_between(expression, before, after) for before, after in _NEIGHBOURS):
        raise InvalidQuery("the expression matches the empty string; write + for *, or a text that must be there")
    facts = pattern_facts(pattern)
    if facts.required == NO_LINE:
        raise InvalidQuery("the expression needs a line break or matches no character; a match lies within one line")
    is_by_line = bool(escapes & _TEXT_ENDS) or _CLEARS_LINES.search(pattern) is not None
    return CompiledRegex(pattern, facts.required, expression, facts.longest_bytes, is_by_line)


def _compiled(pattern: str) -> _Expression:
    options = re2.Options()
    options.case_sensitive = False
    options.never_nl = True
    options.never_capture = True
    options.log_errors = False
    options.max_mem = MAX_MEMORY_BYTES
    try:
        re2.compile(pattern.encode(), options)  # by itself, so that the reason speaks of nothing else
        expression: _Expression = re2.compile(b"(?m)" + pattern.encode(), options)
    except re2.error as error:
        raise InvalidQuery(_reason(error.args[0].decode("utf-8", "replace"))) from error
    finally:
        re2.purge()  # else the package keeps the last 128 expressions, and what they remember, for ever
    return expression


def _is_empty_between(expression: _Expression, before: bytes, after: bytes) -> bool:
    return expression.fullmatch(before + after, len(before), len(before)) is not None


def _reason(message: str) -> str:
    """What RE2 says, such as `missing ): (a`, for people."""
    problem, _, where = message.partition(": ")
    if where in _LOOK_AROUND:
        return f"there is no look-around ({where}…) in RE2 syntax"
    if problem == "invalid escape sequence":
        if where[1:].isdigit() or where == r"\k":
            return f"there are no back-references ({where}) in RE2 syntax"
        return f"there is no escape {quoted(where)} in RE2 syntax"
    if problem == "invalid perl operator":
        if where == "(?P":
            return "a group is named (?P<name>…) in RE2 syntax, which has no back-references"
        return f"there is no {quoted(where)}…) in RE2 syntax"
    if problem == "invalid repetition size":
        return f"the repetition {quoted(where)} runs backwards, or is of more than 1,000, nested ones multiplied"
    if problem == "bad repetition operator":
        return f"the repetition {quoted(where)} is a repetition of a repetition; put the inner one in a group"
    if problem == "no argument for repetition operator":
        return f"nothing stands before {quoted(where)} to be repeated; \\{quoted(where)} is the character"
    if problem.startswith("pattern too large"):
        return _TOO_LARGE
    return f"the expression is not valid: {quoted(message)}"
