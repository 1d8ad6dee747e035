from pathlib import Path

import pytest

from tests.belonging.mixed import Mixed


@pytest.fixture
def mixed(tmp_path: Path) -> Mixed:
    return Mixed(tmp_path)
