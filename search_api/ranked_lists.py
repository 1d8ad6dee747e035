"""Lists of ranked turns, kept for the pages to come."""

import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from indexer.order import TurnKey


@dataclass(frozen=True, slots=True)
class RankedTurns:
    """Turns that may match, best first."""

    keys: Sequence[TurnKey]
    is_cut: bool
    """Whether there are more of them."""

    @property
    def id(self) -> int:
        """The same for the same turns in the same order."""
        packed = array("q", [part for key in self.keys for part in key])
        return int.from_bytes(blake2b(packed.tobytes(), digest_size=8, key=b"cut" * self.is_cut).digest()) >> 4


class RankedLists:
    """The ranked lists that a server keeps for the pages to come. Safe to use from several threads."""

    MOST_LISTS = 64
    MOST_TURNS = 1_000_000
    """Of all lists together: 24 bytes each."""
    SECONDS = 600.0

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._lists: OrderedDict[tuple[str, int], tuple[float, array[int], bool]] = OrderedDict()

    def keep(self, bound_to: str, ranked: RankedTurns) -> None:
        """Keep a list for the call that it answers."""
        packed = array("q", [part for key in ranked.keys for part in key])
        with self._lock:
            self._forget_old()
            self._lists[bound_to, ranked.id] = (self._clock(), packed, ranked.is_cut)
            self._lists.move_to_end((bound_to, ranked.id))
            while len(self._lists) > self.MOST_LISTS or self._turns() > self.MOST_TURNS:
                self._lists.popitem(last=False)

    def get(self, bound_to: str, list_id: int) -> RankedTurns | None:
        """The list of that call and id, if it is still kept."""
        with self._lock:
            self._forget_old()
            kept = self._lists.get((bound_to, list_id))
        if kept is None:
            return None
        _, packed, is_cut = kept
        return RankedTurns(list(zip(packed[::3], packed[1::3], packed[2::3], strict=True)), is_cut)

    def _turns(self) -> int:
        return sum(len(packed) // 3 for _, packed, _ in self._lists.values())

    def _forget_old(self) -> None:
        oldest = self._clock() - self.SECONDS
        while self._lists and next(iter(self._lists.values()))[0] < oldest:
            self._lists.popitem(last=False)
