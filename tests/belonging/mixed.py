"""The transcripts of one person who uses Cydonia, Claude Code and Codex in the same directory."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from schemas.answers import ReadAnswer, SearchAnswer, SessionSummary
from schemas.requests import ReadRequest, SearchRequest, SessionsRequest
from schemas.settings import Settings, load_settings
from search_api.archive import Archive
from search_api.caller import Caller
from search_api.render import text_form
from tests.indexer.archives import Transcripts, found_in, index
from tests.indexer.sources.claude_code.written import SESSION, Written, written_in
from tests.indexer.sources.codex.rollouts import CodexHome

RECORD = "1790000000100"


class Mixed:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.transcripts = Transcripts(folder)
        self.project = self.transcripts.project("kettle")
        self.claude = written_in(folder / "claude")
        self.claude.usual = {"cwd": str(self.project)}
        self.codex = CodexHome(folder / "codex")
        self.allowed: list[str] | None = None
        """The projects that callers see; None: all."""
        self.keeps_deleted = True

    def settings(self, data: str = "data") -> Settings:
        sources = {
            "cydonia": {"state_file": str(self.transcripts.state_file)},
            "turn_file": {"folders": [str(self.transcripts.turns)]},
            "claude_code": {"folders": [str(self.folder / "claude")]},
            "codex": {"folders": [str(self.folder / "codex")]},
        }
        return load_settings(
            flags={
                "discover": False,
                "data_dir": str(self.folder / data),
                "sources": sources,
                "limits": {"min_free_bytes": 0, "min_free_share": 0.0},
                "access": {"projects": self.allowed},
                "history": {"keep_deleted": self.keeps_deleted},
            }
        )

    def index(self, data: str = "data") -> None:
        index(self.settings(data))

    def session(self, name: str, **usual: Any) -> Written:
        """Another session of Claude Code in the same folder."""
        return self.claude.beside(f"-home-a-kettle/{name}.jsonl", sessionId=name, cwd=str(self.project), **usual)

    def subagent(self, name: str, parent: str = SESSION, **usual: Any) -> Written:
        path = f"-home-a-kettle/{parent}/subagents/agent-{name}.jsonl"
        return self.claude.beside(
            path, sessionId=parent, cwd=str(self.project), isSidechain=True, agentId=name, **usual
        )

    def search(self, query: str, **arguments: Any) -> SearchAnswer:
        with closing(Archive.open(self.settings())) as archive:
            return archive.search(SearchRequest.read({"query": query, **arguments}), Caller())

    def found(self, query: str, **arguments: Any) -> list[tuple[str, int]]:
        """Session and turn of each hit."""
        return [(hit.session_id, hit.turn) for hit in self.search(query, **arguments).hits]

    def all_found(self, query: str, **arguments: Any) -> list[tuple[str, int]]:
        """The same of all pages."""
        return found_in(self.settings(), query, **arguments)

    def left_out(self, query: str, **arguments: Any) -> list[tuple[str, str]]:
        return [(left.what, left.argument) for left in self.search(query, **arguments).left_out]

    def read(self, session: str, **arguments: Any) -> ReadAnswer:
        with closing(Archive.open(self.settings())) as archive:
            return archive.read(ReadRequest.read({"session": session, **arguments}), Caller())

    def text(self, session: str, **arguments: Any) -> str:
        return text_form(self.read(session, **arguments))

    def listed(self, **arguments: Any) -> list[SessionSummary]:
        with closing(Archive.open(self.settings())) as archive:
            return archive.sessions(SessionsRequest.read(arguments), Caller()).sessions

    def numbers(self) -> dict[str, int | None]:
        """The number of each session, by the source's own id."""
        found = self.listed(subagents="include", source=["cydonia", "turn-file", "claude-code", "codex"])
        return {one.session_id: one.session for one in found}


def ids(found: Sequence[SessionSummary]) -> list[str]:
    return sorted(one.session_id for one in found)
