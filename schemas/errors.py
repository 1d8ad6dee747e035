"""Everything that can be refused or fail, by what a caller can do about it.

    TurndexError
    ├── BadCall (400)             mend the words of the call
    │   ├── InvalidReference
    │   ├── InvalidQuery
    │   └── InvalidArgument
    ├── Unauthorized (401)        send the token
    ├── Forbidden (403)           call from where calls are allowed
    ├── NotFound (404)            name something that exists
    │   └── NoSuchTurn
    ├── MethodNotAllowed (405)
    ├── Conflict (409)            choose one of the candidates, or start over
    │   ├── Ambiguous
    │   ├── NotASession
    │   └── StaleCursor
    ├── TooLarge (413)
    ├── UnsupportedMediaType (415)
    ├── Internal (500)            a fault of ours; the log has the id that the answer names
    └── Later (503)               call again later, or do what the answer says
        ├── Timeout
        ├── Busy
        └── Unavailable

A code is stable and is what HTTP, MCP and the command line show; a detail may improve. Details hold
words of the call, shortened, and never text of a transcript.
"""

from collections.abc import Sequence
from typing import ClassVar

MAX_QUOTED_CHARS = 80


def quoted(value: str) -> str:
    """A word of the call as an error shows it: on one line, printable, and not too long."""
    line = "".join(char if char.isprintable() else " " for char in value)
    return line if len(line) <= MAX_QUOTED_CHARS else line[:MAX_QUOTED_CHARS] + "…"


class TurndexError(Exception):
    """The root: a stable `code`, an HTTP `status`, a `detail` to read, and `candidates` to pass back."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal error"

    def __init__(self, detail: str, candidates: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.candidates = tuple(candidates)

    def __str__(self) -> str:
        return f"Error ({self.code}): {self.detail}"


class BadCall(TurndexError):
    status = 400


class InvalidReference(BadCall):
    code, title = "invalid_reference", "Invalid reference"


class InvalidQuery(BadCall):
    code, title = "invalid_query", "Invalid query"


class InvalidArgument(BadCall):
    """An argument that is unknown, missing, of the wrong type or out of range; `argument` names it."""

    code, title = "invalid_argument", "Invalid argument"

    def __init__(self, argument: str, detail: str, candidates: Sequence[str] = ()) -> None:
        super().__init__(detail, candidates)
        self.argument = argument


class Unauthorized(TurndexError):
    code, status, title = "unauthorized", 401, "Unauthorized"


class Forbidden(TurndexError):
    code, status, title = "forbidden", 403, "Forbidden"


class NotFound(TurndexError):
    code, status, title = "not_found", 404, "Not found"


class NoSuchTurn(NotFound):
    """The range starts past the end; `count` is how many turns there are."""

    code, title = "no_such_turn", "No such turn"

    def __init__(self, detail: str, count: int) -> None:
        super().__init__(detail)
        self.count = count


class MethodNotAllowed(TurndexError):
    code, status, title = "method_not_allowed", 405, "Method not allowed"


class Conflict(TurndexError):
    status = 409


class Ambiguous(Conflict):
    """Several fit; `candidates` are what to choose from."""

    code, title = "ambiguous", "Ambiguous"


class NotASession(Conflict):
    code, title = "not_a_session", "Not a session"


class StaleCursor(Conflict):
    code, title = "stale_cursor", "Stale cursor"


class TooLarge(TurndexError):
    code, status, title = "too_large", 413, "Too large"


class UnsupportedMediaType(TurndexError):
    code, status, title = "unsupported_media_type", 415, "Unsupported media type"


class Internal(TurndexError):
    pass


class Later(TurndexError):
    status = 503


class Timeout(Later):
    code, title = "timeout", "Timeout"


class Busy(Later):
    code, title = "busy", "Busy"


class Unavailable(Later):
    code, title = "unavailable", "Unavailable"
