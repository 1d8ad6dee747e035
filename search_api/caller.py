"""Who calls, as far as it matters to an answer; computed in one place for every door."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    """What a call is about when it does not say so itself."""

    project: str | None = None
    """The path of the caller's project, known or not; None: the call is about every open project."""
