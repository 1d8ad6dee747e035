"""deja (deja-vu): a memory of sessions, searched by words with fallbacks, or by an expression."""

import json
from collections.abc import Sequence
from typing import Any

from bench.peers.base import FIRST, Found, Program, quoted

NOTHING_FOUND = 1


class Deja(Program):
    name = "deja"
    program = "deja"
    asks_words = True
    fairness = (
        "Another question: sessions by words, and by similar spellings where there is no exact hit. It starts a "
        "process; the tier that needs embeddings is off."
    )

    def version(self) -> str:
        return self.run(["version"]).decode().split()[-1].lstrip("v")

    def build(self) -> None:
        self.run(["index", "--rebuild", "--quiet"], seconds=self.bench.build_seconds)

    def first(self, literal: str) -> None:
        self._search(literal, "--limit", str(FIRST))

    def every(self, literal: str, until: float) -> Found:
        return Found(self.keys(hit["session"]["id"] for hit in self._search(literal, "--all")))

    def question(self, literal: str) -> Sequence[str]:
        return ["--", quoted(literal)]

    def _search(self, literal: str, *options: str) -> list[dict[str, Any]]:
        printed = self.run(
            ["search", "--no-embed", "--json", *options, *self.question(literal)], codes=(0, NOTHING_FOUND)
        )
        hits: list[dict[str, Any]] = json.loads(printed)["hits"] if printed.strip() else []
        return hits


class DejaExpression(Deja):
    name = "deja --re"
    shares_index_of = Deja.name
    asks_words = False
    fairness = "The same literal as an expression, ignoring case: the question that turndex is asked; a process start."

    def question(self, literal: str) -> Sequence[str]:
        return ["--re", "--", rf"(?i)\Q{literal}\E"]
