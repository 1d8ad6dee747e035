"""What a room may bring along when it is imported."""

import subprocess
import sys
from pathlib import Path

HEAVY = ("fastapi", "httpx2", "mcp", "mcp_types", "starlette", "uvicorn")

UNNEEDED = (
    *HEAVY,
    *("rich", "watchfiles", "re2", "search_api.words_search"),
    *("indexer.sources.claude_code.transcript", "indexer.sources.codex.rollout"),
)
"""What a search for a text does without where no transcript changed: half of its time is spent on importing."""

SEARCH = f"""
import sys
from search_api.cli import main
try:
    main()
finally:
    print([name for name in {UNNEEDED} if name in sys.modules])
"""

SESSION = (
    '{"type":"session","version":1,"id":"kettle-1","project":"/home/a/kettle","at":"2026-11-30T10:00:00Z"}\n'
    '{"type":"user","text":"The lid is off."}\n'
)


def test_the_command_line_searches_without_loading_the_web_or_mcp() -> None:
    script = f"import sys, search_api.cli; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_a_search_of_what_is_indexed_loads_nothing_that_reads_transcripts(tmp_path: Path) -> None:
    turns = tmp_path / "turns"
    turns.mkdir()
    (turns / "kettle.turns.jsonl").write_text(SESSION)
    words = ("search", "the lid", "--project", "*", "--root", str(turns), "--data-dir", str(tmp_path / "data"))
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", SEARCH, *words], capture_output=True, text=True, timeout=60, check=True
        )
    hit, loaded = done.stdout.splitlines()
    assert (hit, loaded) == ("kettle#1:1 (untitled) — The lid is off.", "[]")
