"""What every source promises, whatever its format; a new one is tested by adding its sample."""

import os
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from indexer.sources import sources_for
from indexer.sources.base import Transcript, Unreadable, Unsettled, Waiting
from schemas.settings import Settings, load_settings
from schemas.sources import SOURCES
from tests.indexer.archives import contents, found_in, index, sessions_of
from tests.indexer.sources.model import StoredSession, transcript_of
from tests.indexer.sources.samples import SAMPLES, Sample

DOCS = Path(__file__).parents[3] / "docs"
NEVER_MS = 10**9


@pytest.fixture(params=list(SAMPLES))
def sample(request: pytest.FixtureRequest, tmp_path: Path) -> Sample:
    return SAMPLES[request.param](tmp_path / "written")


def listed(sample: Sample) -> list[Transcript]:
    return list(sample.source.transcripts(sample.root))


def other_name(sample: Sample) -> Path:
    """Beside the transcript, the name of another one: its id ends the name, but for what follows a dot."""
    stem, _, ending = sample.path.name.partition(".")
    other = sample.path.with_name(f"{stem[:-1]}{'2' if stem[-1] != '2' else '3'}.{ending}")
    assert sample.source.owns(sample.root, other)
    return other


def read_whole(sample: Sample) -> StoredSession:
    session = StoredSession()
    session.apply_all(sample.source.read(transcript_of(sample.path, sample.root), None, settle_ms=0))
    return session


def settings(sample: Sample, tmp_path: Path) -> Settings:
    root = sample.root.project or sample.root.path
    return load_settings(
        flags={
            "data_dir": str(tmp_path / "data"),
            "roots": [str(root)],
            "discover": False,
            "limits": {"min_free_bytes": 0, "min_free_share": 0.0},
        }
    )


def test_every_source_has_a_sample_and_is_documented() -> None:
    assert list(SAMPLES) == list(SOURCES)
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    described = (DOCS / "settings.md").read_text(encoding="utf-8")
    arguments = (DOCS / "http.md").read_text(encoding="utf-8").splitlines()
    (source_argument,) = [line for line in arguments if line.startswith("| `source` |")]
    architecture = (DOCS / "architecture.md").read_text(encoding="utf-8")
    for name in SOURCES:
        assert f"| `{name}` |" in readme
        assert f"`sources.{name}.enabled`" in described
        assert f"`{name}`" in source_argument
        assert f"`sources/{name.replace('-', '_')}" in architecture


def test_a_transcript_is_listed_and_owned(sample: Sample) -> None:
    assert [transcript.path for transcript in listed(sample)] == [sample.path]
    assert sample.source.owns(sample.root, sample.path)
    assert not sample.source.owns(sample.root, sample.path.with_name("notes.txt"))
    assert sample.root.path in [root.path for root in sample.source.roots()]


def test_a_root_that_is_missing_is_an_error_and_no_empty_one(sample: Sample) -> None:
    for path in sorted(sample.root.path.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    sample.root.path.rmdir()
    with pytest.raises(OSError):
        listed(sample)


def test_the_head_tells_the_same_session_as_the_whole(sample: Sample) -> None:
    facts, read = sample.source.facts(transcript_of(sample.path, sample.root)), read_whole(sample).facts
    assert read is not None
    if facts is not None:
        told = (facts.key, facts.session_id, facts.project, facts.started_ms, facts.parent_id)
        assert told == (read.key, read.session_id, read.project, read.started_ms, read.parent_id)


def test_the_whole_is_read(sample: Sample) -> None:
    turns = read_whole(sample).turns
    texts = [[item.text for item in turn.items] for turn in turns]
    assert texts == [["Fix the parser.", "The span is off by one."], ["Thänks 🎉"]]


def test_with_nothing_new_there_are_no_parts(sample: Sample) -> None:
    session = read_whole(sample)
    assert list(sample.source.read(transcript_of(sample.path, sample.root), session.checkpoint, settle_ms=0)) == []


@pytest.mark.parametrize("seed", range(5))
def test_pieces_cut_anywhere_come_to_the_same_as_the_whole(sample: Sample, seed: int) -> None:
    whole, content, random = read_whole(sample), sample.path.read_bytes(), Random(seed)
    session = StoredSession()
    cuts = sorted(random.sample(range(len(content)), 12))
    sample.path.write_bytes(b"")
    for cut in [*cuts, len(content)]:
        if sample.source.is_whole_record:
            sample.path.write_bytes(content[:cut])
        else:
            with sample.path.open("ab") as file:
                file.write(content[sample.path.stat().st_size : cut])
        with suppress(Unsettled, Waiting, Unreadable):
            transcript = transcript_of(sample.path, sample.root)
            session.apply_all(sample.source.read(transcript, session.checkpoint, settle_ms=NEVER_MS))
    assert (session.turns, session.facts) == (whole.turns, whole.facts)


def test_reading_touches_nothing(sample: Sample) -> None:
    def state() -> dict[Path, tuple[int, int, int]]:
        return {
            path: (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
            for path in [sample.root.path, *sample.root.path.rglob("*")]
            for stat in [os.lstat(path)]
        }

    before = state()
    listed(sample)
    sample.source.facts(transcript_of(sample.path, sample.root))
    read_whole(sample)
    assert state() == before


def test_a_root_is_recognised_from_what_lies_in_it(sample: Sample, tmp_path: Path) -> None:
    assert [source.name for source in sources_for(settings(sample, tmp_path))] == [sample.source.name]


def test_it_is_found_read_and_kept_when_it_is_deleted(sample: Sample, tmp_path: Path) -> None:
    known = settings(sample, tmp_path)
    index(known)
    ((found, turn),) = found_in(known, "OFF BY one")
    before = contents(known)
    index(known)
    assert (turn, contents(known)) == (1, before)
    sample.path.rename(tmp_path / "away")
    other_name(sample).write_bytes(b"")  # so that the folder is not empty
    index(known)
    assert found_in(known, "OFF BY one") == [(found, 1)]
    assert [session.is_deleted for session in sessions_of(known).values()] == [True]
