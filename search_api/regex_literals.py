"""What every match of a regular expression must contain, read from the expression itself.

The reader knows the syntax of RE2 and reads expressions that RE2 has compiled, ignoring case, where a line
break matches nothing. It may know too little: of what it cannot read, nothing is known. It never says that
a text must be there which a match can lack.

A text is as it stands in the line, folded, but for a space at its beginning or end: that stands for any white
space or an end of the line, and says that no word goes on there. So `^fn\\s+\\w+\\(` needs ` fn ` and `(`.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from schemas.folding import FOLDED, fold

MAX_TEXTS = 16
"""Texts that one stretch of an expression is spelled out to; `[Ee]rror(s|ed)?` are three."""

MAX_CLASS_CHARS = 5
"""Characters of a class that is spelled out."""

MAX_TEXT_CHARS = 200

MAX_PARTS = 4
"""Texts that are asked for together; of more, those that say the most are kept."""

MAX_LITERALS = 24
"""Texts of which one is asked for; with more, to look them all up costs more than it saves."""

MAX_CHAR_BYTES = 4

_LINE_ENDS = "^$"
_LINE_END_ESCAPES = "Az"
_WORD_END_ESCAPES = "bB"
_CLASS_ESCAPES = "dDsSwWpP"
_WHITE_SPACE = "\t\v\f\r "
_BREAK = "\n"
"""In the texts of a part: white space of any length, or an end of the line. None has a line break of its own."""
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

_REPEAT = re.compile(r"(?:([*+?])|\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\})\??")
_GROUP = re.compile(r"\((?:\?(?:P?<[^>]+>|([imsU]*)(-[imsU]+)?([:)])))?")
_CODE = re.compile(r"\\(?:x\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2})|([0-7]{1,3}))")
_PROPERTY = re.compile(r"\\[pP](?:\{[^}]*\}|.)")
_BETWEEN_BREAKS = re.compile(r"([\t\v\f\r \n]*)([^\n]*[^\t\v\f\r \n])(?=([\t\v\f\r \n]*))")
_NAMED_CLASS = re.compile(r"\[:\^?[a-z]+:\]")

_PAIRED = {*FOLDED, *FOLDED.values()}
_MAY_BE_PAIRED = {"Lu", "Ll", "Lt", "Cn"}
"""Letters with case, and what is no character yet, by `unicodedata.category`."""


@dataclass(frozen=True, slots=True)
class NothingKnown:
    """Nothing is known that every match contains."""

    def __str__(self) -> str:
        return "nothing known"


@dataclass(frozen=True, slots=True)
class Literal:
    """This text is there, within one line; a space at an end of it is any white space or an end of the line."""

    text: str

    def __str__(self) -> str:
        return f'"{self.text}"'


@dataclass(frozen=True, slots=True)
class Every:
    """All of these are there, in the same line."""

    parts: tuple["LiteralTree", ...]

    def __str__(self) -> str:
        return " & ".join(f"({part})" if isinstance(part, OneOf) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of these is there; with none to choose from, no line matches."""

    parts: tuple["LiteralTree", ...]

    def __str__(self) -> str:
        return " | ".join(f"({part})" if isinstance(part, Every) else str(part) for part in self.parts) or "no line"


LiteralTree: TypeAlias = NothingKnown | Literal | Every | OneOf

NO_LINE = OneOf(())


@dataclass(frozen=True, slots=True)
class PatternFacts:
    """What is known of an expression."""

    required: LiteralTree
    longest_bytes: int | None
    """No match is longer than this, in UTF-8; None: not known, or without end."""


def pattern_facts(pattern: str) -> PatternFacts:
    """What is known of an expression that RE2 compiles."""
    try:
        whole = _Reader(pattern).read()
    except _UnreadableError:
        return PatternFacts(NothingKnown(), None)
    return PatternFacts(whole.needs, whole.longest_bytes)


class _UnreadableError(Exception):
    """The expression has something that the reader does not know."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What is known of a part of an expression."""

    texts: frozenset[str] | None
    """All that it can match, folded, where these are few; a run of white space may be one `_BREAK`."""
    required: LiteralTree = NothingKnown()
    """What all that it matches contains, where `texts` does not say it."""
    longest_bytes: int | None = MAX_CHAR_BYTES

    @property
    def needs(self) -> LiteralTree:
        return self.required if self.texts is None else _one_of_texts(self.texts)


