"""cc-search (claude-session-search): a local page over SQLite's FTS5."""

import subprocess
from collections.abc import Sequence
from typing import Any

from bench.peers.base import FIRST, Found, Unusable, is_late, quoted
from bench.peers.web import Served

PAGE = 200
"""The most that it answers at once."""


class CcSearch(Served):
    name = "cc-search"
    program = "cc-search"
    asks_words = True
    unit = "message"
    fairness = (
        "FTS5 with unicode61 over messages, thinking, tool input and the first 4,000 characters of tool output; "
        "words are prefixes. In process it would be a little faster than over HTTP, and it counts all matches."
    )

    def version(self) -> str:
        """It has no option for it; its own interpreter knows."""
        script = "from importlib.metadata import version; print(version('claude-session-search'))"
        python = self.path.resolve().with_name("python3")
        done = subprocess.run([python, "-c", script], env=self.environment, capture_output=True, text=True)
        return done.stdout.strip() or "unknown"

    def build(self) -> None:
        self.run(["--reindex"], seconds=self.bench.build_seconds)

    def serve_arguments(self, port: int) -> Sequence[str]:
        return ["--no-open", "--port", str(port)]

    def first(self, literal: str) -> None:
        self._page(literal, FIRST, 0)

    def every(self, literal: str, until: float) -> Found:
        sessions: set[str] = set()
        offset = 0
        while True:
            answer = self._page(literal, PAGE, offset)
            sessions.update(message["session_id"] for message in answer["results"])
            offset += PAGE
            is_all = offset >= answer["total"]
            if is_all or is_late(until):
                return Found(self.keys(sessions), is_all=is_all)

    def _page(self, literal: str, limit: int, offset: int) -> Any:
        answer = self.get("/api/search", {"q": quoted(literal), "limit": limit, "offset": offset, "sort": "recent"})
        if "error" in answer:
            raise Unusable(answer["error"])
        return answer
