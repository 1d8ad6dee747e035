"""Settings: a TOML file, environment variables and flags, in rising order, declared here once.

The file is `~/.config/turndex/config.toml` or what `--config` names. An environment variable is
`TURNDEX_` and the setting's path in capitals, joined by two underscores: `TURNDEX_SERVER__PORT`; a
list is written as JSON there. Unknown keys are errors. docs/settings.md lists every setting.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from platformdirs.unix import Unix
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from schemas.errors import InvalidArgument, quoted

DEFAULT_PORT = 7480
LAST_WALKED_PORT = 7495
ENVIRONMENT_PREFIX = "TURNDEX_"
MIN_TOKEN_CHARS = 16


def default_data_dir() -> Path:
    """`~/.local/share/turndex`, or where `XDG_DATA_HOME` says; the same on macOS."""
    return Path(Unix("turndex", appauthor=False).user_data_dir)


def default_config_file() -> Path:
    """`~/.config/turndex/config.toml`, or where `XDG_CONFIG_HOME` says; the same on macOS."""
    return Path(Unix("turndex", appauthor=False).user_config_dir) / "config.toml"


def default_cydonia_state_file() -> Path:
    return Path.home() / ".config" / "cydonia" / "state.toml"


def default_codex_home() -> Path:
    """`~/.codex`, or where `CODEX_HOME` says."""
    return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")


def working_directory() -> Path:
    """
    Raises:
        InvalidArgument: it was deleted, so that nothing can be said from there.
    """
    try:
        return Path.cwd()
    except FileNotFoundError as gone:
        raise InvalidArgument("path", "the working directory was deleted; go to another, or pass whole paths") from gone


def absolute(path: Path) -> Path:
    """The path with `~` expanded and made absolute; symbolic links stay, and it need not exist."""
    path = path.expanduser()
    return path if path.is_absolute() else working_directory() / path


def resolved(path: Path) -> Path:
    """The path with `~`, symbolic links and trailing slashes resolved; it need not exist."""
    return Path(os.path.realpath(absolute(path)))


def _named(path: object) -> object:
    """An empty path would be the directory that a program happens to be started in."""
    if path == "":
        raise ValueError("an empty path names no folder")
    return path


ToolName = Literal["session_search", "session_read", "session_list"]

AbsolutePath = Annotated[Path, BeforeValidator(_named), AfterValidator(absolute)]


class Section(BaseModel):
    """A table of the settings file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ServerSettings(Section):
    """`[server]`"""

    host: str = Field(default="127.0.0.1", description="The address to bind; one that is not loopback needs a token.")
    port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="The port; 0 takes any free one. Unset: 7480, stepping over taken ones to 7495.",
    )
    token: str | None = Field(
        default=None,
        min_length=MIN_TOKEN_CHARS,
        repr=False,
        description="Every route but /healthz then needs `Authorization: Bearer` with it.",
    )
    allowed_hosts: list[str] = Field(default=[], description="Names that the Host header may carry besides loopback's.")


class CydoniaSettings(Section):
    """`[sources.cydonia]`"""

    enabled: bool = Field(default=True, description="Whether Cydonia's projects are indexed.")
    state_file: AbsolutePath = Field(
        default_factory=default_cydonia_state_file, description="The file in which Cydonia lists its open projects."
    )


class FolderSettings(Section):
    """A source whose transcripts lie in folders; where none are named, in its usual ones."""

    enabled: bool = True
    folders: list[AbsolutePath] | None = None


class TurnFileSettings(FolderSettings):
    """`[sources.turn-file]`"""

    enabled: bool = Field(default=True, description="Whether turn files are indexed.")
    folders: list[AbsolutePath] | None = Field(
        default=None,
        description="Folders with *.turns.jsonl at any depth. Unset: `turns` in the default data directory.",
    )


class ClaudeCodeSettings(FolderSettings):
    """`[sources.claude-code]`"""

    enabled: bool = Field(default=True, description="Whether Claude Code's transcripts are indexed.")
    folders: list[AbsolutePath] | None = Field(
        default=None,
        description="Folders that hold its `projects`. Unset: `CLAUDE_CONFIG_DIR`, or ~/.claude and ~/.config/claude.",
    )


class CodexSettings(FolderSettings):
    """`[sources.codex]`"""

    enabled: bool = Field(default=True, description="Whether Codex threads are indexed.")
    folders: list[AbsolutePath] | None = Field(
        default=None,
        description="Codex homes, with `sessions` and `archived_sessions` in them. Unset: CODEX_HOME, else ~/.codex.",
    )


class SourcesSettings(Section):
    """`[sources]`"""

    cydonia: CydoniaSettings = Field(default_factory=CydoniaSettings)
    turn_file: TurnFileSettings = Field(default_factory=TurnFileSettings)
    claude_code: ClaudeCodeSettings = Field(default_factory=ClaudeCodeSettings)
    codex: CodexSettings = Field(default_factory=CodexSettings)

    def in_folders(self, source: str) -> FolderSettings:
        """The section of a source whose transcripts lie in folders, by the source's name."""
        section = getattr(self, source.replace("-", "_"))
        assert isinstance(section, FolderSettings)
        return section


class HistorySettings(Section):
    """`[history]`"""

    keep_deleted: bool = Field(
        default=True,
        description="Whether a session stays when its agent deletes its file; else it is forgotten after a minute.",
    )


