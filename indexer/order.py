"""The order of all answers: by the turn's time, then the session's first-seen sequence, then the turn."""

from typing import Literal, TypeAlias

TurnKey: TypeAlias = tuple[int, int, int]
"""(turn time in ms, session, turn), unique: a place in the order."""

Order: TypeAlias = Literal["newest", "oldest"]

BEFORE_ALL: TurnKey = (-1, -1, -1)
AFTER_ALL: TurnKey = (2**62, 2**62, 2**62)
