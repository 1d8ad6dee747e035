"""What a client's connection says of the caller, as HTTP headers: the one way, also from `turndex mcp` to its server.

`x-turndex-project` or `x-cydonia-project` is the path of the caller's project, percent-encoded;
`x-turndex-session` or `x-cydonia-session` the id of its session; `x-turndex-directory` a directory that may lie
within a project, where only a process that works in it can say so. What is absent or cannot be decoded binds
nothing; a path that can be decoded and is none is refused.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from schemas.errors import InvalidArgument, quoted
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


def binding_of(headers: Iterable[tuple[str, str]]) -> Binding:
    """What the headers of a call say: names in lower case, values in Latin-1, as HTTP has them.

    Raises:
        InvalidArgument: a header is there twice, or what should be a path is none. Taken for nothing, it would make
            the call one about every project.
    """
    written: dict[str, str] = {}
    for name, value in headers:
        if name.startswith(_PREFIXES):
            if name in written:
                raise InvalidArgument(name, f"the header {quoted(name)} is there twice; it takes one value")
            written[name] = value.strip()
    return Binding(
        project=_path(written, "project"), directory=_path(written, "directory"), session=_value(written, "session")[1]
    )


def _path(written: Mapping[str, str], name: str) -> str | None:
    ours = _PREFIXES[0] + name
    if written.get(ours) == "":
        # Written by hand: a variable that was not set. A program that has no project may well send its own empty.
        raise InvalidArgument(
            ours, f"the header {ours} takes an absolute path, and is empty; leave it out, or name one"
        )
    header, path = _value(written, name)
    if path is not None and (not path.startswith("/") or "\0" in path):
        raise InvalidArgument(
            header, f"the header {header} takes an absolute path, percent-encoded, not {quoted(path)}"
        )
    return path


def _value(written: Mapping[str, str], name: str) -> tuple[str, str | None]:
    """The header that counts, and its value: None where there is none or it cannot be decoded."""
    header = next((prefix + name for prefix in _PREFIXES if written.get(prefix + name)), _PREFIXES[0] + name)
    value = written.get(header, "")
    if _BROKEN_ESCAPE.search(value):
        return header, None
    try:
        return header, unquote_to_bytes(value.encode("latin-1")).decode() or None
    except UnicodeError:
        return header, None
