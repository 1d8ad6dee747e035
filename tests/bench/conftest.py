"""A tiny archive, made and scanned once, on which every benchmark is tried."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench import corpus, first_scan

TURNS = 50


@dataclass(frozen=True)
class Scanned:
    corpus: Path
    data_dir: Path
    scan: dict[str, Any]
    """What the benchmark of the first scan says of it."""


@pytest.fixture(scope="package")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> Scanned:
    folder = tmp_path_factory.mktemp("bench")
    corpus.generate(folder / "corpus", turns=TURNS)
    scan = first_scan.measure(folder / "corpus", folder / "data")
    return Scanned(folder / "corpus", folder / "data", scan)
