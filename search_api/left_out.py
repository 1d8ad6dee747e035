"""What a search over several sessions leaves out unless it is asked for, and whether there was any of it."""

from dataclasses import dataclass

from indexer.order import TurnKey
from schemas.answers import LeftOut

CURRENT = LeftOut("matches in the turn that you are in", "current=include")


@dataclass(slots=True)
class LeftOutTurns:
    """Turns that match and are not answered; they are counted as such only once they are met."""

    current: frozenset[tuple[int, int]]
    """The turn that the caller is in, as session and number."""
    _is_current_met: bool = False

    def has(self, key: TurnKey) -> bool:
        """Whether a turn that matches is left out."""
        is_current = key[1:] in self.current
        self._is_current_met = self._is_current_met or is_current
        return is_current

    def named(self) -> list[LeftOut]:
        """What was left out on the way to this answer."""
        return [CURRENT] if self._is_current_met else []
