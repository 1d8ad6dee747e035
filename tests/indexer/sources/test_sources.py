from pathlib import Path

import pytest

from indexer.sources import IN_FOLDERS, sources_for
from indexer.sources.base import Source
from schemas.errors import InvalidArgument
from schemas.settings import load_settings
from schemas.sources import SOURCES
from tests.indexer.sources.codex import rollouts


def roots_of(sources: list[Source]) -> dict[str, list[Path]]:
    return {source.name: [root.path for root in source.roots()] for source in sources}


def settings_file(tmp_path: Path, text: str = "") -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "kettle"
    (project / ".cydonia" / "sessions").mkdir(parents=True)
    return project


@pytest.fixture
def turns(tmp_path: Path) -> Path:
    turns = tmp_path / "logs"
    (turns / "deep").mkdir(parents=True)
    (turns / "deep" / "a.turns.jsonl").write_text("")
    return turns


def test_the_usual_places_are_looked_for(home: Path, project: Path) -> None:
    state = home / ".config" / "cydonia" / "state.toml"
    state.parent.mkdir(parents=True)
    state.write_text(f'projects = ["{project}"]\n')
    sources = sources_for(load_settings())
    state_files = {source.name: list(source.state_files()) for source in sources}
    assert list(state_files) == list(SOURCES)
    assert {name: files for name, files in state_files.items() if files} == {
        "cydonia": [state],
        "codex": [home / ".codex" / "session_index.jsonl"],
    }
    assert roots_of(sources)["cydonia"] == [project / ".cydonia" / "sessions"]
    assert [folder.parts[-2:] for folder in roots_of(sources)["turn-file"]] == [("turndex", "turns")]
    assert roots_of(sources)["claude-code"] == [home / ".claude" / "projects"]


@pytest.mark.parametrize("has_older", [True, False])
def test_claude_code_is_looked_for_where_its_variable_says_or_in_its_usual_places(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_older: bool
) -> None:
    older = home / ".config" / "claude"
    if has_older:
        older.mkdir(parents=True)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "elsewhere"))
    assert roots_of(sources_for(load_settings()))["claude-code"] == [tmp_path / "elsewhere" / "projects"]
    for value in (None, ""):
        monkeypatch.delenv("CLAUDE_CONFIG_DIR") if value is None else monkeypatch.setenv("CLAUDE_CONFIG_DIR", value)
        found = roots_of(sources_for(load_settings()))["claude-code"]
        assert found == [home / ".claude" / "projects", *([older / "projects"] if has_older else [])]


@pytest.mark.parametrize("part", ["", "projects"])
@pytest.mark.parametrize(
    "file", ["-home-a/s.jsonl", "C--a/s.jsonl", "-home-a/agent-1.jsonl", "-home-a/s/subagents/agent-1.jsonl"]
)
def test_a_root_of_claude_code_is_recognised(tmp_path: Path, file: str, part: str) -> None:
    path = tmp_path / "copy" / "projects" / file
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    root = tmp_path / "copy" / part if part else tmp_path / "copy"
    sources = sources_for(load_settings(flags={"roots": [str(root)], "discover": False}))
    assert roots_of(sources) == {"claude-code": [tmp_path / "copy" / "projects"]}


@pytest.mark.parametrize("file", ["s.jsonl", "kettle/s.jsonl", "-home-a/deep/s.jsonl", "-home-a/journal.jsonl"])
def test_other_json_lines_are_not_taken_for_claude_codes(tmp_path: Path, file: str) -> None:
    path = tmp_path / "copy" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")
    with pytest.raises(InvalidArgument, match="no transcripts"):
        sources_for(load_settings(flags={"roots": [str(tmp_path / "copy")]}))


