"""Which of two records of the same thing is taken.

Everything is written twice, as what went to and from the model (`response_item`) and as what the interface
showed (`event_msg`), and which of the twins comes first varies. So each kind is taken from one layer, and
from the other only where a file has nothing of the kind in the first. A reading that has taken from the
second layer when the first turns up begins anew, knowing better: what a file says does not depend on how
far it was read when.
"""

from indexer.sources.codex.state import State

USER, AGENT, THINKING = "user", "agent", "thinking"
"""The kinds that are taken from one layer."""


class BetterLayer(Exception):
    """A kind was taken from one layer, and here is the one to take it from: begin anew with what is now known."""


class Layers:
    """What was found in which layer, by stretch: a file's own lines, or those that it copied."""

    def __init__(self, state: State) -> None:
        self._state = state

    def is_preferred(self, kind: str) -> bool:
        """Whether the layer to take a kind from is there."""
        return kind in self._state.layers.get(self._stretch, ())

    def prefer(self, kind: str) -> None:
        """Note that the layer to take a kind from is there.

        Raises:
            BetterLayer: it was taken from the other one.
        """
        if not self.is_preferred(kind):
            self._state.layers.setdefault(self._stretch, []).append(kind)
            if kind in self._state.fallbacks.get(self._stretch, ()):
                raise BetterLayer

    def may_fall_back(self, kind: str) -> bool:
        """Whether a kind is to be taken from the other layer, as far as it is known."""
        if self.is_preferred(kind):
            return False
        used = self._state.fallbacks.setdefault(self._stretch, [])
        if kind not in used:
            used.append(kind)
        return True

    @property
    def _stretch(self) -> str:
        return f"{self._state.file}{' copied' if self._state.is_copying else ''}"
