"""The reference inspector of MCP, in its command-line mode."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.home import home_environment

INSPECTOR = Path(sys.prefix, "inspector", "node_modules", ".bin", "mcp-inspector")


def inspected(home: Path, server: Sequence[str], *words: str) -> Any:
    """What the inspector prints of a server: a URL with its transport, or a program."""
    command = [str(INSPECTOR), "--cli", *server, *words]
    done = subprocess.run(
        command, env=home_environment(home), cwd=home, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
