"""fast-resume: finds sessions to go on with, by words in a Tantivy index."""

import json
from typing import Any

from bench.peers.base import FIRST, Found, Program, quoted


class FastResume(Program):
    name = "fast-resume"
    program = "fast-resume"
    asks_words = True
    fairness = (
        "Another question: sessions by words, in what user and agent said; it starts a process, without looking "
        "for changed files (--no-refresh)."
    )

    def build(self) -> None:
        self.run(["--rebuild", "--json", "--limit", "1"], seconds=self.bench.build_seconds)

    def first(self, literal: str) -> None:
        self._sessions(literal, "--limit", str(FIRST))

    def every(self, literal: str, until: float) -> Found:
        return Found(self.keys(session["id"] for session in self._sessions(literal, "--all")))

    def _sessions(self, literal: str, *options: str) -> list[dict[str, Any]]:
        sessions: list[dict[str, Any]] = json.loads(
            self.run(["--no-refresh", "--json", *options, "--", quoted(literal)])
        )["sessions"]
        return sessions
