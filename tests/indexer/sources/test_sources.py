from pathlib import Path

import pytest

from indexer.sources import sources_for
from indexer.sources.base import Source
from schemas.errors import InvalidArgument
from schemas.settings import load_settings
from schemas.sources import SOURCES


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
    assert [list(source.state_files()) for source in sources] == [
        [state],
        [],
        [home / ".codex" / "session_index.jsonl"],
    ]
    assert roots_of(sources)["cydonia"] == [project / ".cydonia" / "sessions"]
    assert [folder.parts[-2:] for folder in roots_of(sources)["turn-file"]] == [("turndex", "turns")]


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


def test_a_folder_within_another_is_not_read_twice(tmp_path: Path, turns: Path) -> None:
    named = settings_file(tmp_path, f'[sources.turn-file]\nfolders = ["{turns}", "{turns}/", "{turns}/deep"]\n')
    assert roots_of(sources_for(load_settings(named, {"discover": False}))) == {"turn-file": [turns]}
