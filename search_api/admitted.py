"""The turns that the filters of a search let through."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from indexer.order import TurnKey
from indexer.store.reader import Session, StoreReader
from search_api.copies import is_outdated
from search_api.search_scope import SearchScope


@dataclass(slots=True)
class Admitted:
    """Tells them by the store, as the index may be a commit behind it, and looks each session up once."""

    store: StoreReader
    scope: SearchScope
    _sessions: dict[int, Session | None] = field(default_factory=dict)

    def among(self, keys: Sequence[TurnKey]) -> dict[TurnKey, Session]:
        """Those of some turns that are let through, in the order given, each with its session."""
        new = {session for _, session, _ in keys if session not in self._sessions}
        if new:  # together, as that costs little more than one of them
            self._sessions.update(dict.fromkeys(new) | self.store.sessions_of(new, self.scope.condition))
        admitted = ((key, self._sessions[key[1]]) for key in keys if self._is_in_range(key))
        return {
            key: session
            for key, session in admitted
            if session is not None and not is_outdated(self.store, session, key[2], key[0])
        }

    def _is_in_range(self, key: TurnKey) -> bool:
        at_ms, _, turn = key
        bounds, turns = self.scope.bounds, self.scope.turns
        return bounds.from_ms <= at_ms <= bounds.to_ms and (turns is None or turns.first <= turn <= turns.last)
