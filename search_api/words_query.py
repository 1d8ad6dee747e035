"""The query of words mode: a small typed tree of facts about a turn, which prints itself, and its parser.

    span parser          both words, in any order, anywhere in the turn; AND may stand between them
    "off by one"         these words side by side, with nothing but signs and spaces between them
    foo_bar  it's  错误   what is several words to the index is such a phrase, also without quotes
    pars*  "off by"*     a word, or the last of a phrase, that begins so
    -draft  -"a b"       not in the turn
    a b OR c             one or the other; AND binds closer than OR
    (a OR b) c           together
    agent:codex          a filter, as the argument of that name; it holds for the whole query

A word is what the index calls one: a run of letters and digits after folding, or one character of a script
that writes no spaces. Signs say nothing, so `gateway/run.py` and `foo()` are just their words.

Parsing never fails. What cannot be read (an open quote, an OR that lacks a side, too much of anything) is
taken as the plain words it is made of, and `Parsed.trouble` says why.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from indexer.words import query_terms
from schemas.folding import fold
from schemas.texts import WHITE_SPACE, without_surrogates

FILTERS = (
    *("project", "agent", "source", "title", "kind", "since", "until", "archived", "session", "closed"),
    *("subagents", "copies"),
)
"""Fields are the arguments of these names; with any other name before a colon, it is text."""

MAX_DEPTH = 16
"""Parentheses within parentheses."""

MAX_WORDS = 64
"""Words in a query, each counted as often as it stands there."""


@dataclass(frozen=True, slots=True)
class Term:
    """A line of the turn has these words side by side."""

    words: tuple[str, ...]
    is_prefix: bool = False
    """Whether the last one may go on."""

    def __str__(self) -> str:
        written = self.words[0] if len(self.words) == 1 else f'"{" ".join(self.words)}"'
        return written + "*" if self.is_prefix else written


@dataclass(frozen=True, slots=True)
class Without:
    """No line of the turn has them."""

    term: Term

    def __str__(self) -> str:
        return f"-{self.term}"


@dataclass(frozen=True, slots=True)
class AllOf:
    """All of these hold."""

    parts: tuple["Facts", ...]

    def __str__(self) -> str:
        return " ".join(f"({part})" if isinstance(part, AnyOf) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of these holds."""

    parts: tuple["Facts", ...]

    def __str__(self) -> str:
        return " OR ".join(map(str, self.parts))


Facts: TypeAlias = Term | Without | AllOf | AnyOf


@dataclass(frozen=True, slots=True)
class Parsed:
    """A query as it was understood."""

    facts: Facts | None
    """None: it has no words."""
    filters: dict[str, list[str]] = field(default_factory=dict)
    """The values of each filter in it, as they were written."""
    trouble: str | None = None
    """Why it was taken as its plain words instead."""

    def __str__(self) -> str:
        filters = [f"{name}:{_quoted(value)}" for name, values in self.filters.items() for value in values]
        facts = "" if self.facts is None else str(self.facts)
        return " ".join([*filters, f"({facts})" if filters and isinstance(self.facts, AnyOf) else facts]).strip()


def holds(facts: Facts, found: set[Term]) -> bool:
    """Whether a turn fulfils a query, by the terms that it has."""
    match facts:
        case Term():
            return facts in found
        case Without(term):
            return term not in found
        case AllOf(parts):
            return all(holds(part, found) for part in parts)
        case AnyOf(parts):
            return any(holds(part, found) for part in parts)


def sought(facts: Facts) -> list[Term]:
    """The terms that a turn may have because of the query, each once, in their order."""
    return list(dict.fromkeys(term for term, is_sought in _terms(facts) if is_sought))


def shunned(facts: Facts) -> list[Term]:
    """The terms that tell against a turn, each once."""
    return list(dict.fromkeys(term for term, is_sought in _terms(facts) if not is_sought))


def is_selective(facts: Facts) -> bool:
    """Whether every turn that fulfils a query has some term that is sought."""
    match facts:
        case Term():
            return True
        case Without():
            return False
        case AllOf(parts):
            return any(map(is_selective, parts))
        case AnyOf(parts):
            return all(map(is_selective, parts))


