from pathlib import Path
from typing import Any

import pytest

from schemas.errors import InvalidArgument
from schemas.settings import Settings, default_config_file, load_settings, setting_names

DOCS = Path(__file__).parents[2] / "docs" / "settings.md"


def written(folder: Path, text: str) -> Path:
    path = folder / "settings.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_everything_lies_in_the_home_by_default(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name)
    settings = load_settings()
    assert settings.data_dir == home / ".local/share/turndex"
    assert settings.sources.cydonia.state_file == home / ".config/cydonia/state.toml"
    assert default_config_file() == home / ".config/turndex/config.toml"


def test_xdg_variables_move_data_and_settings(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    (home / "config/turndex").mkdir(parents=True)
    (home / "config/turndex/config.toml").write_text("[server]\nport = 7490\n", encoding="utf-8")
    settings = load_settings()
    assert settings.data_dir == home / "data/turndex"
    assert settings.server.port == 7490


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, "discover = false\n[server]\nport = 1\nhost = '::1'\ntoken = 'a-token-of-the-file'\n")
    monkeypatch.setenv("TURNDEX_SERVER__PORT", "2")
    monkeypatch.setenv("TURNDEX_SERVER__HOST", "127.0.0.2")
    server = load_settings(file, {"server": {"port": 3}}).server
    assert (server.port, server.host, server.token) == (3, "127.0.0.2", "a-token-of-the-file")
    assert not load_settings(file).discover


def test_a_source_is_written_as_it_is_called_or_with_an_underscore(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, "[sources.turn-file]\nfolders = ['/a', '~/b']\n")
    monkeypatch.setenv("TURNDEX_SOURCES__TURN_FILE__ENABLED", "false")
    turn_file = load_settings(file).sources.turn_file
    assert turn_file.folders == [Path("/a"), Path.home() / "b"]
    assert not turn_file.enabled


def test_lists_are_json_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNDEX_ROOTS", '["/a", "/b"]')
    assert load_settings().roots == [Path("/a"), Path("/b")]


def test_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings(flags={"data_dir": Path("here"), "roots": [Path("~/there")]})
    assert settings.data_dir == tmp_path / "here"
    assert settings.roots == [Path.home() / "there"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("colour = 'red'", "setting colour: there is no such setting"),
        ("[server]\ncolour = 'red'", "setting server.colour: there is no such setting"),
        ("[sources.turn-file]\ncolour = 'red'", "setting sources.turn_file.colour: there is no such setting"),
        ("[sources.pigeon]\nenabled = true", "setting sources.pigeon: there is no such setting"),
        ("[server]\nport = 65536", "setting server.port: "),
        ("[server]\ntoken = 'short'", "setting server.token: "),
        ("server = 3", "setting server: "),
        ("[[", "cannot be read"),
    ],
)
def test_a_settings_file_that_is_off_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        load_settings(written(tmp_path, text))
    assert says in refused.value.detail


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TURNDEX_COLOUR", "red"),
        ("TURNDEX_SERVER__COLOUR", "red"),
        ("TURNDEX_SERVER__PORT", "many"),
        ("TURNDEX_ROOTS", "/a"),
    ],
)
def test_a_variable_that_is_off_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InvalidArgument):
        load_settings()


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="cannot be read"):
        load_settings(tmp_path / "nowhere.toml")


def test_a_token_is_not_shown_with_the_settings() -> None:
    assert "a-secret-of-length" not in repr(load_settings(flags={"server": {"token": "a-secret-of-length"}}))


def test_every_setting_is_described_and_documented() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert {name for name in setting_names() if f"`{name}`" not in text} == set()
    assert list(_undescribed(Settings)) == []


def _undescribed(model: Any) -> list[str]:
    names: list[str] = []
    for name, field in model.model_fields.items():
        if hasattr(field.annotation, "model_fields"):
            names += _undescribed(field.annotation)
        elif not field.description:
            names.append(name)
    return names
