"""agentsview: a local viewer of sessions over SQLite."""

from collections.abc import Sequence
from typing import Any, ClassVar

from bench.peers.base import FIRST, Found, is_late, quoted
from bench.peers.web import Served

PAGE = 500
"""The most that it answers at once."""


class AgentsView(Served):
    name = "agentsview"
    program = "agentsview"
    unit = "message"
    mode: ClassVar[str] = "substring"
    fairness = (
        "Its default, a substring of messages, thinking, tool input and results: the same question. The answer goes "
        "over HTTP, ordered by session; sessions that it holds to be automated or of one message are asked for too."
    )

    @property
    def environment(self) -> dict[str, str]:
        return {
            **super().environment,
            "AGENTSVIEW_DISABLE_UPDATE_CHECK": "1",
            "AGENTSVIEW_DISABLE_AUTO_SYNC": "1",
            "AGENTSVIEW_NO_DAEMON": "1",
            "AGENTSVIEW_TELEMETRY_ENABLED": "0",
            "DO_NOT_TRACK": "1",
        }

    def build(self) -> None:
        self.run(["sync", "--full"], seconds=self.bench.build_seconds)

    def serve_arguments(self, port: int) -> Sequence[str]:
        return ["serve", "--no-browser", "--no-sync", "--no-update-check", "--port", str(port)]

    def first(self, literal: str) -> None:
        self._page(literal, FIRST, 0)

    def every(self, literal: str, until: float) -> Found:
        sessions: set[str] = set()
        cursor = 0
        while True:
            answer = self._page(literal, PAGE, cursor)
            sessions.update(match["session_id"] for match in answer["matches"])
            cursor = answer["next_cursor"]
            if not cursor or is_late(until):
                return Found(self.keys(sessions), is_all=not cursor)

    def _page(self, literal: str, limit: int, cursor: int) -> Any:
        pattern = quoted(literal) if self.asks_words else literal
        arguments: dict[str, str | int] = {"pattern": pattern, "mode": self.mode, "limit": limit, "cursor": cursor}
        shown = dict.fromkeys(["include_automated", "include_one_shot", "include_children"], "true")
        return self.get("/api/v1/search/content", {**arguments, **shown})


class AgentsViewFts(AgentsView):
    name = "agentsview fts"
    shares_index_of = AgentsView.name
    mode = "fts"
    asks_words = True
    fairness = "Its fast mode: words of messages alone, over HTTP. Another question: no part of a word, no tool output."
