"""Where Claude Code's transcripts lie below a folder `projects`, and what their places tell.

    <folder>/<session>.jsonl                                          a session
    <folder>/agent-<id>.jsonl                                         a subagent's, as version 2.0 wrote it
    <folder>/<session>/subagents/agent-<id>.jsonl                     the same since 2.1
    <folder>/<session>/subagents/workflows/wf_<id>/agent-<id>.jsonl   the same within a workflow

`<folder>` is named after the directory where the session was started, and cannot be decoded. Nothing else is read: a
session's other folders may hold thousands of files.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from indexer.decode import BadJson, decode_object
from indexer.sources.base import Root, Transcript
from indexer.sources.values import text
from indexer.tail import Tail
from schemas.turn_file import SUFFIX as TURN_FILE_SUFFIX

PROJECTS = "projects"
_SUFFIX = ".jsonl"
_AGENT = "agent-"
_HELPERS = ("agent-acompact-", "agent-aprompt_suggestion-")
"""Runs that only summarise or guess the next prompt."""

_MUNGED = re.compile(r"-[A-Za-z0-9-]*|[A-Za-z]--[A-Za-z0-9-]*")
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
MAX_SIDECAR_BYTES = 16_000_000
"""A larger file beside a transcript is left alone."""

MAX_REMEMBERED = 256
"""Of so many folders and transcripts it is remembered what lay beside them."""


@dataclass(frozen=True, slots=True)
class Place:
    """What the path of a transcript tells."""

    folder: str
    id: str
    """The file's stem."""
    parent: str | None = None
    """The session that a subagent belongs to; None where only its lines tell."""

    @property
    def is_subagent(self) -> bool:
        return self.id.startswith(_AGENT)


def place_of(root: Path, path: Path) -> Place | None:
    """What a path below `projects` is; None where it is no transcript."""
    name, parts = path.name, path.relative_to(root).parts
    if not name.endswith(_SUFFIX) or name.endswith(TURN_FILE_SUFFIX):
        return None
    stem = name.removesuffix(_SUFFIX)
    is_agent = name.startswith(_AGENT)
    if is_agent and name.startswith(_HELPERS):
        return None
    if len(parts) == 2:
        return Place(parts[0], stem) if is_agent or stem not in ("", "journal") else None
    is_below_session = (len(parts) == 4 and parts[2] == "subagents") or (
        len(parts) == 6 and parts[2:4] == ("subagents", "workflows")
    )
    return Place(parts[0], stem, parts[1]) if is_agent and is_below_session else None


def listed(root: Root) -> Iterator[Transcript]:
    """The transcripts of a root. Links are followed after all that is really there, and no file is listed twice.

    Raises:
        OSError: a folder could not be read; it comes after all that could be listed.
    """
    listing = _Listing(root)
    for project in listing.entries(root.path, is_root=True):
        yield from listing.of_project(project)
    if listing.failure is not None:
        raise listing.failure


class _Listing:
    def __init__(self, root: Root) -> None:
        self.failure: OSError | None = None
        self._root = root
        self._seen: set[tuple[int, int]] = set()

    def of_project(self, project: os.DirEntry[str]) -> Iterator[Transcript]:
        if not self._is_folder(project):
            return
        for entry in self.entries(project.path):
            yield from self._transcript(entry)
            if "." not in entry.name and entry.name != "memory" and self._is_folder(entry):
                yield from self._of_session(entry)

    def _of_session(self, session: os.DirEntry[str]) -> Iterator[Transcript]:
        for entry in self.entries(os.path.join(session.path, "subagents")):
            yield from self._transcript(entry)
            if entry.name == "workflows" and self._is_folder(entry):
                for workflow in self.entries(entry.path):
                    if self._is_folder(workflow):
                        for one in self.entries(workflow.path):
                            yield from self._transcript(one)

    def entries(self, folder: str | Path, *, is_root: bool = False) -> list[os.DirEntry[str]]:
        """What lies in a folder, links last; nothing where it is none, or gone since its parent was read."""
        try:
            with os.scandir(folder) as entries:
                return sorted(entries, key=lambda entry: (entry.is_symlink(), entry.name))
        except OSError as error:
            if is_root or not isinstance(error, (FileNotFoundError, NotADirectoryError)):
                self.failure = self.failure or error
            return []

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir()
        except OSError as error:
            self.failure = self.failure or error
            return False

    def _transcript(self, entry: os.DirEntry[str]) -> Iterator[Transcript]:
        if not entry.name.endswith(_SUFFIX) or place_of(self._root.path, Path(entry.path)) is None:
            return
        try:
            if not entry.is_file():
                return
            found = entry.stat()
        except FileNotFoundError:
            return
        except OSError as error:
            self.failure = self.failure or error
            return
        identity = found.st_dev, found.st_ino
        if identity not in self._seen:
            self._seen.add(identity)
            yield Transcript(entry.path, self._root, found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev)