class AccessSettings(Section):
    """`[access]`"""

    projects: list[AbsolutePath] | None = Field(
        default=None,
        description="The only projects that any caller sees. Unset: all. The rest answers as if it did not exist.",
    )


class McpSettings(Section):
    """`[mcp]`"""

    tools: list[ToolName] = Field(
        default=["session_search", "session_read", "session_list"],
        description="The tools that MCP clients see; the others are not there.",
    )
    structured: bool = Field(
        default=False, description="Whether answers over MCP carry structured content beside the text, with schemas."
    )
    on_demand_minutes: float = Field(
        default=10.0,
        gt=0,
        description="How long a server that `turndex mcp` started goes on after the last call of its last client.",
    )


class LimitsSettings(Section):
    """`[limits]`"""

    search_seconds: float = Field(default=10.0, gt=0, description="A search that takes longer is ended with `timeout`.")
    regex_seconds: float = Field(
        default=5.0,
        gt=0,
        description="A search for an expression that takes longer says how far it got, with a cursor.",
    )
    concurrent_calls: int = Field(default=8, ge=1, description="Calls answered at once.")
    waiting_calls: int = Field(default=64, ge=0, description="Calls that may wait for their turn; one more is `busy`.")
    body_bytes: int = Field(default=1_000_000, ge=1, description="A larger request body is `too_large`.")
    body_seconds: float = Field(
        default=10.0, gt=0, description="A request body that takes longer to arrive is ended with `timeout`."
    )
    min_free_bytes: int = Field(
        default=2_000_000_000, ge=0, description="Indexing stops before less disk than this is free,"
    )
    min_free_share: float = Field(default=0.10, ge=0, lt=1, description="or less than this share of the disk.")


class IndexingSettings(Section):
    """`[indexing]`"""

    rescan_seconds: float = Field(
        default=60.0, gt=0, description="How often all folders are looked through without an event."
    )
    force_polling: bool = Field(
        default=False, description="Look through the folders every second instead of waiting for events."
    )


class Settings(BaseSettings):
    """All settings. `roots` and `discover` are what `--root` and `--no-discover` set.

    Arguments are flags: they win over the environment, and that over `file`, the tables of a settings file.
    """

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    data_dir: AbsolutePath = Field(
        default_factory=default_data_dir, description="Where store, index and vocabulary lie."
    )
    roots: list[AbsolutePath] = Field(
        default=[], description="More folders; each one's source is recognised from what is in it."
    )
    discover: bool = Field(
        default=True, description="Whether the usual places are looked in, or only `roots` and what the file names."
    )
    server: ServerSettings = Field(default_factory=ServerSettings)
    sources: SourcesSettings = Field(default_factory=SourcesSettings)
    history: HistorySettings = Field(default_factory=HistorySettings)
    access: AccessSettings = Field(default_factory=AccessSettings)
    mcp: McpSettings = Field(default_factory=McpSettings)
    limits: LimitsSettings = Field(default_factory=LimitsSettings)
    indexing: IndexingSettings = Field(default_factory=IndexingSettings)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        flags = init_settings()
        file = flags.pop("file", {})
        return InitSettingsSource(settings_cls, flags), env_settings, InitSettingsSource(settings_cls, file)


def load_settings(config_file: Path | None = None, flags: Mapping[str, Any] | None = None) -> Settings:
    """Read the settings from file, environment and `flags` (a tree of values, like the file's).

    Raises:
        InvalidArgument: a file that is named and not there or no TOML, an unknown key, or a value that is off.
    """
    _refuse_unknown_variables()
    try:
        values: dict[str, Any] = {**(flags or {}), "file": _read_file(config_file)}
        return Settings(**values)
    except SettingsError as error:
        raise InvalidArgument("environment", f"{error}; lists are written as JSON in the environment") from error
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in problem["loc"])
        says = "there is no such setting" if problem["type"] == "extra_forbidden" else problem["msg"]
        raise InvalidArgument(name, f"setting {quoted(name)}: {says}") from error


def setting_names(model: type[BaseModel] = Settings, prefix: str = "") -> list[str]:
    """The names of all settings, as a settings file nests them: `server.port`, `sources.turn-file.folders`."""
    names: list[str] = []
    for name, field in model.model_fields.items():
        path = prefix + name
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            names += setting_names(field.annotation, path.replace("_", "-") + ".")
        else:
            names.append(path)
    return names


def _read_file(config_file: Path | None) -> dict[str, Any]:
    path = config_file or default_config_file()
    if config_file is None and not path.is_file():
        return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidArgument("config", f"the settings file {path} cannot be read: {error}") from error
    return _with_underscores(values)


def _with_underscores(table: dict[str, Any]) -> dict[str, Any]:
    """The table with `turn-file`, as sources are called, spelled like a field: `turn_file`."""
    return {
        name.replace("-", "_"): _with_underscores(value) if isinstance(value, dict) else value
        for name, value in table.items()
    }


def _refuse_unknown_variables() -> None:
    """Refuse a variable with our prefix whose first part is no setting; pydantic checks the parts after it."""
    for variable in os.environ:
        first, _, _ = variable.removeprefix(ENVIRONMENT_PREFIX).partition("__")
        if variable.startswith(ENVIRONMENT_PREFIX) and first.lower() not in Settings.model_fields:
            raise InvalidArgument(variable, f"the environment variable {quoted(variable)} is no setting")
