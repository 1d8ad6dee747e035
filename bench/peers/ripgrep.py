"""ripgrep on the raw files: what people do without an index."""

import subprocess
from pathlib import Path

from bench.peers.base import Bench, Found, Program, Unusable


class Ripgrep(Program):
    name = "rg -F -i"
    program = "rg"
    unit = "line of a file"
    fairness = (
        "Fair in that both look through everything, and that files are in the page cache. Not fair to turndex: rg's "
        "output is thrown away unread, and it tells files and lines of JSON, not turns. Not fair to rg: it starts a "
        "process, needs no index, and does not stop at 20. It searches JSON as it is written, so that keys match "
        "and escaped characters do not."
    )
    has_index = False

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self._session_of = {transcript.path: transcript.key for transcript in bench.transcripts}

    def build(self) -> None:
        """There is nothing to build."""

    def disk_bytes(self) -> int:
        return 0

    def first(self, literal: str) -> None:
        done = subprocess.run([self.path, *self._arguments(literal)], env=self.environment, stdout=subprocess.DEVNULL)
        if done.returncode > 1:
            raise Unusable(f"rg ended with {done.returncode}")

    def every(self, literal: str, until: float) -> Found:
        listed = self.run(["--files-with-matches", *self._arguments(literal)], codes=(0, 1))
        return Found(frozenset(self._session_of[Path(line)] for line in listed.decode().splitlines()))

    def _arguments(self, literal: str) -> list[str]:
        archive = self.bench.archive
        everything = ["--hidden", "--no-ignore", "--glob", "*.json", "--glob", "*.jsonl"]
        folders = [str(archive / "work"), str(archive / "turns")]
        return ["--fixed-strings", "--ignore-case", *everything, "--regexp", literal, *folders]