_EMPTY_TEXT = frozenset([""])
_BREAK_TEXT = frozenset([_BREAK])
_WORD_END = _Part(_EMPTY_TEXT, longest_bytes=0)
_LINE_END = _Part(_BREAK_TEXT, longest_bytes=0)
_WHITE_CHARACTER = _Part(_BREAK_TEXT)
_ANY_CHARACTER = _Part(None)


@dataclass(slots=True)
class _Group:
    """A group that is being read."""

    ignores_case: bool
    sequence: list[_Part] = field(default_factory=list)
    """The alternative that is being read."""
    alternatives: list[_Part] = field(default_factory=list)

    def end_alternative(self) -> None:
        self.alternatives.append(_in_sequence(self.sequence))
        self.sequence = []

    def whole(self) -> _Part:
        self.end_alternative()
        return _alternation(self.alternatives)


class _Reader:
    """Reads an expression once, from left to right. Groups are kept in a list, as they may be nested deeply."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._groups = [_Group(ignores_case=True)]

    def read(self) -> _Part:
        while self._at < len(self._pattern):
            self._read_one()
        if len(self._groups) > 1:
            raise _UnreadableError
        return self._groups[0].whole()

    def _read_one(self) -> None:
        char = self._pattern[self._at]
        repeat = _REPEAT.match(self._pattern, self._at)
        if repeat is not None:
            self._repeat(repeat)
        elif char == "(":
            self._open()
        elif char == ")":
            self._close()
        elif char == "[":
            self._add(self._class())
        elif char == "\\":
            self._escape()
        else:
            self._at += 1
            if char == "|":
                self._groups[-1].end_alternative()
            elif char in _LINE_ENDS:
                self._add(_LINE_END)
            else:
                self._add(_ANY_CHARACTER if char == "." else self._one_of([char]))

    def _add(self, part: _Part) -> None:
        self._groups[-1].sequence.append(part)

    def _repeat(self, found: re.Match[str]) -> None:
        sequence = self._groups[-1].sequence
        if not sequence:
            raise _UnreadableError
        sign, low, comma, high = found.groups()
        if sign:
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        else:
            least = int(low)
            most = int(high) if high else None if comma else least
        sequence[-1] = _repeated(sequence[-1], least, most)
        self._at = found.end()

    def _open(self) -> None:
        found = _GROUP.match(self._pattern, self._at)
        if found is None:
            raise _UnreadableError
        ignores_case = self._groups[-1].ignores_case
        flags, cleared, end = found.groups(default="")
        if "i" in flags or "i" in cleared:
            ignores_case = "i" not in cleared
        if end == ")":
            self._groups[-1].ignores_case = ignores_case
        else:
            self._groups.append(_Group(ignores_case))
        self._at = found.end()

    def _close(self) -> None:
        if len(self._groups) == 1:
            raise _UnreadableError
        whole = self._groups.pop().whole()
        self._add(whole)
        self._at += 1

    def _escape(self) -> None:
        escaped = self._pattern[self._at + 1 : self._at + 2]
        if escaped == "Q":
            text, quote_end, _ = self._pattern[self._at + 2 :].partition("\\E")
            for char in text:
                self._add(self._one_of([char]))
            self._at += 2 + len(text) + len(quote_end)
        elif escaped and escaped in _LINE_END_ESCAPES + _WORD_END_ESCAPES:
            self._add(_LINE_END if escaped in _LINE_END_ESCAPES else _WORD_END)
            self._at += 2
        elif escaped and escaped in _CLASS_ESCAPES:
            self._add(_WHITE_CHARACTER if escaped == "s" else _ANY_CHARACTER)
            self._at = self._after_class_escape()
        else:
            self._add(self._one_of([self._character()]))

    def _after_class_escape(self) -> int:
        found = _PROPERTY.match(self._pattern, self._at)
        return self._at + 2 if found is None else found.end()

    def _character(self) -> str:
        """The character written here, maybe as an escape, and go behind it."""
        found = _CODE.match(self._pattern, self._at)
        if found is not None:
            long, short, octal = found.groups()
            code = int(octal, 8) if octal else int(long or short, 16)
            self._at = found.end()
            return chr(code)
        is_escape = self._pattern[self._at] == "\\"
        self._at += 1 + is_escape
        if self._at > len(self._pattern):
            raise _UnreadableError
        char = self._pattern[self._at - 1]
        if is_escape and char.isalnum():
            if char not in _CONTROLS:
                raise _UnreadableError
            return _CONTROLS[char]
        return char

    def _class(self) -> _Part:
        chars: list[str] = []
        is_small = True
        self._at += 1
        if self._pattern.startswith("^", self._at):
            self._at += 1
            is_small = False
        start = self._at
        while self._at == start or not self._pattern.startswith("]", self._at):
            if self._at >= len(self._pattern):
                raise _UnreadableError
            named = _NAMED_CLASS.match(self._pattern, self._at)
            if named is not None:
                self._at, is_small = named.end(), False
            elif self._pattern.startswith("\\s", self._at):
                self._at += 2
                chars += "\t\f\r "
            elif self._is_class_escape():
                self._at, is_small = self._after_class_escape(), False
            else:
                first = last = self._character()
                if self._pattern.startswith("-", self._at) and not self._pattern.startswith("-]", self._at):
                    self._at += 1
                    last = self._character()
                is_small = is_small and len(chars) + ord(last) - ord(first) < 4 * MAX_CLASS_CHARS
                if is_small:
                    chars += map(chr, range(ord(first), ord(last) + 1))
        self._at += 1
        return self._one_of(chars) if is_small else _ANY_CHARACTER

    def _is_class_escape(self) -> bool:
        escape = self._pattern[self._at : self._at + 2]
        return len(escape) == 2 and escape[0] == "\\" and escape[1] in _CLASS_ESCAPES

    def _one_of(self, chars: Iterable[str]) -> _Part:
        texts = _union([self._folded(char) for char in chars])
        if texts is None:
            return _ANY_CHARACTER
        white = {text for text in texts if text in _WHITE_SPACE}
        if len(white) > 1:
            texts = texts - white | _BREAK_TEXT
        return _Part(texts) if len(texts) <= MAX_CLASS_CHARS else _ANY_CHARACTER

    def _folded(self, char: str) -> frozenset[str] | None:
        """What all characters fold to that this one matches; None: not known."""
        if char == "\n":
            return frozenset()
        if "\ud800" <= char <= "\udfff" or (self._groups[-1].ignores_case and _may_match_others(char)):
            return None
        return frozenset([fold(char)])


def _may_match_others(char: str) -> bool:
    """Whether RE2, ignoring case, may take it for a character that folds differently.

    RE2 pairs letters by a later Unicode than the folding, and a later RE2 by an even later one. Pairs never
    part again, but a letter that is alone may be given another: Unicode 15.1 did so to U+0390, 16 to U+019B.
    """
    return not char.isascii() and char not in _PAIRED and unicodedata.category(char) in _MAY_BE_PAIRED


def _product(left: frozenset[str], right: frozenset[str] | None) -> frozenset[str] | None:
    """Each text of one followed by each of the other; None where these are too many, too long or not known."""
    if right is None or len(left) * len(right) > MAX_TEXTS:
        return None
    texts = frozenset((one + other).replace(2 * _BREAK, _BREAK) for one in left for other in right)
    return None if any(len(text) > MAX_TEXT_CHARS for text in texts) else texts


def _in_sequence(parts: Sequence[_Part]) -> _Part:
    """Parts that follow each other: texts that touch are one text, as far as they are known."""
    longest: int | None = 0
    for part in parts:
        longest = None if longest is None or part.longest_bytes is None else longest + part.longest_bytes
    run = _EMPTY_TEXT
    required: list[LiteralTree] = []
    is_known = True
    for part in parts:
        longer = _product(run, part.texts)
        if longer is None:
            is_known = False
            required.append(_one_of_texts(run))
            if part.texts is None:
                required.append(part.required)
            run = part.texts or _EMPTY_TEXT
        else:
            run = longer
    if is_known:
        return _Part(run, longest_bytes=longest)
    return _Part(None, _every([*required, _one_of_texts(run)]), longest)


def _alternation(parts: Sequence[_Part]) -> _Part:
    if len(parts) == 1:
        return parts[0]
    lengths = [part.longest_bytes for part in parts if part.longest_bytes is not None]
    longest = max(lengths) if len(lengths) == len(parts) else None
    texts = _union([part.texts for part in parts])
    if texts is not None:
        return _Part(texts, longest_bytes=longest)
    return _Part(None, _one_of([part.needs for part in parts]), longest)


def _union(several: Sequence[frozenset[str] | None]) -> frozenset[str] | None:
    texts: frozenset[str] = frozenset()
    for one in several:
        if one is None:
            return None
        texts |= one
    return texts if len(texts) <= MAX_TEXTS else None


def _repeated(part: _Part, least: int, most: int | None) -> _Part:
    if part.longest_bytes == 0:
        longest: int | None = 0
    else:
        longest = None if most is None or part.longest_bytes is None else most * part.longest_bytes
    if part.texts and most not in (least, 1) and all(text and _is_white(text) for text in part.texts):
        return _Part(_BREAK_TEXT if least else _BREAK_TEXT | _EMPTY_TEXT, longest_bytes=longest)
    if least == 0:
        texts = _EMPTY_TEXT if most == 0 else _union([part.texts, _EMPTY_TEXT]) if most == 1 else None
        return _Part(texts, longest_bytes=longest)
    if part.texts is None:
        return _Part(None, part.required, longest)
    run, times = part.texts, 1
    while times < least and (longer := _product(run, part.texts)) is not None:
        run, times = longer, times + 1
    if times == most:
        return _Part(run, longest_bytes=longest)
    return _Part(None, _one_of_texts(run), longest)


def _is_white(text: str) -> bool:
    return not text.strip(_WHITE_SPACE + _BREAK)


def _one_of_texts(texts: Iterable[str]) -> LiteralTree:
    """One of these texts; one that contains another says no more than the other."""
    kept: list[str] = []
    for text in sorted(texts, key=lambda text: (len(text), text)):
        if not any(shorter in text for shorter in kept):
            kept.append(text)
    return _one_of([_every(_literals(text)) for text in kept])


def _literals(text: str) -> Iterator[LiteralTree]:
    """A text as literals: what stands between breaks, with one space for the white space around it."""
    for found in _BETWEEN_BREAKS.finditer(text):
        before, core, after = found.groups()
        if not core.isspace():
            yield Literal(f"{' ' if before else ''}{core}{' ' if after else ''}")


def _one_of(parts: Iterable[LiteralTree]) -> LiteralTree:
    """The disjunction, in its simplest form."""
    flat: dict[LiteralTree, None] = {}
    for part in parts:
        if isinstance(part, NothingKnown):
            return NothingKnown()
        flat |= dict.fromkeys(part.parts if isinstance(part, OneOf) else [part])
    if sum(map(_size, flat)) > MAX_LITERALS:
        return NothingKnown()
    return next(iter(flat)) if len(flat) == 1 else OneOf(tuple(flat))


def _every(parts: Iterable[LiteralTree]) -> LiteralTree:
    """The conjunction, in its simplest form, of the parts that say the most."""
    flat: dict[LiteralTree, None] = {}
    for part in parts:
        if part == NO_LINE:
            return NO_LINE
        if not isinstance(part, NothingKnown):
            flat |= dict.fromkeys(part.parts if isinstance(part, Every) else [part])
    texts = [part.text for part in flat if isinstance(part, Literal)]
    kept = [part for part in flat if not (isinstance(part, Literal) and _is_said(part.text, texts))]
    strongest = sorted(kept, key=_strength, reverse=True)[:MAX_PARTS]
    kept = [part for part in kept if part in strongest]
    if not kept:
        return NothingKnown()
    return kept[0] if len(kept) == 1 else Every(tuple(kept))


def _is_said(text: str, texts: Sequence[str]) -> bool:
    return any(text in other and text != other for other in texts)


def _size(tree: LiteralTree) -> int:
    """How many texts it has."""
    return sum(map(_size, tree.parts)) if isinstance(tree, Every | OneOf) else 1


def _strength(tree: LiteralTree) -> int:
    """How much it says: the length of its texts, of alternatives that of the shortest."""
    match tree:
        case Literal(text):
            return len(text.strip())
        case Every(parts):
            return max(map(_strength, parts))
        case OneOf(parts):
            return min(map(_strength, parts), default=0)
        case NothingKnown():
            return 0
