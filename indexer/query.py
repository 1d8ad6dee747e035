"""What the index is asked: a small tree of facts about a chunk, which prints itself.

Each is *necessary* for a match: a chunk that lacks one cannot match, one that has all of them may.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

SHOWN_TERMS = 4


@dataclass(frozen=True, slots=True)
class Anything:
    """Nothing is known that would tell chunks apart."""

    def __str__(self) -> str:
        return "anything"


@dataclass(frozen=True, slots=True)
class Nothing:
    """No chunk can match."""

    def __str__(self) -> str:
        return "nothing"


@dataclass(frozen=True, slots=True)
class AnyTerm:
    """One of these terms is there."""

    terms: tuple[str, ...]

    def __str__(self) -> str:
        return f"term({_listed(self.terms)})"


@dataclass(frozen=True, slots=True)
class Phrase:
    """These terms stand side by side."""

    terms: tuple[str, ...]

    def __str__(self) -> str:
        return f'phrase("{" ".join(self.terms)}")'


@dataclass(frozen=True, slots=True)
class Joint:
    """Two words meet in one of these ways."""

    joints: tuple[str, ...]

    def __str__(self) -> str:
        return f"joint({_listed(self.joints)})"


@dataclass(frozen=True, slots=True)
class All:
    """All of these hold."""

    parts: tuple["ChunkQuery", ...]

    def __str__(self) -> str:
        return " & ".join(f"({part})" if isinstance(part, Any) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Any:
    """One of these holds."""

    parts: tuple["ChunkQuery", ...]

    def __str__(self) -> str:
        return " | ".join(str(part) for part in self.parts)


ChunkQuery: TypeAlias = Anything | Nothing | AnyTerm | Phrase | Joint | All | Any


def all_of(parts: Sequence[ChunkQuery]) -> ChunkQuery:
    """The conjunction, in its simplest form."""
    if any(isinstance(part, Nothing) for part in parts):
        return Nothing()
    kept = tuple(part for part in parts if not isinstance(part, Anything))
    if not kept:
        return Anything()
    return kept[0] if len(kept) == 1 else All(kept)


def any_of(parts: Sequence[ChunkQuery]) -> ChunkQuery:
    """The disjunction, in its simplest form."""
    if any(isinstance(part, Anything) for part in parts):
        return Anything()
    kept = tuple(part for part in parts if not isinstance(part, Nothing))
    if not kept:
        return Nothing()
    return kept[0] if len(kept) == 1 else Any(kept)


def _listed(terms: Sequence[str]) -> str:
    shown = "|".join(terms[:SHOWN_TERMS])
    rest = len(terms) - SHOWN_TERMS
    return shown if rest <= 0 else f"{shown}|… {rest} more"
