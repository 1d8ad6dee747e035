"""What one more item costs in a turn that is already long, against the same in a short one."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

import orjson

from bench.corpus import FIRST_SECOND
from bench.texts import Texts
from indexer.pipeline import COMMIT_SECONDS, REREAD_SECONDS, Pipeline
from schemas.settings import Settings, load_settings
from schemas.times import iso_utc

SHORT, LONG = 100, 20_000

SAMPLES = 60
"""Items appended one at a time: about as many as one chunk takes, as its fill is what a write depends on."""

ATTEMPTS = 1_000

WHOLE_RECORD = (
    "a Cydonia record is written anew by Cydonia for each item, so that reading and comparing it costs what it"
    " holds; what is stored and indexed of it is what changed"
)

Save = Callable[[list[str]], None]


def measure(folder: Path, *, short: int = SHORT, long: int = LONG, samples: int = SAMPLES) -> dict[str, Any]:
    """Append item by item to one turn, at `short` and at `long` items; in process, until it can be searched for."""
    turn_file = _TurnFile(folder / "a")
    record = _Record(folder / "b")
    return {
        "short_items": short,
        "long_items": long,
        "turn_file": _compared(
            turn_file.settings, turn_file.path, turn_file.save, COMMIT_SECONDS, short, long, samples
        ),
        "whole_record": {
            "note": WHOLE_RECORD,
            **_compared(record.settings, record.path, record.save, REREAD_SECONDS, short, long, max(1, samples // 4)),
        },
    }


def _compared(
    settings: Settings, path: Path, save: Save, pause_s: float, short: int, long: int, samples: int
) -> dict[str, Any]:
    at_short, at_long = _costs(settings, path, save, pause_s, [short, long], samples)
    return {
        "samples": samples,
        "short": at_short.summary(),
        "long": at_long.summary(),
        "long_per_short": round(median(at_long.milliseconds) / median(at_short.milliseconds), 2),
        "long_per_short_processor": round(fmean(at_long.processor_ms) / fmean(at_short.processor_ms), 2),
        "long_per_short_written": round(fmean(at_long.written) / max(1, fmean(at_short.written)), 2),
    }


@dataclass
class _Costs:
    milliseconds: list[float]
    """From the end of the write of an item until it is stored and indexed."""
    processor_ms: list[float]
    """Of all threads of the process, for the same."""
    read: list[int]
    written: list[int]
    """Bytes handed to the system."""

    def summary(self) -> dict[str, float]:
        return {
            "ms_p50": round(median(self.milliseconds), 3),
            "ms_max": round(max(self.milliseconds), 3),
            "processor_ms_mean": round(fmean(self.processor_ms), 3),
            "read_bytes_mean": round(fmean(self.read)),
            "written_bytes_mean": round(fmean(self.written)),
        }


def _costs(
    settings: Settings, path: Path, save: Save, pause_s: float, lengths: list[int], samples: int
) -> list[_Costs]:
    pipeline = Pipeline(settings)
    try:
        pipeline.look()
        _run_dry(pipeline)
        saved = 0
        found = []
        for length in lengths:
            # The same texts at either length: what is compared differs in where it stands alone.
            texts = Texts(Random(length))
            before = [texts.sentence() for _ in range(length - 1 - saved)]
            texts = Texts(Random(1))
            added = [f"{texts.sentence()} {texts.log(300)}" for _ in range(samples)]
            save(before)
            _take(pipeline, path)
            found.append(_Costs([], [], [], []))
            for text in added:
                # What is written sooner is collected for a while, which is not what is measured here.
                time.sleep(pause_s)
                save([text])
                read, written = _bytes_moved()
                started, processor = time.perf_counter(), time.process_time()
                _take(pipeline, path)
                found[-1].milliseconds.append((time.perf_counter() - started) * 1000)
                found[-1].processor_ms.append((time.process_time() - processor) * 1000)
                now_read, now_written = _bytes_moved()
                found[-1].read.append(now_read - read)
                found[-1].written.append(now_written - written)
            saved = length - 1 + samples
        return found
    finally:
        pipeline.close()


def _take(pipeline: Pipeline, path: Path) -> None:
    pipeline.changed([path])
    _run_dry(pipeline)


def _run_dry(pipeline: Pipeline) -> None:
    while pipeline.step() or not (pipeline.is_idle and pipeline.is_ready):
        due = pipeline.next_due()
        if due is not None and due > time.monotonic():
            pipeline.schedule.wait(due)


def _bytes_moved() -> tuple[int, int]:
    """Bytes that this process has read and written so far, by its own count; zero where the system does not tell."""
    counts = Path("/proc/self/io")
    if not counts.is_file():
        return 0, 0
    named = dict(line.split(": ") for line in counts.read_text(encoding="ascii").splitlines())
    return int(named["rchar"]), int(named["wchar"])


class _TurnFile:
    """One turn in a turn file, appended to."""

    def __init__(self, folder: Path) -> None:
        (folder / "turns").mkdir(parents=True)
        self.path = folder / "turns" / "one.turns.jsonl"
        self.settings = _settings(folder)
        header = {"type": "session", "version": 1, "id": "one-turn", "project": str(folder), "title": "One turn"}
        self._append([{**header, "at": iso_utc(FIRST_SECOND * 1000)}, {"type": "user", "text": "Begin"}])

    def save(self, texts: list[str]) -> None:
        self._append([{"type": "agent", "text": text} for text in texts])

    def _append(self, lines: list[dict[str, Any]]) -> None:
        with self.path.open("ab") as file:
            file.write(b"".join(orjson.dumps(line) + b"\n" for line in lines))


class _Record:
    """One turn in a Cydonia record, which is written anew each time and put in the place of the old one."""

    def __init__(self, folder: Path) -> None:
        project = folder / "one"
        self.path = project / ".cydonia" / "sessions" / f"{FIRST_SECOND * 1000}.json"
        self.path.parent.mkdir(parents=True)
        (folder / "state.toml").write_bytes(b"projects = " + orjson.dumps([str(project)]) + b"\n")
        self.settings = _settings(folder)
        self._items: list[dict[str, Any]] = [{"User": "Begin"}]
        self.save([])

    def save(self, texts: list[str]) -> None:
        self._items += [{"Agent": text} for text in texts]
        body = {
            "id": self.path.stem,
            "agent": "Claude Agent",
            "session": None,
            "title": "One turn",
            "name": None,
            "updated": FIRST_SECOND + len(self._items),
            "closed": False,
            "items": self._items,
            "sent_at": {"0": FIRST_SECOND},
        }
        beside = self.path.with_suffix(".tmp")
        beside.write_bytes(orjson.dumps(body, option=orjson.OPT_INDENT_2))
        beside.replace(self.path)


def _settings(folder: Path) -> Settings:
    return load_settings(
        flags={
            "data_dir": str(folder / "data"),
            "discover": False,
            "limits": {"min_free_bytes": 0, "min_free_share": 0.0},
            "sources": {
                "cydonia": {"state_file": str(folder / "state.toml")},
                "turn_file": {"folders": [str(folder / "turns")]},
            },
        }
    )
