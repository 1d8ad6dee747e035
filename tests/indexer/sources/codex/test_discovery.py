from pathlib import Path

import pytest
import zstandard

from indexer.sources import sources_for
from indexer.sources.base import Unreadable, Unsettled, Waiting
from indexer.sources.codex import source as source_module
from schemas.errors import InvalidArgument
from schemas.settings import load_settings
from tests.indexer.sources.codex.rollouts import (
    OTHER,
    START,
    THREAD,
    CodexHome,
    ReadSession,
    agent,
    encoded,
    file_name,
    meta,
    touch_later,
    user,
)
from tests.indexer.sources.model import snapshot, transcript_of

LINES = [meta(), *user("One"), agent("a")]


def test_rollouts_are_found_at_any_depth_below_both_folders(codex: CodexHome) -> None:
    ids = [f"{THREAD[:-1]}{number}" for number in range(4)]
    codex.archived.mkdir()
    (codex.archived / "deep").mkdir()
    found = [
        codex.sessions / file_name(ids[0]),
        codex.day / f"{file_name(ids[1])}.zst",
        codex.archived / file_name(ids[2]),
        codex.archived / "deep" / file_name(ids[3]),
    ]
    others = [
        codex.path / "history.jsonl",
        codex.path / "session_index.jsonl",
        codex.path / "state_5.sqlite",
        codex.path / "thread_history_1.sqlite",
        codex.path / ".tmp" / file_name(OTHER),
        codex.path / "log" / file_name(OTHER),
        codex.path / file_name(OTHER),
        codex.day / "notes.jsonl",
        codex.day / "rollout-compress-1.tmp",
        codex.day / f"{file_name(OTHER)}.bak",
        codex.day / "package.json",
        codex.day / "rollout-plan.json",
    ]
    for path in [*found, *others]:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    assert sorted(codex.listed()) == sorted(found)
    assert all(codex.source.owns(codex.root_of(path), path) for path in found)
    assert not any(
        codex.source.owns(codex.root_of(path), path) for path in others if path.is_relative_to(codex.sessions)
    )


def test_both_folders_of_a_home_are_roots_and_its_index_of_names_is_watched(codex: CodexHome) -> None:
    assert [root.path for root in codex.source.roots()] == [codex.sessions, codex.archived]
    assert [root.is_named for root in codex.source.roots()] == [True, False]
    assert codex.source.state_files() == [codex.path / "session_index.jsonl"]
    assert codex.source.listed_projects() is None


def test_a_plain_file_wins_over_its_compressed_one_and_goes_on_from_it(codex: CodexHome) -> None:
    path = codex.write(*LINES)
    packed = path.with_name(f"{path.name}.zst")
    packed.write_bytes(zstandard.compress(path.read_bytes()))
    assert codex.listed() == [path]
    assert not codex.source.owns(codex.root_of(packed), packed)
    (part,) = codex.source.read(transcript_of(path, codex.root_of(path)), None, settle_ms=0)
    assert part.supersedes == [packed]
    path.unlink()
    assert codex.listed() == [packed]
    assert codex.read(packed).texts == [["One", "a"]]


@pytest.mark.parametrize("is_archived_newer", [True, False])
def test_of_an_archived_and_an_active_copy_the_one_with_the_newest_line_wins(
    codex: CodexHome, is_archived_newer: bool
) -> None:
    active = codex.write(*LINES)
    codex.archived.mkdir()
    archived = codex.archived / active.name
    archived.write_bytes(encoded(LINES))
    newer, older = (archived, active) if is_archived_newer else (active, archived)
    codex.append(newer, agent("b"))
    touch_later(older)
    assert codex.listed() == [newer]
    assert list(codex.source.read(transcript_of(older, codex.root_of(older)), None)) == []
    assert codex.read(newer).texts == [["One", "a", "b"]]


def test_archiving_keeps_the_identity_and_is_told(codex: CodexHome) -> None:
    path = codex.write(*LINES)
    before = codex.read(path).facts
    codex.archived.mkdir()
    moved = path.rename(codex.archived / path.name)
    after = codex.read(moved).facts
    assert before is not None and after is not None
    assert (before.key, before.is_archived) == (THREAD, False)
    assert (after.key, after.is_archived) == (THREAD, True)


def test_the_head_of_a_file_tells_of_its_session_without_reading_more(codex: CodexHome) -> None:
    path = codex.write(meta(git={"branch": "main"}), b"not JSON")
    facts = codex.source.facts(transcript_of(path, codex.root_of(path)))
    assert facts is not None
    assert (facts.key, facts.session_id, facts.project) == (THREAD, THREAD, Path("/home/a/kettle"))
    assert (facts.agent, facts.agent_id, facts.title, facts.started_ms) == ("Codex", "codex", "", START - 1000)


@pytest.mark.parametrize("head", [b"", b"{", b'{"type":"event_msg","payload":{}}\n', b"[]\n"])
def test_a_head_that_is_none_tells_nothing(codex: CodexHome, head: bytes) -> None:
    path = codex.write()
    path.write_bytes(head)
    assert codex.source.facts(transcript_of(path, codex.root_of(path))) is None


@pytest.mark.parametrize("content", [b"", b"\n", b'{"type":"session_meta","payl', b"not JSON\n"])
def test_a_file_without_header_and_message_is_no_session(codex: CodexHome, content: bytes) -> None:
    path = codex.write()
    path.write_bytes(content)
    with pytest.raises(Waiting):
        codex.read(path)


