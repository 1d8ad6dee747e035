"""Settings: a TOML file, environment variables and flags, in rising order, declared here once.

The file is `~/.config/turndex/config.toml` or what `--config` names. An environment variable is
`TURNDEX_` and the setting's path in capitals, joined by two underscores: `TURNDEX_SERVER__PORT`.
Unknown keys are errors.
"""

import os
import tomllib
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from schemas.errors import InvalidArgument, quoted

DEFAULT_PORT = 7480
LAST_WALKED_PORT = 7495


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ServerSettings(Section):
    """`[server]`"""

    host: str = Field("127.0.0.1", description="The address to bind; one that is not loopback needs a token.")
    port: int | None = Field(
        None, ge=0, le=65535, description="The port; 0 takes any free one. Unset: 7480, stepping over taken ones up to 7495."
    )
    token: str | None = Field(None, min_length=16, description="Every route but /healthz then needs `Authorization: Bearer`.")
    allowed_hosts: list[str] = Field([], description="Names that the Host header may carry besides loopback's.")


class CydoniaSettings(Section):
    """`[sources.cydonia]`"""

    enabled: bool = Field(True, description="Whether Cydonia's projects are indexed.")
    state_file: Path = Field(
        Path("~/.config/cydonia/state.toml"), description="The file in which Cydonia lists its open projects."
    )


class TurnFileSettings(Section):
    """`[sources.turn-file]`"""

    enabled: bool = Field(True, description="Whether turn files are indexed.")
    folders: list[Path] | None = Field(
        None, description="Folders with *.turns.jsonl at any depth. Unset: `turns` in the default data directory."
    )


class SourcesSettings(Section):
    """`[sources]`"""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    cydonia: CydoniaSettings = CydoniaSettings()
    turn_file: TurnFileSettings = Field(TurnFileSettings(), alias="turn-file")


class AccessSettings(Section):
    """`[access]`"""

    projects: list[Path] | None = Field(
        None, description="The only projects that any caller sees. Unset: all. The rest answers as if it did not exist."
    )


class LimitsSettings(Section):
    """`[limits]`"""

    search_seconds: float = Field(10.0, gt=0, description="A search that takes longer is ended with `timeout`.")
    concurrent_calls: int = Field(8, ge=1, description="Calls answered at once.")
    waiting_calls: int = Field(64, ge=0, description="Calls that may wait for their turn; one more is `busy`.")
    body_bytes: int = Field(1_000_000, ge=1, description="A larger request body is `too_large`.")
    min_free_bytes: int = Field(2_000_000_000, ge=0, description="Indexing stops before less disk than this is free,")
    min_free_share: float = Field(0.10, ge=0, lt=1, description="or less than this share of the disk.")


class IndexingSettings(Section):
    """`[indexing]`"""

    rescan_seconds: float = Field(60.0, gt=0, description="How often all folders are looked through without an event.")
    force_polling: bool = Field(False, description="Look through the folders every second instead of waiting for events.")


class Settings(BaseSettings):
    """All settings. `roots` and `discover` are what `--root` and `--no-discover` set."""

    model_config = SettingsConfigDict(
        env_prefix="TURNDEX_", env_nested_delimiter="__", extra="forbid", frozen=True, nested_model_default_partial_update=True
    )

    data_dir: Path = Field(
        Path(platformdirs.user_data_dir("turndex", appauthor=False)), description="Where store, index and vocabulary lie."
    )
    roots: list[Path] = Field([], description="More folders; the source of each is recognised from what lies in it.")
    discover: bool = Field(True, description="Whether the usual places are looked for, or only `roots` and what the file names.")
    server: ServerSettings = ServerSettings()
    sources: SourcesSettings = SourcesSettings()
    access: AccessSettings = AccessSettings()
    limits: LimitsSettings = LimitsSettings()
    indexing: IndexingSettings = IndexingSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags win over the environment, and that over the file."""
        return _Flags(settings_cls, init_settings()["flags"]), env_settings, _Flags(settings_cls, init_settings()["file"])


class _Flags(PydanticBaseSettingsSource):
    """A tree of values that were read already."""

    def __init__(self, settings_cls: type[BaseSettings], values: dict[str, Any]) -> None:
        super().__init__(settings_cls)
        self._values = values

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        return self._values.get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        return self._values


def default_config_file() -> Path:
    return Path(platformdirs.user_config_dir("turndex", appauthor=False)) / "config.toml"


def load_settings(config_file: Path | None = None, flags: dict[str, Any] | None = None) -> Settings:
    """Read the settings from file, environment and `flags` (a tree of values, like the file's).

    Raises:
        InvalidArgument: a file that is named and not there or no TOML, an unknown key, or a value that is off.
    """
    path = config_file or default_config_file()
    values: dict[str, Any] = {}
    if config_file is not None or path.is_file():
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InvalidArgument("config", f"the settings file {path} cannot be read: {error}") from error
    try:
        settings = Settings(flags=flags or {}, file=values)  # type: ignore[call-arg]  # consumed by the two sources above
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in problem["loc"])
        raise InvalidArgument(name, f"setting {quoted(name)}: {problem['msg']}") from error
    return settings


def resolved(path: Path) -> Path:
    """The path with `~`, symbolic links and trailing slashes resolved; it need not exist."""
    return Path(os.path.realpath(path.expanduser()))
