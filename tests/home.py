"""A home of its own for the product under test: whatever a user keeps on this machine is out of reach."""

import os
from collections.abc import Mapping
from pathlib import Path

_OURS = ("TURNDEX_", "XDG_", "CLAUDE_", "CODEX_")


def home_environment(home: Path, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment (by default this process's) in which every place that turndex looks at lies in `home`."""
    kept = {name: value for name, value in (environment or os.environ).items() if not name.startswith(_OURS)}
    return kept | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_RUNTIME_DIR": str(home / ".runtime"),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "CODEX_HOME": str(home / ".codex"),
    }


def move_into(home: Path) -> None:
    """Give this process the environment of `home`."""
    environment = home_environment(home)
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)