def test_a_file_with_a_header_and_no_message_is_a_session_without_turns(codex: CodexHome) -> None:
    session = codex.session()
    assert session.facts is not None and session.turns == []


def test_reading_changes_nothing_beside_the_files(codex: CodexHome) -> None:
    path = codex.write(*LINES)
    before = snapshot(codex.path)
    codex.listed()
    codex.read(path)
    assert snapshot(codex.path) == before


def test_a_torn_last_line_is_read_once_it_is_complete(codex: CodexHome) -> None:
    raw = encoded([*LINES, agent("b é")])
    path = codex.write()
    session = ReadSession()
    path.write_bytes(raw[:-6])
    with pytest.raises(Unsettled):
        codex.read_on(path, session, settle_ms=60_000)
    assert session.texts == [["One", "a"]]
    path.write_bytes(raw)
    codex.read_on(path, session)
    assert session.texts == [["One", "a", "b é"]]


def test_a_compressed_file_of_several_frames_is_one_file(codex: CodexHome) -> None:
    raw = encoded(LINES)
    path = codex.day / f"{file_name()}.zst"
    path.write_bytes(zstandard.compress(raw[:700]) + zstandard.compress(raw[700:]))
    assert codex.read(path).texts == [["One", "a"]]


def test_a_compressed_file_with_a_window_of_128_megabytes_is_read(codex: CodexHome) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    path = codex.day / f"{file_name()}.zst"
    path.write_bytes(zstandard.ZstdCompressor(compression_params=parameters).compress(encoded(LINES)))
    assert codex.read(path).texts == [["One", "a"]]


def test_a_compressed_file_is_read_on_after_any_of_its_parts(codex: CodexHome, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [*LINES, *(one for number in range(20) for one in (*user(f"More {number} é"), agent("x" * 500)))]
    whole = codex.read(codex.write(*lines))
    path = codex.day / f"{file_name()}.zst"
    path.write_bytes(zstandard.compress(encoded(lines)))
    (codex.day / file_name()).unlink()
    monkeypatch.setattr(source_module, "PART_BYTES", 1000)
    session = ReadSession()
    count = 0
    while part := next(iter(codex.source.read(transcript_of(path, codex.root_of(path)), session.checkpoint)), None):
        session.apply(part)
        count += 1
    assert session.state == whole.state
    assert count > 10


def test_a_damaged_compressed_file_is_read_up_to_the_damage(codex: CodexHome) -> None:
    path = codex.day / f"{file_name()}.zst"
    path.write_bytes(zstandard.compress(encoded(LINES)) + b"not zstd at all")
    session = ReadSession()
    with pytest.raises(Unreadable, match="zstd"):
        codex.read_on(path, session)
    assert session.texts == [["One", "a"]]
    more = codex.session(*LINES[1:], *user("Two"))
    more.checkpoint = None
    (codex.day / file_name()).unlink()
    with pytest.raises(Unreadable, match="zstd"):
        codex.read_on(path, more)
    assert more.texts == [["One", "a"], ["Two"]]
    path.write_bytes(b"not zstd at all")
    with pytest.raises(Unreadable, match="zstd"):
        codex.read(path)


def test_the_usual_home_is_looked_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def roots() -> list[Path]:
        (source,) = [source for source in sources_for(load_settings()) if source.name == "codex"]
        return [root.path for root in source.roots()]

    assert roots() == [home / ".codex" / "sessions", home / ".codex" / "archived_sessions"]
    monkeypatch.setenv("CODEX_HOME", str(home / "other"))
    assert roots()[0] == home / "other" / "sessions"
    monkeypatch.delenv("CODEX_HOME")
    assert roots()[0] == home / ".codex" / "sessions"


@pytest.mark.parametrize("name", ["", "sessions"])
def test_a_home_is_recognised_from_what_lies_in_it(codex: CodexHome, name: str) -> None:
    codex.write(*LINES)
    settings = load_settings(flags={"roots": [str(codex.path / name)], "discover": False})
    (source,) = sources_for(settings)
    assert [root.path for root in source.roots()] == [codex.sessions, codex.archived]


def test_a_home_of_another_program_that_writes_the_same_files_can_be_named(tmp_path: Path) -> None:
    other = CodexHome(tmp_path / ".trae" / "cli")
    path = other.write(*LINES)
    (source,) = sources_for(load_settings(flags={"roots": [str(other.path)], "discover": False}))
    assert [one.path for root in source.roots()[:1] for one in source.transcripts(root)] == [path]


def test_a_thread_stays_where_it_began_however_many_days_it_goes_on(codex: CodexHome) -> None:
    path = codex.write(*LINES)
    session = codex.read(path)
    codex.append(path, *user("Two days later"), first=200_000)
    codex.read_on(path, session)
    assert session.texts == [["One", "a"], ["Two days later"]]
    assert session.facts is not None and session.facts.started_ms == START - 1000


def test_a_home_can_be_named_or_switched_off(codex: CodexHome, tmp_path: Path) -> None:
    codex.write(*LINES)
    file = tmp_path / "config.toml"
    file.write_text(f'[sources.codex]\nfolders = ["{codex.path}"]\n')
    (source,) = sources_for(load_settings(file, {"discover": False}))
    assert [root.path for root in source.roots()] == [codex.sessions, codex.archived]
    file.write_text("[sources.codex]\nenabled = false\n")
    assert "codex" not in [source.name for source in sources_for(load_settings(file))]
    with pytest.raises(InvalidArgument, match="switched off"):
        sources_for(load_settings(file, {"roots": [str(codex.path)]}))
