"""A plain scan over the text in memory: what is true, and what doing without an index costs."""

import platform
from collections.abc import Iterator, Sequence
from itertools import islice

from bench.peers.base import FIRST, Bench, Found, Peer, Turn
from bench.transcripts import Transcript, texts_of
from schemas.folding import fold


class Scan(Peer):
    name = "plain scan"
    unit = "turn"
    timed = "the call, in this process"
    fairness = (
        "`literal in text` over each turn, newest first, until 20 are found. All text lies folded in memory, so that "
        "nothing is read, decoded or folded while it searches: the best that a scan in Python can do."
    )
    has_index = False

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self._truth = Truth(())

    def version(self) -> str:
        return f"Python {platform.python_version()}"

    def build(self) -> None:
        self._truth = Truth(self.bench.transcripts)

    def disk_bytes(self) -> int:
        return 0

    def first(self, literal: str) -> None:
        list(islice(self._truth.newest(literal), FIRST))

    def every(self, literal: str, until: float) -> Found:
        turns = self._truth.turns(literal)
        return Found(frozenset(session for session, _ in turns), turns)

    def close(self) -> None:
        """It holds nothing but memory."""


class Truth:
    """Which turns have a literal in one of their texts, ignoring case."""

    def __init__(self, transcripts: Sequence[Transcript]) -> None:
        self.turn_ms: dict[Turn, int] = {}
        self._texts: list[tuple[Turn, str]] = []
        self._messages: list[tuple[str, str]] = []
        for transcript in transcripts:
            for number, (turn, at_ms) in enumerate(zip(transcript.turns, transcript.turn_ms, strict=True), 1):
                key = (transcript.key, number)
                self.turn_ms[key] = at_ms
                # No literal has a line break in it, so that no match goes from one text into the next.
                self._texts.append((key, fold("\n".join(text for item in turn for text in texts_of(item)))))
            said = (item["text"] for turn in transcript.turns for item in turn if item["type"] in ("user", "agent"))
            self._messages.append((transcript.key, fold("\n".join(said))))

    def newest(self, literal: str) -> Iterator[Turn]:
        folded = fold(literal)
        return (turn for turn, text in reversed(self._texts) if folded in text)

    def turns(self, literal: str) -> frozenset[Turn]:
        return frozenset(self.newest(literal))

    def sessions_by_messages(self, literal: str) -> frozenset[str]:
        """Sessions that have it in what the user or the agent said, not only in tools, thinking or notices."""
        folded = fold(literal)
        return frozenset(session for session, text in self._messages if folded in text)
