"""What a file of a thread has that is another thread's: the history that a fork or a subagent began with."""

from collections.abc import Callable, Collection

from indexer.sources.codex.header import Header
from indexer.sources.codex.state import State


class Copied:
    """Whether the lines that are read are a copy, where it ends, and which of them are left out."""

    def __init__(
        self,
        state: State,
        turn_ids: Callable[[str], Collection[str] | None],
        *,
        is_base: bool = False,
        is_foreign: bool = False,
        end_ordinal: int | None = None,
    ) -> None:
        """As for a `Rollout`."""
        self._state = state
        self._turn_ids = turn_ids
        self._is_base = is_base
        self._is_foreign = is_foreign
        self._end_ordinal = end_ordinal
        self._source_turns: Collection[str] | None = None
        """The ids of the turns of the thread that is copied from, once they were asked for."""

    @property
    def is_copy(self) -> bool:
        return self._is_foreign or self._state.is_copying

    @property
    def leaves_out(self) -> bool:
        """Whether the lines are a subagent's copy of what its parent's session has, which can be very much."""
        header = self._state.header
        return self._state.is_copying and header is not None and header.is_subagent

    def is_out(self, ordinal: int | None) -> bool:
        """Whether a line is of the parent's history, or stood there after the thread left it."""
        header = self._state.header
        if ordinal is None or header is None:
            return False
        if self._end_ordinal is not None and ordinal >= self._end_ordinal:
            return True
        return not self._is_base and header.own_ordinal is not None and ordinal < header.own_ordinal

    def take_header(self, header: Header) -> None:
        """Take one that is not the file's own: of another thread, it says that a copy of that one's history begins.

        Where it ends can be told by an ordinal, or by the source's own file; with neither, all of it is kept as if it
        were the thread's own.
        """
        state = self._state
        own = state.header
        if own is None or own.id == header.id or self._is_base or state.is_copying or state.is_copy_over:
            return
        if own.own_ordinal is None and own.copied_from is not None:
            state.is_copying = self._turn_ids(own.copied_from) is not None
            state.is_copy_over = not state.is_copying

    def ends_with(self, turn_id: str) -> bool:
        """Whether the copy ends as this turn of the program's own is not one of the source's."""
        state = self._state
        source = state.header.copied_from if state.header else None
        if not state.is_copying or source is None:
            return False
        if self._source_turns is None:
            self._source_turns = self._turn_ids(source) or ()
        if turn_id in self._source_turns:
            state.held = None
            return False
        state.is_copying, state.is_copy_over = False, True
        return True
