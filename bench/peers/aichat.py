"""aichat (claude-code-tools): its Tantivy index, asked through its own Python class."""

import json
import subprocess

from bench.peers.base import FIRST, Bench, Found, Program, Unusable

ASK = """
import json, sys
from pathlib import Path
from claude_code_tools.search_index import SessionIndex
index = SessionIndex(Path.home() / ".cctools" / "search-index")
for line in sys.stdin:
    question = json.loads(line)
    found = index.search(question["query"], limit=question["limit"])
    print(json.dumps([session["session_id"] for session in found]), flush=True)
"""


class Aichat(Program):
    name = "aichat"
    program = "aichat"
    asks_words = True
    timed = "the call in its own Python, in a process that is running"
    fairness = (
        "Another question: sessions by words. `aichat search` needs a second program, aichat-search, that its "
        "package does not bring; so its index is asked through the class that built it, without a process start."
    )

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self._child: subprocess.Popen[str] | None = None

    def build(self) -> None:
        self.run(["build-index"], seconds=self.bench.build_seconds)

    def first(self, literal: str) -> None:
        self._sessions(literal, FIRST)

    def every(self, literal: str, until: float) -> Found:
        return Found(self.keys(self._sessions(literal, len(self.bench.transcripts))))

    def close(self) -> None:
        if self._child is not None:
            self._child.communicate()

    def _sessions(self, literal: str, limit: int) -> list[str]:
        if self._child is None:
            python = self.path.resolve().with_name("python3")
            self._child = subprocess.Popen(
                [python, "-c", ASK],
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        assert self._child.stdin is not None and self._child.stdout is not None
        # Its query language is Tantivy's, in which quotes make a phrase of anything.
        self._child.stdin.write(json.dumps({"query": f'"{literal}"', "limit": limit}) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        if not line:
            self._child.communicate()
            self._child = None
            raise Unusable("its search raised an error")
        sessions: list[str] = json.loads(line)
        return sessions
