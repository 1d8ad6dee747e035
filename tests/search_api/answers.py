"""Answers and an archive that gives them, to try the doors without anything behind them."""

from dataclasses import dataclass, field, replace
from typing import Any

from schemas.answers import (
    Hit,
    ProjectsAnswer,
    ProjectSummary,
    ReadAnswer,
    ReadItem,
    ReadTurn,
    SearchAnswer,
    SessionsAnswer,
    SessionSummary,
    StatusAnswer,
    TurnRange,
)
from schemas.requests import ReadRequest, SearchRequest, SessionsRequest
from search_api.archive import Archive
from search_api.caller import Caller

PROJECT = "/home/a/lighthouse"

HIT = Hit(
    reference="#43:5",
    link="cydonia://lighthouse#43:5",
    project=PROJECT,
    project_name="lighthouse",
    session=43,
    session_id="1790000004300",
    turn=5,
    title="Fix the parser",
    line="the span is off by one",
    spans=[(12, 22)],
    kind="user",
    source="cydonia",
    agent="Claude Agent",
    at="2026-11-30T10:00:00.000Z",
    archived=False,
    deleted=False,
    copied_from=None,
    before=[],
    after=[],
)
SEARCHED = SearchAnswer(
    query="off by one", hits=[HIT], more=False, cursor=None, notes=[], left_out=[], indexing=None, took_ms=1.5
)
AT = "2026-11-30T10:00:00.000Z"
USER = ReadItem(5, 0, "user", text="The span is off.\nSee src/parser.rs:88", at=AT)
TOOL = ReadItem(5, 1, "tool", label="cargo test parser", status="failed")
READ = ReadAnswer(
    reference="#43",
    link="cydonia://lighthouse#43",
    project=PROJECT,
    project_name="lighthouse",
    session=43,
    session_id="1790000004300",
    title="Fix the parser",
    source="cydonia",
    agent="Claude Agent",
    archived=False,
    deleted=False,
    turns=TurnRange(5, 5),
    count=9,
    parts=[ReadTurn(5, "#43:5", False, [USER, TOOL])],
    is_continuation=False,
    max_chars=None,
    more=False,
    cursor=None,
    notes=[],
    is_full=False,
)
SESSION = SessionSummary(
    reference="#43",
    link="cydonia://lighthouse#43",
    project=PROJECT,
    project_name="lighthouse",
    session=43,
    session_id="1790000004300",
    title="Fix the parser",
    source="cydonia",
    agent="Claude Agent",
    turns=9,
    first_at=AT,
    last_at=AT,
    archived=True,
    deleted=False,
    parent=None,
    forked_from=None,
    twin_of=None,
)
PROJECTS = ProjectsAnswer([ProjectSummary(PROJECT, "lighthouse", True, ["cydonia"], 3, 40, AT)])
STATUS = StatusAnswer(
    version="0.1.0",
    uptime_s=12.5,
    is_ready=True,
    indexing=None,
    projects=1,
    sessions=3,
    turns=40,
    chunks=80,
    store_bytes=1_000_000,
    index_bytes=500_000,
    vocabulary_bytes=100_000,
    data_dir="/home/a/.local/share/turndex",
)


@dataclass
class FakeArchive(Archive):
    """Answers what it was given, or raises it, and remembers the calls."""

    searched: SearchAnswer | Exception = SEARCHED
    was_read: ReadAnswer | Exception = READ
    enclosing: str | None = None
    calls: list[tuple[Any, Caller]] = field(default_factory=list)

    def close(self) -> None:
        """Nothing is open."""

    def search(self, request: SearchRequest, caller: Caller) -> SearchAnswer:
        self.calls.append((request, caller))
        if isinstance(self.searched, Exception):
            raise self.searched
        return self.searched

    def read(self, request: ReadRequest, caller: Caller) -> ReadAnswer:
        self.calls.append((request, caller))
        if isinstance(self.was_read, Exception):
            raise self.was_read
        return replace(self.was_read, max_chars=request.max_chars)

    def sessions(self, request: SessionsRequest, caller: Caller) -> SessionsAnswer:
        self.calls.append((request, caller))
        return SessionsAnswer([SESSION], more=False, cursor=None)

    def projects(self) -> ProjectsAnswer:
        return PROJECTS

    def status(self) -> StatusAnswer:
        return replace(STATUS, uptime_s=None)

    def enclosing_project(self, directory: str) -> str | None:
        return self.enclosing
