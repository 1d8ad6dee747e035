"""Results as they are kept: what was measured, on which machine, with which versions, when."""

import json
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("results")
LIBRARIES = ["turndex", "tantivy", "watchfiles", "orjson", "zstandard", "fastapi", "uvicorn", "mcp"]


def record(name: str, result: dict[str, Any], folder: Path = FOLDER) -> Path:
    """Write a result beside the earlier ones of its name; answers the file."""
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    path = folder / f"{name}-{now:%Y%m%dT%H%M%SZ}.json"
    document = {"benchmark": name, "at": f"{now:%Y-%m-%dT%H:%M:%SZ}", "machine": machine(), "result": result}
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def machine() -> dict[str, Any]:
    """The machine without its name."""
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "libraries": {library: version(library) for library in LIBRARIES},
    }


def percentiles(values_ms: Sequence[float]) -> dict[str, float]:
    """p50, p95, p99 and the largest, rounded to a microsecond."""
    # A single value is all of its percentiles.
    cuts = statistics.quantiles(values_ms, n=100, method="inclusive") if len(values_ms) > 1 else [*values_ms] * 99
    named = {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "max": max(values_ms)}
    return {name: round(value, 3) for name, value in named.items()}


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
