"""How long a look through the folders takes when nothing has changed in them, by source."""

import hashlib
import statistics
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from bench.ballast import Ballast, Written
from bench.claude_home import ClaudeHome
from bench.codex_home import CodexHome
from bench.corpus import FIRST_SECOND, PROJECTS, Json, corpus_settings
from bench.results import percentiles
from bench.transcripts import Transcript
from indexer.pipeline import Pipeline
from indexer.service import index_once
from indexer.survey import Survey
from schemas.sources import CLAUDE_CODE, CODEX

FILES = 10_000
"""As many as the goal is set for."""

LOOKS = 7
_SECONDS_APART = 600


def measure(folder: Path, *, files: int = FILES, looks: int = LOOKS) -> dict[str, Any]:
    """Write short transcripts below `folder`, index them, and look again and again; pages of files are cached."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "state.toml").write_text("projects = []\n", encoding="utf-8")
    _write(folder, files)
    return {source: _measure_source(folder, source, looks) for source in (CLAUDE_CODE, CODEX)}


def _measure_source(folder: Path, source: str, looks: int) -> dict[str, Any]:
    settings = corpus_settings(folder, folder / f"data-{source}", only=source)
    index_once(settings, lambda _: None)
    look_ms, command_ms = [], []
    with closing(Pipeline(settings)) as pipeline:
        for _ in range(looks):
            started = time.perf_counter()
            found = pipeline.look()
            look_ms.append((time.perf_counter() - started) * 1000)
            _check(found)
    for _ in range(looks):
        started = time.perf_counter()
        index_once(settings, lambda _: None)
        command_ms.append((time.perf_counter() - started) * 1000)
    return {"files": found.files, "raw_mb": round(found.bytes / 1e6, 1), "look_ms": percentiles(look_ms)} | {
        "seconds": round(statistics.median(look_ms) / 1000, 3),
        "index_ms": percentiles(command_ms),
    }


def _check(found: Survey) -> None:
    if found.changed:
        raise SystemExit(f"{len(found.changed)} of {found.files} files are said to have changed")


def _write(folder: Path, files: int) -> None:
    """As many files of each source: sessions of one turn, and what subagents and forks some of them have."""
    ballast = Ballast(1, "whole")
    draw = _drawing(ballast)
    digest = hashlib.sha256()
    for home in (
        ClaudeHome(folder / "claude", ballast, digest, lambda: next(draw)),
        CodexHome(folder / "codex", ballast, digest, lambda: next(draw)),
    ):
        written = Written()
        number = 0
        while written.files < files:
            number += 1
            written += home.write(_session(number, next(draw)))


def _drawing(ballast: Ballast) -> Iterator[list[Json]]:
    while True:
        prompt, answer = ballast.texts.paragraph(1), ballast.texts.paragraph(1)
        yield [{"type": "user", "text": prompt}, {"type": "agent", "text": answer}]


def _session(number: int, turn: list[Json]) -> Transcript:
    project = Path("/home/a", Random(number).choice(PROJECTS))
    at_ms = (FIRST_SECOND + number * _SECONDS_APART) * 1000
    return Transcript(project, f"rescan-{number}", str(project), f"Session {number}", at_ms, [turn], [at_ms])
