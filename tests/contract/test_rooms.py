"""What a room may bring along when it is imported."""

import subprocess
import sys

HEAVY = ("fastapi", "httpx2", "mcp", "mcp_types", "starlette", "uvicorn")


def test_the_command_line_searches_without_loading_the_web_or_mcp() -> None:
    script = f"import sys, search_api.cli; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
