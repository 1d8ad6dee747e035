"""One module a transcript format; `base` is what each of them promises, and `IN_FOLDERS` where they are looked for."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from indexer.sources.base import Source
from indexer.sources.claude_code import ClaudeCodeSource
from indexer.sources.claude_code.places import recognised as claude_code_projects
from indexer.sources.codex import CodexSource, codex_home_of
from indexer.sources.cydonia import SESSIONS_FOLDER, CydoniaSource
from indexer.sources.turn_file import TurnFileSource, turns_folder_of
from schemas.errors import InvalidArgument, quoted
from schemas.settings import Settings, default_codex_home, default_data_dir, resolved
from schemas.sources import CLAUDE_CODE, CODEX, CYDONIA, SOURCES, TURN_FILE


def default_turns_folders() -> list[Path]:
    """Where turn files are looked for out of the box."""
    return [default_data_dir() / "turns"]


def default_claude_folders() -> list[Path]:
    """Where Claude Code keeps its transcripts: where its variable says, else in its two usual places.

    The older of the two is looked into only where it is there.
    """
    named = os.environ.get("CLAUDE_CONFIG_DIR")
    if named:
        return [Path(named)]
    older = Path.home() / ".config" / "claude"
    return [Path.home() / ".claude", *([older] if older.is_dir() else [])]


def default_codex_homes() -> list[Path]:
    return [default_codex_home()]


@dataclass(frozen=True, slots=True)
class InFolders:
    """A source whose transcripts lie in folders. Its settings are `enabled` and `folders`, in its section."""

    name: str
    make: Callable[[Sequence[Path], Sequence[Path]], Source]
    """The source, from the folders that were named and the usual ones, which are looked into if they are there."""
    usual: Callable[[], Sequence[Path]]
    """The folders to look into where none are named."""
    recognised: Callable[[Path], Path | None]
    """The folder to name for a root, where that holds such transcripts."""
    looks_like: str
    """What such a root is, to be told of one that is none."""


IN_FOLDERS = (
    InFolders(
        CLAUDE_CODE,
        ClaudeCodeSource,
        default_claude_folders,
        claude_code_projects,
        "a folder of Claude Code's sessions",
    ),
    InFolders(CODEX, CodexSource, default_codex_homes, codex_home_of, "one in which Codex keeps its own"),
    InFolders(TURN_FILE, TurnFileSource, default_turns_folders, turns_folder_of, "one with *.turns.jsonl files"),
)
"""A root is of the first that recognises it. Those that know a few places come before those that look everywhere."""


def sources_for(settings: Settings) -> list[Source]:
    """The sources that the settings ask for.

    The usual places are looked for where `discover` is on; `roots`, and what the settings file names, always.

    Raises:
        InvalidArgument: what lies in a root is of no source, or of one that is switched off.
    """
    projects: list[Path] = []
    named: dict[str, list[Path]] = {kind.name: [] for kind in IN_FOLDERS}
    cydonia = settings.sources.cydonia
    for root in map(resolved, settings.roots):
        if is_cydonia_project(root):
            projects.append(_enabled(root, cydonia.enabled, CYDONIA))
        else:
            name, folder = _recognised(root)
            named[name].append(_enabled(folder, settings.sources.in_folders(name).enabled, name))
    sources: list[Source] = []
    is_state_read = settings.discover or "state_file" in cydonia.model_fields_set
    if cydonia.enabled and (is_state_read or projects):
        sources.append(CydoniaSource(cydonia.state_file.expanduser() if is_state_read else None, projects))
    for kind in IN_FOLDERS:
        section = settings.sources.in_folders(kind.name)
        folders = [*named[kind.name], *map(resolved, section.folders or [])]
        usual = list(map(resolved, kind.usual())) if settings.discover and section.folders is None else []
        if section.enabled and (folders or usual):
            sources.append(kind.make(folders, usual))
    return sorted(sources, key=lambda source: SOURCES.index(source.name))


def is_cydonia_project(folder: Path) -> bool:
    """Whether Cydonia kept sessions in this folder."""
    return (folder / SESSIONS_FOLDER).is_dir()


def _recognised(root: Path) -> tuple[str, Path]:
    """The source of what lies in a root, and the folder that is meant.

    Raises:
        InvalidArgument: it is of none.
    """
    for kind in IN_FOLDERS:
        folder = kind.recognised(root)
        if folder is not None:
            return kind.name, folder
    others = "".join(f", nor {kind.looks_like}" for kind in IN_FOLDERS)
    raise InvalidArgument(
        "root",
        f"{quoted(str(root))} holds no transcripts: it is neither a project with a folder {SESSIONS_FOLDER}{others}",
    )


def _enabled(root: Path, is_enabled: bool, source: str) -> Path:
    if not is_enabled:
        raise InvalidArgument("root", f"{quoted(str(root))} holds transcripts of {source}, which is switched off")
    return root
