"""What a client's connection says of the caller, as HTTP headers: the one way, also from `turndex mcp` to its server.

`x-turndex-project` or `x-cydonia-project` is the path of the caller's project, percent-encoded;
`x-turndex-session` or `x-cydonia-session` the id of its session; `x-turndex-directory` a directory that may lie
within a project, where only a process that works in it can say so. What is absent or cannot be decoded binds
nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from schemas.texts import without_surrogates
from search_api.archive import Archive
from search_api.caller import Caller

_PREFIXES = ("x-turndex-", "x-cydonia-")
"""Ours first: who sets it does so on purpose."""

_BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Binding:
    """What a connection is bound to."""

    project: str | None = None
    """A project's path."""
    directory: str | None = None
    """A directory: the call is about the project around it, or where there is none about the directory itself."""
    session: str | None = None

    def headers(self) -> dict[str, str]:
        """The headers that say this."""
        values = {"project": self.project, "directory": self.directory, "session": self.session}
        return {
            f"{_PREFIXES[0]}{name}": quote(without_surrogates(value))
            for name, value in values.items()
            if value is not None
        }

    def caller(self, archive: Archive) -> Caller:
        """Who calls. A project that is not known is the caller's all the same: nothing is widened."""
        project = self.project
        if project is None and self.directory is not None:
            project = archive.enclosing_project(self.directory) or self.directory
        return Caller(project, self.session)


def binding_of(headers: Mapping[str, str]) -> Binding:
    """What the headers of a call say; `headers` finds names in lower case, values are Latin-1 as HTTP has them."""
    return Binding(
        project=_path(_value(headers, "project")),
        directory=_path(_value(headers, "directory")),
        session=_value(headers, "session"),
    )


def _value(headers: Mapping[str, str], name: str) -> str | None:
    written = next((value for prefix in _PREFIXES if (value := headers.get(prefix + name, "").strip())), "")
    if _BROKEN_ESCAPE.search(written):
        return None
    try:
        value = unquote_to_bytes(written.encode("latin-1")).decode()
    except UnicodeError:
        return None
    return None if not value or "\0" in value else value


def _path(value: str | None) -> str | None:
    return value if value is not None and value.startswith("/") else None
