"""Results as they were kept, to be read again."""

import json
from pathlib import Path
from typing import Any

Document = dict[str, Any]
"""With `benchmark`, `at`, `machine` and `result`."""


def newest_first(name: str, folder: Path) -> list[Document]:
    """All results of one name; their file names end in the time."""
    return [json.loads(path.read_bytes()) for path in sorted(folder.glob(f"{name}-[0-9]*.json"), reverse=True)]


def by_turns(name: str, folder: Path) -> dict[int, Document]:
    """The newest result of each size of archive, the smallest first."""
    kept: dict[int, Document] = {}
    for document in newest_first(name, folder):
        kept.setdefault(document["result"]["turns"], document)
    return dict(sorted(kept.items()))
