from pathlib import Path

import pytest

from tests.indexer.sources.claude_code.written import Written, written_in


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return written_in(tmp_path / "claude")