def projects_folder(folder: Path) -> Path:
    """The folder `projects` that is meant by one of that name, or by the one in which it lies."""
    inner = folder / PROJECTS
    return folder if folder.name == PROJECTS and not inner.is_dir() else inner


def recognised(folder: Path) -> Path | None:
    """The folder of projects that a folder is, or has; None where it holds none of Claude Code's sessions."""
    for candidate in (folder / PROJECTS, folder):
        try:
            with os.scandir(candidate) as entries:
                projects = [entry for entry in entries if _MUNGED.fullmatch(entry.name)]
            listing = _Listing(Root(candidate))
            if any(next(listing.of_project(project), None) is not None for project in projects):
                return candidate
        except OSError:
            continue
    return None


def sidecar(path: Path) -> dict[str, Any]:
    """The JSON object in a small file beside a transcript; an empty one where there is none.

    Such files are hints: they may be absent, stale or broken.
    """
    try:
        if path.stat().st_size > MAX_SIDECAR_BYTES:
            return {}
        return decode_object(path.read_bytes())
    except (OSError, BadJson):
        return {}


def is_id(written: str) -> bool:
    """Whether an id from a line is one that names a file, and no way to somewhere else."""
    return _ID.fullmatch(written) is not None


def full_output(folder: Path, id_: str) -> bytes | None:
    """What a tool printed where that was too long for the transcript, from the session's own folder.

    The path that the transcript names is not followed, as it may lead anywhere.
    """
    if not is_id(id_):
        return None
    for suffix in (".txt", ".json"):
        path = folder / "tool-results" / f"{id_}{suffix}"
        try:
            if path.is_file() and path.stat().st_size <= MAX_SIDECAR_BYTES:
                return path.read_bytes()
        except OSError:
            return None
    return None


class Beside:
    """What lies beside transcripts and tells more of them, read once as long as it does not change."""

    def __init__(self) -> None:
        self._summaries: dict[Path, tuple[tuple[int, int], dict[str, str]]] = {}
        self._directories: dict[Path, str] = {}

    def summary(self, folder: Path, id_: str) -> str:
        """The summary of a session in the program's own index of a folder, which is only a hint."""
        path = folder / "sessions-index.json"
        try:
            found = path.stat()
        except OSError:
            return ""
        signature = found.st_size, found.st_mtime_ns
        known = self._summaries.pop(path, None)
        if known is None or known[0] != signature:
            known = signature, _summaries(sidecar(path))
        _remember(self._summaries, path, known)
        return known[1].get(id_, "")

    def directory(self, path: Path) -> str | None:
        """The first directory that the lines of a transcript name, which never changes once it is there."""
        known = self._directories.pop(path, None) or _first_directory(path)
        if known is not None:
            _remember(self._directories, path, known)
        return known


_T = TypeVar("_T")


def _remember(known: dict[Path, _T], path: Path, value: _T) -> None:
    known[path] = value
    if len(known) > MAX_REMEMBERED:
        del known[next(iter(known))]


def _summaries(index: dict[str, Any]) -> dict[str, str]:
    entries = index.get("entries")
    return {
        id_: summary.strip()
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and (id_ := text(entry.get("sessionId"))) and (summary := text(entry.get("summary")))
    }


def _first_directory(path: Path) -> str | None:
    try:
        with Tail(path) as tail:
            for line in tail:
                try:
                    cwd = text(decode_object(line.raw).get("cwd"))
                except BadJson:
                    continue
                if cwd and "\0" not in cwd:
                    return cwd
    except OSError:
        return None
    return None
