"""What a room may bring along when it is imported."""

import subprocess
import sys


def test_the_command_line_searches_without_loading_the_web() -> None:
    script = "import sys, search_api.cli; print([m for m in ('fastapi', 'starlette', 'uvicorn') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
