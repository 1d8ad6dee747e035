"""One module a transcript format; `base` is what each of them promises."""

import os
from pathlib import Path

from indexer.sources.base import Root, Source
from indexer.sources.claude_code import ClaudeCodeSource
from indexer.sources.claude_code.places import recognised as claude_code_projects
from indexer.sources.codex import CodexSource, codex_home_of
from indexer.sources.cydonia import SESSIONS_FOLDER, CydoniaSource
from indexer.sources.files import listed
from indexer.sources.turn_file import TurnFileSource, is_turn_file
from schemas.errors import InvalidArgument, quoted
from schemas.settings import Settings, default_codex_home, default_data_dir, resolved


def sources_for(settings: Settings) -> list[Source]:
    """The sources that the settings ask for.

    The usual places are looked for where `discover` is on; `roots`, and what the settings file names, always.

    Raises:
        InvalidArgument: what lies in a root is of no source, or of one that is switched off.
    """
    projects: list[Path] = []
    folders: list[Path] = []
    claude_folders: list[Path] = []
    codex_homes: list[Path] = []
    cydonia, turn_file = settings.sources.cydonia, settings.sources.turn_file
    claude_code, codex = settings.sources.claude_code, settings.sources.codex
    for root in map(resolved, settings.roots):
        if is_cydonia_project(root):
            projects.append(_enabled(root, cydonia.enabled, CydoniaSource.name))
        elif (found := claude_code_projects(root)) is not None:
            claude_folders.append(_enabled(found, claude_code.enabled, ClaudeCodeSource.name))
        elif holds_turn_files(root):
            folders.append(_enabled(root, turn_file.enabled, TurnFileSource.name))
        elif (home := codex_home_of(root)) is not None:
            _enabled(root, codex.enabled, CodexSource.name)
            codex_homes.append(home)
        else:
            raise InvalidArgument(
                "root",
                f"{quoted(str(root))} holds no transcripts: it is neither a project with a folder "
                f"{SESSIONS_FOLDER}, nor a folder of Claude Code's sessions, nor one in which Codex keeps its own,"
                " nor one with *.turns.jsonl files",
            )
    sources: list[Source] = []
    is_state_read = settings.discover or "state_file" in cydonia.model_fields_set
    if cydonia.enabled and (is_state_read or projects):
        sources.append(CydoniaSource(cydonia.state_file.expanduser() if is_state_read else None, projects))
    if turn_file.enabled:
        usual = None
        if turn_file.folders is not None:
            folders += map(resolved, turn_file.folders)
        elif settings.discover:
            usual = resolved(default_turns_folder())
            usual = None if any(usual.is_relative_to(folder) for folder in folders) else usual
        if folders or usual is not None:
            sources.append(TurnFileSource(_outermost(folders), usual))
    if claude_code.enabled:
        if claude_code.folders is not None:
            claude_folders += map(resolved, claude_code.folders)
        usual_folders = default_claude_folders() if claude_code.folders is None and settings.discover else []
        if claude_folders or usual_folders:
            sources.append(ClaudeCodeSource(_outermost(claude_folders), usual_folders))
    if codex.enabled:
        usual_home = None
        if codex.folders is not None:
            codex_homes += map(resolved, codex.folders)
        elif settings.discover:
            usual_home = resolved(default_codex_home())
        if codex_homes or usual_home is not None:
            sources.append(CodexSource(codex_homes, usual_home))
    return sources


def default_turns_folder() -> Path:
    """Where turn files are looked for out of the box."""
    return default_data_dir() / "turns"


def default_claude_folders() -> list[Path]:
    """Where Claude Code keeps its transcripts: where its variable says, else in its two usual places.

    The older of the two is looked into only where it is there.
    """
    named = os.environ.get("CLAUDE_CONFIG_DIR")
    if named:
        return [resolved(Path(named))]
    older = Path.home() / ".config" / "claude"
    return list(dict.fromkeys(map(resolved, [Path.home() / ".claude", *([older] if older.is_dir() else [])])))


def is_cydonia_project(folder: Path) -> bool:
    """Whether Cydonia kept sessions in this folder."""
    return (folder / SESSIONS_FOLDER).is_dir()


def holds_turn_files(folder: Path) -> bool:
    """Whether a turn file lies somewhere below this folder."""
    try:
        return next(listed(Root(folder), is_turn_file), None) is not None
    except OSError:
        return False


def _enabled(root: Path, is_enabled: bool, source: str) -> Path:
    if not is_enabled:
        raise InvalidArgument("root", f"{quoted(str(root))} holds transcripts of {source}, which is switched off")
    return root


def _outermost(folders: list[Path]) -> list[Path]:
    """The folders, without those that lie in another one and would be listed twice."""
    distinct = list(dict.fromkeys(folders))
    return [folder for folder in distinct if not any(parent in distinct for parent in folder.parents)]
