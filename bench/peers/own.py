"""turndex itself: in this process, and as the command that people type."""

import json
import subprocess
from datetime import datetime
from importlib.metadata import version

from bench.corpus import claude_settings, corpus_flags, corpus_settings
from bench.peers.base import FIRST, Bench, Found, Peer, Turn, Unusable, is_late
from bench.results import folder_bytes
from bench.serving import COMMAND, environment, write_settings
from indexer.service import index_once
from schemas.requests import SearchRequest
from schemas.settings import Settings
from schemas.times import to_ms
from search_api.archive import Archive
from search_api.caller import Caller


class Turndex(Peer):
    name = "turndex"
    unit = "turn"
    timed = "the call, in a process that is running"
    fairness = (
        "Reads the records and turn files, keeps all text, and answers the 20 newest turns with their lines. "
        "Searches detail too (full), as the others search everything."
    )

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self.data_dir = bench.scratch / "data"
        self.settings = self.settings_of(bench)
        self._archive: Archive | None = None

    def settings_of(self, bench: Bench) -> Settings:
        return corpus_settings(bench.archive, self.data_dir)

    def key_of(self, session_id: str) -> str:
        """The key of a session by the id that an answer has."""
        return session_id

    def version(self) -> str:
        return version("turndex")

    def build(self) -> None:
        index_once(self.settings, lambda _: None)

    def disk_bytes(self) -> int:
        return folder_bytes(self.data_dir)

    @property
    def archive(self) -> Archive:
        if self._archive is None:
            self._archive = Archive.open(self.settings)
        return self._archive

    def first(self, literal: str) -> None:
        self.archive.search(_request(literal, None), Caller())

    def every(self, literal: str, until: float) -> Found:
        turns: set[Turn] = set()
        cursor: str | None = None
        while True:
            answer = self.archive.search(_request(literal, cursor), Caller())
            turns.update((self.key_of(hit.session_id), hit.turn) for hit in answer.hits)
            cursor = answer.cursor
            if cursor is None or is_late(until):
                break
        since_ms = None if cursor is None else to_ms(datetime.fromisoformat(answer.hits[-1].at))
        return Found(frozenset(session for session, _ in turns), frozenset(turns), since_ms)

    def close(self) -> None:
        if self._archive is not None:
            self._archive.close()


class TurndexClaude(Turndex):
    name = "turndex, Claude Code"
    fairness = (
        "Reads the same sessions as the tools for Claude Code do, in that agent's files: for building an index it is "
        "this one that compares with them."
    )

    def settings_of(self, bench: Bench) -> Settings:
        return claude_settings(bench.claude, self.data_dir)

    def key_of(self, session_id: str) -> str:
        return self.bench.session_of[session_id]


class TurndexCommand(Turndex):
    name = "turndex search"
    shares_index_of = Turndex.name
    timed = "the whole process, start of Python included; no server runs"
    fairness = "The same as a command: to be compared with rg and the other commands, which start a process too."

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self._settings_file = write_settings(bench.scratch / "config.toml", corpus_flags(bench.archive, self.data_dir))

    def first(self, literal: str) -> None:
        self._run(literal)

    def every(self, literal: str, until: float) -> Found:
        """Its first page alone: that all pages are right is seen in process."""
        answer = json.loads(self._run(literal, "--json"))
        turns = frozenset((hit["session_id"], hit["turn"]) for hit in answer["hits"])
        since_ms = to_ms(datetime.fromisoformat(answer["hits"][-1]["at"])) if answer["more"] else None
        return Found(frozenset(session for session, _ in turns), turns, since_ms)

    def _run(self, literal: str, *options: str) -> bytes:
        arguments = [
            "search",
            "--config",
            str(self._settings_file),
            "--full",
            "--project",
            "*",
            *options,
            "--",
            literal,
        ]
        done = subprocess.run([COMMAND, *arguments], env=environment(), capture_output=True)
        if done.returncode > 1:
            raise Unusable(done.stderr.decode(errors="replace").strip())
        return done.stdout


def _request(literal: str, cursor: str | None) -> SearchRequest:
    return SearchRequest(query=literal, full=True, project="*", limit=FIRST, cursor=cursor)
