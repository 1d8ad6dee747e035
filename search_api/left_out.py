"""What a search over several sessions leaves out unless it is asked for, and whether there was any of it."""

from dataclasses import dataclass, field

from indexer.order import TurnKey
from schemas.answers import LeftOut
from search_api.copies import Copies, TurnOf
from search_api.search_scope import SearchScope

CURRENT = LeftOut("matches in the turn that you are in", "current=include")
COPIES = LeftOut("copies", "copies=include")


@dataclass(slots=True)
class LeftOutTurns:
    """Turns that match and are not answered; they are counted as such only once they are met."""

    scope: SearchScope
    copies: Copies
    _is_current_met: bool = False
    _is_copy_met: bool = False
    _passes: dict[int, bool] = field(default_factory=dict)
    """By session, whether it passes the filters."""

    def has(self, key: TurnKey) -> bool:
        """Whether a turn that matches is left out."""
        session, turn = key[1:]
        if (session, turn) in self.scope.current:
            self._is_current_met = True
        elif self.scope.leaves_out_copies and self._is_answered_by_another(session, turn):
            self._is_copy_met = True
        else:
            return False
        return True

    def named(self) -> list[LeftOut]:
        """What was left out on the way to this answer."""
        copies = [COPIES] if self._is_copy_met else []
        return [*self.scope.left_out, *copies, *([CURRENT] if self._is_current_met else [])]

    def _is_answered_by_another(self, session: int, turn: int) -> bool:
        """Whether a turn is a copy of one that the filters let through."""
        original = self.copies.original(session, turn)
        return original is not None and original not in self.scope.current and self._lets_through(original)

    def _lets_through(self, original: TurnOf) -> bool:
        session, turn = original
        if session not in self._passes:
            self._passes[session] = self.copies.store.session(session, self.scope.condition) is not None
        at_ms = self.copies.store.turn_ms(session, turn) if self._passes[session] else None
        return at_ms is not None and self.scope.bounds.from_ms <= at_ms <= self.scope.bounds.to_ms