def parse(query: str) -> Parsed:
    """Read a query of words, in any form."""
    query = without_surrogates(query)
    parser = _Parser(query)
    try:
        facts = parser.parsed()
    except _Unreadable as unreadable:
        return Parsed(_plain(query), trouble=str(unreadable))
    return Parsed(facts, parser.filters)


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text, folded, in their order; signs and gaps are none."""
    return tuple(term.term for term in query_terms(fold(text)) if term.term[0].isalnum())


def all_of(parts: Sequence[Facts]) -> Facts:
    """The conjunction, in its simplest form; there is at least one part."""
    flat = _distinct(inner for part in parts for inner in (part.parts if isinstance(part, AllOf) else (part,)))
    return flat[0] if len(flat) == 1 else AllOf(flat)


def any_of(parts: Sequence[Facts]) -> Facts:
    """The disjunction, in its simplest form; there is at least one part."""
    flat = _distinct(inner for part in parts for inner in (part.parts if isinstance(part, AnyOf) else (part,)))
    return flat[0] if len(flat) == 1 else AnyOf(flat)


def none_of(facts: Facts) -> Facts:
    """The opposite, down to its terms."""
    match facts:
        case Term():
            return Without(facts)
        case Without(term):
            return term
        case AllOf(parts):
            return any_of([none_of(part) for part in parts])
        case AnyOf(parts):
            return all_of([none_of(part) for part in parts])


def _distinct(parts: Iterable[Facts]) -> tuple[Facts, ...]:
    return tuple(dict.fromkeys(parts))


def _terms(facts: Facts) -> Iterator[tuple[Term, bool]]:
    match facts:
        case Term():
            yield facts, True
        case Without(term):
            yield term, False
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from _terms(part)


def _plain(query: str) -> Facts | None:
    words = list(dict.fromkeys(words_of(query)))[:MAX_WORDS]
    return all_of([Term((word,)) for word in words]) if words else None


def _quoted(value: str) -> str:
    return f'"{value}"' if not value or value[0] == '"' or any(char in WHITE_SPACE for char in value) else value


class _Unreadable(Exception):
    """The query cannot be read; the message says why."""


class _Parser:
    """Reads a query from left to right. A place is an offset in it."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._at = 0
        self._words = 0
        self.filters: dict[str, list[str]] = {}

    def parsed(self) -> Facts | None:
        """
        Raises:
            _Unreadable: it has to be taken as plain words.
        """
        facts = self._alternatives(0)
        if facts is not None and not is_selective(facts):
            raise _Unreadable("every way to match it must have a word that is not excluded")
        return facts

    def _alternatives(self, depth: int) -> Facts | None:
        """What stands up to the end of the query or, within parentheses, to the one that closes them."""
        groups: list[list[Facts]] = [[]]
        operator = None
        while not self._is_at_end(depth):
            word = self._operator()
            if word is not None:
                if operator is not None or not groups[-1]:
                    raise _Unreadable(f"an {word} has nothing before it")
                operator = word
                continue
            part = self._part(depth)
            if part is None:
                continue
            if operator == "OR":
                groups.append([])
            groups[-1].append(part)
            operator = None
        if operator is not None:
            raise _Unreadable(f"an {operator} has nothing after it")
        if depth:
            if self._at == len(self._query):
                raise _Unreadable("a parenthesis is not closed")
            self._at += 1
        return any_of([all_of(group) for group in groups]) if groups[0] else None

    def _is_at_end(self, depth: int) -> bool:
        while self._at < len(self._query) and self._query[self._at] in WHITE_SPACE:
            self._at += 1
        return self._at == len(self._query) or (depth > 0 and self._query[self._at] == ")")

    def _operator(self) -> str | None:
        for word in ("AND", "OR"):
            end = self._at + len(word)
            if self._query.startswith(word, self._at) and self._query[end : end + 1] in ("", ")", *WHITE_SPACE):
                self._at = end
                return word
        return None

    def _part(self, depth: int) -> Facts | None:
        """The next thing of a query; None where it says nothing, or is a filter."""
        is_excluded = self._query[self._at] == "-" and _can_be_excluded(self._query[self._at + 1 : self._at + 2])
        if is_excluded:
            self._at += 1
        char = self._query[self._at]
        facts: Facts | None
        if char == "(":
            if depth == MAX_DEPTH:
                raise _Unreadable(f"its parentheses are nested more than {MAX_DEPTH} deep")
            self._at += 1
            facts = self._alternatives(depth + 1)
        elif char == '"':
            facts = self._term(self._between_quotes(), is_prefix=self._takes_star())
        else:
            name = self._filter()
            if name is not None:
                if is_excluded or depth:
                    raise _Unreadable("a filter holds for the whole query and cannot be excluded")
                self.filters.setdefault(name, []).append(self._value())
                return None
            written = self._run(depth)
            facts = self._term(written, is_prefix=written.endswith("*") and written[-2:-1].isalnum())
        return none_of(facts) if facts is not None and is_excluded else facts

    def _term(self, written: str, *, is_prefix: bool) -> Term | None:
        words = words_of(written)
        self._words += len(words)
        if self._words > MAX_WORDS:
            raise _Unreadable(f"it has more than {MAX_WORDS} words")
        if not words:
            return None
        # A character that is a word by itself begins no other.
        return Term(words, is_prefix and words_of(words[-1] + words[-1][-1]) != (words[-1], words[-1]))

    def _between_quotes(self) -> str:
        end = self._query.find('"', self._at + 1)
        if end < 0:
            raise _Unreadable("a quote is not closed")
        written = self._query[self._at + 1 : end]
        self._at = end + 1
        return written

    def _takes_star(self) -> bool:
        is_there = self._query.startswith("*", self._at)
        self._at += is_there
        return is_there

    def _filter(self) -> str | None:
        """The name of the filter that begins here and has a value; its place is then that of the value."""
        for name in FILTERS:
            value_at = self._at + len(name) + 1
            if self._query.startswith(name + ":", self._at) and self._query[value_at : value_at + 1].strip(WHITE_SPACE):
                self._at = value_at
                return name
        return None

    def _value(self) -> str:
        return self._between_quotes() if self._query[self._at] == '"' else self._run(0)

    def _run(self, depth: int) -> str:
        """What stands up to a space or, within parentheses, to the one that closes them."""
        start, opened = self._at, 0
        while self._at < len(self._query) and self._query[self._at] not in WHITE_SPACE:
            char = self._query[self._at]
            if char == ")" and depth and not opened:
                break
            opened += (char == "(") - (char == ")" and opened > 0)
            self._at += 1
        return self._query[start : self._at]


def _can_be_excluded(char: str) -> bool:
    """Whether a minus before this character excludes; else it is a sign like any other (`->`, `--full`, ` - `)."""
    return char.isalnum() or char in tuple('("_')
