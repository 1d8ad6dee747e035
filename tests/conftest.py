"""What holds for every test: a home of its own, and the same examples from hypothesis each time."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.home import home_environment, move_into

settings.register_profile(
    "turndex", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("turndex")

# Fixtures of a wider scope run outside of any test's home; they get this one.
_shared_home = tempfile.TemporaryDirectory(prefix="turndex-tests-", ignore_cleanup_errors=True)
move_into(Path(_shared_home.name))


def pytest_unconfigure() -> None:
    _shared_home.cleanup()


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, where `HOME`, `XDG_*` and the agents' variables point during this test."""
    path = tmp_path_factory.mktemp("home")
    for name, value in home_environment(path, {}).items():
        monkeypatch.setenv(name, value)
    return path
