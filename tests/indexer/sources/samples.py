"""A small invented transcript of every source, for the tests that all sources share."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from indexer.sources.base import Root, Source
from indexer.sources.cydonia import CydoniaSource
from indexer.sources.turn_file import TurnFileSource
from schemas.sources import CLAUDE_CODE, CODEX, CYDONIA, TURN_FILE
from tests.indexer.archives import Transcripts, agent, user, write_record
from tests.indexer.sources.claude_code import written
from tests.indexer.sources.codex import rollouts


@dataclass(frozen=True)
class Sample:
    """One transcript of a source, in a root of its own; its agent says "The span is off by one."."""

    source: Source
    root: Root
    path: Path


def _cydonia(folder: Path) -> Sample:
    project = folder / "kettle"
    (project / ".cydonia" / "sessions").mkdir(parents=True)
    items = [{"User": "Fix the parser."}, {"Agent": "The span is off by one."}, {"User": "Thänks 🎉"}]
    path = write_record(project, "1790000000100", items=items)
    source = CydoniaSource(None, [project])
    return Sample(source, source.roots()[0], path)


def _turn_file(folder: Path) -> Sample:
    transcripts = Transcripts(folder)
    lines = [user("Fix the parser."), agent("The span is off by one."), user("Thänks 🎉")]
    path = transcripts.turn_file("a", *lines, at="2026-11-30T10:00:00Z")
    source = TurnFileSource([transcripts.turns])
    return Sample(source, source.roots()[0], path)


def _claude_code(folder: Path) -> Sample:
    session = written.written_in(folder / "claude")
    session.add(written.user("Fix the parser."), written.agent("The span is off by one."), written.user("Thänks 🎉"))
    return Sample(session.source, session.root, session.path)


def _codex(folder: Path) -> Sample:
    home = rollouts.CodexHome(folder / "codex")
    path = home.write(
        rollouts.meta(),
        *rollouts.user("Fix the parser."),
        rollouts.agent("The span is off by one."),
        *rollouts.user("Thänks 🎉"),
    )
    return Sample(home.source, home.root_of(path), path)


SAMPLES: dict[str, Callable[[Path], Sample]] = {
    CYDONIA: _cydonia,
    TURN_FILE: _turn_file,
    CLAUDE_CODE: _claude_code,
    CODEX: _codex,
}
"""By the name of the source, what writes it into an empty folder."""
