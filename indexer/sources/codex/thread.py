"""A thread during one part of its reading: messages start turns, and everything else comes behind them."""

from functools import lru_cache
from typing import Any

from indexer.sources.codex import prompts
from indexer.sources.codex.calls import Calls
from indexer.sources.codex.copied import Copied
from indexer.sources.codex.layers import Layers
from indexer.sources.codex.state import State
from indexer.sources.codex.turns import Place, Turns
from indexer.sources.codex.values import digest
from indexer.sources.unknown import Unknown
from indexer.sources.values import in_calendar
from schemas.items import Item, Kind
from schemas.times import parse_iso

MAX_TITLE_CHARS = 400


class Thread:
    """What the records of one part add to a thread."""

    def __init__(self, state: State, copied: Copied, file_ms: int) -> None:
        """`file_ms` is the time of what nothing else tells a time for."""
        self.state = state
        self.copied = copied
        self.layers = Layers(state)
        self.unknown = Unknown()
        self.turns = Turns(state.turns)
        self.calls = Calls(state, self.turns, self.add)
        self._file_ms = file_ms

    def take_prompt(self, kind: str, words: str, at_ms: int | None) -> None:
        """A message starts a turn, also one that was typed while the agent works."""
        state = self.state
        hashed = digest(words)
        last = state.last_prompt
        if last is not None and last[0] != kind and last[1] == hashed and not last[2]:
            state.last_prompt = kind, hashed, True  # written once more, in the other form
            return
        state.last_prompt = kind, hashed, False
        # A turn's time is told once: it must be the same whether the item was all there was, or the event was, too.
        at = state.sent[1] if state.sent is not None and state.sent[0] == hashed else self.or_known(at_ms)
        state.sent = None
        if self.copied.leaves_out:
            state.held = words, at
            return
        self._start_turn(words, at, None if state.turn_id is None else self._origin(state.turn_id))

    def take_turn_id(self, turn_id: str | None, *, is_start: bool) -> None:
        """Note the program's own turn: told when it starts, or in the context of each call of the model."""
        if turn_id is None:
            return
        state = self.state
        leaves_out = self.copied.leaves_out
        if self.copied.ends_with(turn_id) and not leaves_out and not is_start and state.turns.origin is None:
            # Where only contexts tell the turn, its message stands before the first of them.
            self.turns.mark(None, is_copy=False)
        if is_start:
            state.turn_id = turn_id
        elif state.turns.turn and state.turns.origin is None:
            self.turns.mark(self._origin(turn_id), state.turns.is_copy)
        if leaves_out and not state.is_copying and state.held is not None:
            (words, at_ms), state.held = state.held, None
            if not is_start:  # what stands before that is the last message of the copied part
                self._start_turn(words, at_ms, self._origin(turn_id))

    def take_compaction(self, kind: str, at_ms: int | None) -> None:
        """Up to three records tell of one compaction. What it put in the place of the history is no message."""
        if self.copied.leaves_out:
            return
        told = self.state.compactions
        if told and kind not in told:
            told.append(kind)
            return
        self.notice("context compacted", at_ms)
        self.state.compactions = [kind]

    def add(self, item: Item) -> Place:
        """Put an item behind the others; where it stands."""
        self.state.compactions = []
        if item.kind is not Kind.NOTICE:
            self.state.is_after_abort = False
        return self.turns.add(item, self.or_known(item.at_ms), self.copied.is_copy)

    def notice(self, words: str, at_ms: int | None) -> None:
        self.add(Item(Kind.NOTICE, text=words, at_ms=at_ms))

    def tell_of_gap(self) -> None:
        """Say that what stood before is not there any more."""
        self.notice("what came before in this thread is missing", None)

    def time(self, stamp: Any) -> int | None:
        """The time of a line in Unix milliseconds; None where it has none."""
        at_ms = _stamp_ms(stamp) if isinstance(stamp, str) else None
        if at_ms is not None:
            self.state.last_ms = at_ms
        return at_ms

    def or_known(self, at_ms: int | None) -> int:
        """A time, else that of the record before, of the header, or of the file."""
        header = self.state.header
        known = (at_ms, self.state.last_ms, header.started_ms if header else None)
        return next((one for one in known if one is not None), self._file_ms)

    def needs_turn_id(self) -> bool:
        """Whether a context is worth a look, as it says where a turn comes from, or that a copy ends."""
        return self.state.is_copying or (self.state.turns.turn > 0 and self.state.turns.origin is None)

    def _origin(self, turn_id: str) -> str:
        """The same in every copy: the program's turn, and which of its messages where it has more than one."""
        state = self.state
        state.origin_count = state.origin_count + 1 if turn_id == state.origin_id else 1
        state.origin_id = turn_id
        return turn_id if state.origin_count == 1 else f"{turn_id}/{state.origin_count}"

    def _start_turn(self, words: str, at_ms: int, origin: str | None) -> None:
        state = self.state
        self.calls.interrupt()
        state.first_prompt = state.first_prompt or digest(words)
        state.title = state.title or prompts.title_of(words)[:MAX_TITLE_CHARS]
        state.program, state.twins, state.compactions = None, [], []
        self.turns.start(Item(Kind.USER, text=words, at_ms=at_ms), at_ms, origin, self.copied.is_copy)


@lru_cache(maxsize=4096)
def _whole_second_ms(second: str) -> int | None:
    return in_calendar(parse_iso(f"{second}Z"))


def _stamp_ms(stamp: str) -> int | None:
    """A line's time; of the thousands of lines of a second only the first one costs anything."""
    if len(stamp) == 24 and stamp[19] == "." and stamp[23] == "Z" and stamp[20:23].isdecimal():
        second_ms = _whole_second_ms(stamp[:19])
        return None if second_ms is None else second_ms + int(stamp[20:23])
    return in_calendar(parse_iso(stamp))
