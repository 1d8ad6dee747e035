from pathlib import Path

import pytest

from tests.indexer.sources.codex.rollouts import CodexHome


@pytest.fixture
def codex(tmp_path: Path) -> CodexHome:
    return CodexHome(tmp_path / "codex")
