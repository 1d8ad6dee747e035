"""The archive as callers see it: the one object behind HTTP, MCP and the command line."""

from typing import Self

from schemas.answers import ProjectsAnswer, ReadAnswer, SearchAnswer, SessionsAnswer, StatusAnswer
from schemas.requests import ReadRequest, SearchRequest, SessionsRequest
from schemas.settings import Settings
from search_api.caller import Caller


class Archive:
    """Store and index, opened for reading. Safe to call from several threads; it never writes.

    Every call raises a `TurndexError` where it is refused or fails.
    """

    @classmethod
    def open(cls, settings: Settings) -> Self:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def search(self, request: SearchRequest, caller: Caller) -> SearchAnswer:
        raise NotImplementedError

    def read(self, request: ReadRequest, caller: Caller) -> ReadAnswer:
        """`request.max_chars` None means uncut: a door sets its own default before it calls."""
        raise NotImplementedError

    def sessions(self, request: SessionsRequest, caller: Caller) -> SessionsAnswer:
        raise NotImplementedError

    def projects(self) -> ProjectsAnswer:
        raise NotImplementedError

    def status(self) -> StatusAnswer:
        """What the store knows; a server adds what only it knows (uptime, lag)."""
        raise NotImplementedError

    def enclosing_project(self, directory: str) -> str | None:
        """The open project that is, or most closely encloses, a directory (SPEC section 7)."""
        raise NotImplementedError