def test_folders_of_claude_code_that_are_named_are_looked_into_instead_of_the_usual_ones(tmp_path: Path) -> None:
    named = settings_file(tmp_path, f'[sources.claude-code]\nfolders = ["{tmp_path}/a", "{tmp_path}/b/projects"]\n')
    for discover in (True, False):
        roots = roots_of(sources_for(load_settings(named, {"discover": discover})))
        assert roots["claude-code"] == [tmp_path / "a" / "projects", tmp_path / "b" / "projects"]


def test_a_root_is_recognised_from_what_lies_in_it(project: Path, turns: Path) -> None:
    settings = load_settings(flags={"roots": [str(project), str(turns)], "discover": False})
    sources = sources_for(settings)
    assert roots_of(sources) == {"cydonia": [project / ".cydonia" / "sessions"], "turn-file": [turns]}
    assert [list(source.state_files()) for source in sources] == [[], []]


@pytest.mark.parametrize("name", ["empty", "gone"])
def test_a_root_without_transcripts_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidArgument) as caught:
        sources_for(load_settings(flags={"roots": [str(tmp_path / name)]}))
    assert caught.value.argument == "root"


def test_without_discovery_only_what_is_named_is_read(tmp_path: Path, project: Path, turns: Path) -> None:
    assert sources_for(load_settings(flags={"discover": False})) == []
    state = tmp_path / "state.toml"
    state.write_text(f'projects = ["{project}"]\n')
    named = settings_file(
        tmp_path, f'[sources.cydonia]\nstate_file = "{state}"\n[sources.turn-file]\nfolders = ["{turns}"]\n'
    )
    assert roots_of(sources_for(load_settings(named, {"discover": False}))) == {
        "cydonia": [project / ".cydonia" / "sessions"],
        "turn-file": [turns],
    }


def test_a_source_that_is_switched_off_is_not_read(tmp_path: Path, project: Path) -> None:
    named = settings_file(tmp_path, "".join(f"[sources.{name}]\nenabled = false\n" for name in SOURCES))
    assert sources_for(load_settings(named)) == []
    with pytest.raises(InvalidArgument, match="switched off"):
        sources_for(load_settings(named, {"roots": [str(project)]}))


def test_every_source_that_lies_in_folders_has_its_settings() -> None:
    sources = load_settings().sources
    for kind in IN_FOLDERS:
        assert kind.name in SOURCES
        assert sources.in_folders(kind.name).folders is None


def test_a_root_is_of_a_source_that_knows_its_places_before_it_is_of_one_that_looks_everywhere(tmp_path: Path) -> None:
    home = tmp_path / "codex"
    rollouts.CodexHome(home).write(rollouts.meta())
    (home / "notes").mkdir()
    (home / "notes" / "a.turns.jsonl").write_text("")
    sources = sources_for(load_settings(flags={"roots": [str(home)], "discover": False}))
    assert [source.name for source in sources] == ["codex"]


def test_the_usual_folder_is_not_read_twice_where_it_lies_in_a_root(home: Path) -> None:
    usual = home / ".local" / "share" / "turndex" / "turns"
    usual.mkdir(parents=True)
    (usual / "a.turns.jsonl").write_text("")
    roots = roots_of(sources_for(load_settings(flags={"roots": [str(home / ".local")]})))
    assert roots["turn-file"] == [(home / ".local").resolve()]


def test_folders_of_claude_code_may_lie_in_each_other(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "projects"]
    (tmp_path / "a" / "projects").mkdir(parents=True)
    settings = load_settings(
        flags={"sources": {"claude_code": {"folders": list(map(str, folders))}}, "discover": False}
    )
    assert roots_of(sources_for(settings)) == {
        "claude-code": [tmp_path / "a" / "projects", tmp_path / "a" / "b" / "projects"]
    }


def test_a_folder_within_another_is_not_read_twice(tmp_path: Path, turns: Path) -> None:
    named = settings_file(tmp_path, f'[sources.turn-file]\nfolders = ["{turns}", "{turns}/", "{turns}/deep"]\n')
    assert roots_of(sources_for(load_settings(named, {"discover": False}))) == {"turn-file": [turns]}
