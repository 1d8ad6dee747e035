"""Numbers of sessions of several sources in the same projects: the oldest start first, and each for ever."""

import os
import shutil
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import SimpleNamespace
from uuid import UUID

import pytest

from indexer import heads
from indexer.pipeline import Pipeline
from indexer.service import Indexer
from indexer.sources.base import Transcript
from indexer.sources.claude_code import ClaudeCodeSource
from indexer.store.forgotten import Forgotten
from schemas.times import iso_utc
from search_api.archive import Archive
from tests.belonging.mixed import Mixed
from tests.indexer.archives import append, found_in, line_of, read_heads, session_of, sessions_of
from tests.indexer.archives import user as said
from tests.indexer.sources.claude_code.written import user as claude_user
from tests.indexer.sources.codex.rollouts import meta, user_item
from tests.indexer.sources.codex.rollouts import user as codex_user
from tests.waiting import wait_for

FIRST_MS = 1_790_000_000_000
PROJECTS = ("/home/a/cup", "/home/a/pan", "/home/a/spoon")


@dataclass
class Writer:
    """Writes sessions of all sources that have numbers of ours, and knows in which order they were started."""

    mixed: Mixed
    random: Random
    started: dict[str, list[tuple[int, str, str]]] = field(default_factory=dict)
    """By project: start, source and id of each session."""

    def write(self, count: int, *, after_ms: int = FIRST_MS) -> None:
        for _ in range(count):
            kind = self.random.choice([self.claude, self.codex, self.old_codex, self.document, self.turn_file])
            # Few values, so that some sessions start at the same time.
            at_ms = after_ms + self.random.randrange(20) * 1000
            project = self.random.choice(PROJECTS)
            source, session_id, path = kind(project, at_ms)
            read_s = self.random.randrange(FIRST_MS // 1000)
            os.utime(path, (read_s, read_s))
            self.started.setdefault(project, []).append((at_ms, source, session_id))

    def claude(self, project: str, at_ms: int) -> tuple[str, str, Path]:
        session = self._id()
        # The folder is the same for all, so that the order of keys is that of ids.
        written = self.mixed.claude.beside(f"-home-a/{session}.jsonl", sessionId=session, cwd=project)
        written.add(claude_user("zebra", uuid=session, timestamp=iso_utc(at_ms)))
        return "claude-code", session, written.path

    def codex(self, project: str, at_ms: int) -> tuple[str, str, Path]:
        thread = self._id()
        header = meta(thread, cwd=project, timestamp=iso_utc(at_ms))
        return "codex", thread, self.mixed.codex.write(header, *codex_user("zebra"), thread=thread)

    def old_codex(self, project: str, at_ms: int) -> tuple[str, str, Path]:
        """Of the generation that tells its directory only to the agent."""
        thread = self._id()
        header = {"id": thread, "timestamp": iso_utc(at_ms), "instructions": None}
        items = [one["payload"] for one in (_told(project), user_item("zebra"))]
        return "codex", thread, self.mixed.codex.write(header, *items, thread=thread)

    def document(self, project: str, at_ms: int) -> tuple[str, str, Path]:
        thread = self._id()
        path = self.mixed.codex.sessions / f"rollout-2025-04-30-{thread}.json"
        items = [one["payload"] for one in (_told(project), user_item("zebra"))]
        path.write_bytes(line_of({"session": {"id": thread, "timestamp": iso_utc(at_ms)}, "items": items}))
        return "codex", thread, path

    def turn_file(self, project: str, at_ms: int) -> tuple[str, str, Path]:
        session = self._id()
        path = self.mixed.transcripts.turn_file(session, said("zebra"), project=project, at=iso_utc(at_ms))
        return "turn-file", session, path

    def in_order(self) -> dict[str, int]:
        """The number of each session, were all of them found at once."""
        return {
            session_id: number
            for started in self.started.values()
            for number, (_, _, session_id) in enumerate(sorted(started), 1)
        }

    def _id(self) -> str:
        return str(UUID(int=self.random.getrandbits(128), version=4))


def _told(project: str) -> dict[str, dict[str, object]]:
    return user_item(f"<environment_context>\n<cwd>{project}</cwd>\n</environment_context>")


@pytest.fixture
def writer(mixed: Mixed, request: pytest.FixtureRequest) -> Writer:
    return Writer(mixed, Random(getattr(request, "param", 1)))


@pytest.mark.parametrize("writer", range(4), indirect=True)
def test_all_that_is_found_at_once_is_numbered_by_its_start_whatever_source_it_is_of(writer: Writer) -> None:
    mixed = writer.mixed
    writer.write(30)
    mixed.index()
    first = writer.in_order()
    assert mixed.numbers() == first
    mixed.index()
    assert mixed.numbers() == first
    for folder in (mixed.folder / "data").glob("index-*"):
        shutil.rmtree(folder)
    mixed.index()
    assert mixed.numbers() == first
    # What is found later follows, in the same order, also where it was started before.
    before = {project: len(sessions) for project, sessions in writer.started.items()}
    known, writer.started = writer.started, {}
    writer.write(15, after_ms=FIRST_MS - 10_000)
    project_of = {one: project for project, sessions in writer.started.items() for _, _, one in sessions}
    later = {one: before.get(project_of[one], 0) + number for one, number in writer.in_order().items()}
    mixed.index()
    assert mixed.numbers() == first | later
    # Elsewhere all of it is found at once.
    for project, sessions in known.items():
        writer.started.setdefault(project, []).extend(sessions)
    mixed.index("other")
    assert _numbers(mixed, "other") == writer.in_order()


@pytest.mark.parametrize("steps", [1, 5, 21, 23, 26])
def test_a_first_scan_that_ends_early_gives_the_same_numbers(
    writer: Writer, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.write(20)
    with monkeypatch.context() as sliced, closing(Pipeline(writer.mixed.settings())) as pipeline:
        sliced.setattr("indexer.pipeline.SLICE_SECONDS", 0.0)
        pipeline.look()
        for _ in range(steps):
            assert pipeline.step()
    writer.mixed.index()
    assert writer.mixed.numbers() == writer.in_order()


def test_the_numbers_are_there_before_any_content(writer: Writer) -> None:
    writer.write(20)
    with closing(Pipeline(writer.mixed.settings())) as pipeline:
        pipeline.look()
        read_heads(pipeline)
        assert _numbers(writer.mixed) == writer.in_order()
        assert not any(session.turns for session in sessions_of(writer.mixed.settings()).values())


def test_what_is_written_while_heads_are_read_is_found_and_gets_its_number_with_the_others(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.pipeline.SLICE_SECONDS", 0.0)
    settings = writer.mixed.settings()
    writer.write(10)
    live = writer.mixed.transcripts.turn_file("live", said("a giraffe"), project=PROJECTS[0], at=iso_utc(FIRST_MS - 1))
    writer.started.setdefault(PROJECTS[0], []).append((FIRST_MS - 1, "turn-file", "live"))
    with closing(Pipeline(settings)) as pipeline:
        pipeline.look()
        pipeline.changed([live])
        assert pipeline.step()
        assert pipeline.are_heads_due
        assert found_in(settings, "giraffe") == [("live", 1)]
        assert session_of(settings, "live").number is None
        read_heads(pipeline)
        assert _numbers(writer.mixed) == writer.in_order()


def test_two_live_turn_files_of_one_id_are_numbered_by_their_start(mixed: Mixed) -> None:
    for name, second in (("new", 5), ("old", 1), ("between", 3)):
        at = iso_utc(FIRST_MS + second * 1000)
        id_ = "between" if name == "between" else "a"
        mixed.transcripts.turn_file(name, said(f"zebra {name}"), id=id_, project=PROJECTS[0], at=at)
    mixed.index()
    kept = sessions_of(mixed.settings()).values()
    assert sorted((one.number, one.session_id) for one in kept if one.number) == [(1, "a"), (2, "between"), (3, "a")]
    assert ["zebra old" in mixed.text("cup#1"), "zebra new" in mixed.text("cup#3")] == [True, True]


def test_a_source_that_is_slow_keeps_the_others_from_being_read_for_a_while_only(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    slow: list[str] = []

    def slowly(source: ClaudeCodeSource, transcript: Transcript) -> None:
        nonlocal now
        now += heads.SOURCE_SECONDS
        slow.append(transcript.file)

    for _ in range(5):
        writer.claude(PROJECTS[0], FIRST_MS)
    for n in range(10):
        kind = writer.turn_file if n % 2 else writer.codex
        at_ms = FIRST_MS + writer.random.randrange(10**6)
        source, session_id, _ = kind(PROJECTS[1], at_ms)
        writer.started.setdefault(PROJECTS[1], []).append((at_ms, source, session_id))
    monkeypatch.setattr(ClaudeCodeSource, "facts", slowly)
    monkeypatch.setattr(heads, "time", SimpleNamespace(monotonic=lambda: now))
    writer.mixed.index()
    assert len(slow) == 1
    given, expected = _numbers(writer.mixed), writer.in_order()
    assert {session_id: given[session_id] for session_id in expected} == expected
    assert sorted(given[session_id] or 0 for session_id in given.keys() - expected.keys()) == [1, 2, 3, 4, 5]
    assert len(writer.mixed.all_found("zebra")) == 15


def test_a_source_whose_files_cannot_be_read_costs_the_others_nothing(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.write(20)
    readable = {
        project: [one for one in sessions if one[1] != "claude-code"] for project, sessions in writer.started.items()
    }

    def failing(source: ClaudeCodeSource, *given: object, **more: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as broken:
        broken.setattr(ClaudeCodeSource, "facts", failing)
        broken.setattr(ClaudeCodeSource, "read", failing)
        writer.mixed.index()
    writer.started = readable
    assert writer.mixed.numbers() == writer.in_order()


def test_a_session_that_is_found_live_gets_its_number_at_once(writer: Writer) -> None:
    settings = writer.mixed.settings()
    writer.write(5)
    indexer = Indexer(settings)
    indexer.start()
    try:
        wait_for(lambda: indexer.status().is_ready, "the first scan is done")
        known = len(writer.started.get(PROJECTS[0], ()))
        _, session, _ = writer.claude(PROJECTS[0], FIRST_MS - 1)
        wait_for(lambda: _numbers(writer.mixed).get(session) == known + 1, "it is read")
    finally:
        indexer.stop()


# Sessions that are in another project than before.


def test_a_codex_thread_whose_first_line_tells_no_directory_is_never_in_another_project(writer: Writer) -> None:
    for kind in (writer.old_codex, writer.document):
        kind(PROJECTS[0], FIRST_MS)
    writer.mixed.index()
    assert _projects(writer.mixed) == {PROJECTS[0]: 2, str(writer.mixed.project): 0}


def test_a_project_that_its_last_session_left_is_not_shown_and_its_number_still_names_the_session(
    mixed: Mixed,
) -> None:
    path = mixed.transcripts.turn_file("a", said("zebra"), project="/home/a/former")
    mixed.index()
    assert mixed.found("zebra", project="former") == [("a", 1)]
    append(path, {"type": "session", "project": "/home/a/pan"})
    mixed.index()
    assert _projects(mixed) == {"/home/a/pan": 1, str(mixed.project): 0}
    assert mixed.read("pan#1").session_id == "a"
    former = mixed.read("#1", project="/home/a/former")
    assert (former.session_id, former.reference) == ("a", "pan#1")


def test_a_claude_code_session_whose_directory_comes_late_leaves_no_project_behind(mixed: Mixed) -> None:
    mixed.claude.add(claude_user("zebra", cwd=None))
    mixed.index()
    stand_in = str(mixed.claude.folder)
    assert _projects(mixed) == {stand_in: 1, str(mixed.project): 0}
    mixed.claude.add(claude_user("giraffe", cwd=PROJECTS[1]))
    mixed.index()
    assert _projects(mixed) == {PROJECTS[1]: 1, str(mixed.project): 0}
    assert mixed.read("#1", project=stand_in).reference == "pan#1"


def test_a_project_whose_sessions_are_forgotten_is_not_shown(mixed: Mixed) -> None:
    path = mixed.transcripts.turn_file("a", said("zebra"), project=PROJECTS[1])
    mixed.index()
    with closing(Pipeline(mixed.settings())) as pipeline, pipeline._store.transaction():
        Forgotten(pipeline._store).remove([next(iter(sessions_of(mixed.settings()).values())).id], keeps_away=True)
    assert path.exists()
    assert _projects(mixed) == {str(mixed.project): 0}


def test_a_bare_number_that_one_session_has_in_two_projects_is_not_ambiguous(mixed: Mixed) -> None:
    moving = mixed.transcripts.turn_file("a", said("zebra"), project="/home/a/former", at=iso_utc(FIRST_MS))
    mixed.transcripts.turn_file("b", said("zebra"), project="/home/a/former", at=iso_utc(FIRST_MS + 1))
    mixed.index()
    append(moving, {"type": "session", "project": "/home/a/pan"})
    mixed.index()
    assert mixed.read("#1").session_id == mixed.read("former#1").session_id == mixed.read("pan#1").session_id == "a"


def _numbers(mixed: Mixed, data: str = "data") -> dict[str, int | None]:
    return {one.session_id: one.number for one in sessions_of(mixed.settings(data)).values()}


def _projects(mixed: Mixed) -> dict[str, int]:
    """How many sessions there are in each project that is shown; all of these are open."""
    with closing(Archive.open(mixed.settings())) as archive:
        projects = archive.projects().projects
    assert all(project.open for project in projects)
    return {project.path: project.sessions for project in projects}
