"""Threads in the store and index: one session each, wherever and in how many files they lie."""

from pathlib import Path

import pytest
import zstandard

from schemas.settings import Settings, load_settings
from tests.indexer.archives import found_in, index, session_of, sessions_of, status_of, texts_of
from tests.indexer.sources.codex.rollouts import (
    OTHER,
    THREAD,
    CodexHome,
    Line,
    agent,
    call,
    complete,
    context,
    encoded,
    line,
    meta,
    output,
    started,
    user,
)

LINES: list[Line | bytes] = [meta(), started("T1"), *user("Fix the parser"), context("T1"), agent("The span is off")]


@pytest.fixture
def settings(codex: CodexHome, tmp_path: Path) -> Settings:
    codex.write(*LINES)
    return load_settings(
        flags={
            "data_dir": str(tmp_path / "data"),
            "roots": [str(codex.path)],
            "discover": False,
            "limits": {"min_free_bytes": 0, "min_free_share": 0.0},
        }
    )


def test_a_thread_is_found_and_read(settings: Settings) -> None:
    index(settings)
    assert found_in(settings, "span is off") == [(THREAD, 1)]
    assert texts_of(settings, THREAD) == [["Fix the parser", "The span is off"]]
    session = session_of(settings, THREAD)
    assert (session.title, session.number) == ("Fix the parser", 1)


def test_a_thread_that_grows_is_read_on(codex: CodexHome, settings: Settings) -> None:
    index(settings)
    codex.append(codex.day.iterdir().__next__(), call("exec_command", {"cmd": "ls"}), output("a.rs"), complete("T1"))
    index(settings)
    assert texts_of(settings, THREAD) == [["Fix the parser", "The span is off", "shell: ls"]]
    assert found_in(settings, "a.rs", full=True) == [(THREAD, 1)]


def test_archiving_and_bringing_back_keep_handle_number_and_turns(codex: CodexHome, settings: Settings) -> None:
    codex.write(meta(OTHER), *user("Else"), thread=OTHER)
    index(settings)
    before = sessions_of(settings)
    (path,) = codex.day.glob(f"*{THREAD}*")
    codex.archived.mkdir()
    moved = path.rename(codex.archived / path.name)
    index(settings)
    after = sessions_of(settings)
    assert after.keys() == before.keys()
    assert (session_of(settings, THREAD).is_archived, session_of(settings, THREAD).is_deleted) == (True, False)
    assert found_in(settings, "span is off") == [(THREAD, 1)]
    moved.rename(path)
    index(settings)
    assert sessions_of(settings) == before


def test_compressing_and_unpacking_keep_the_session(codex: CodexHome, settings: Settings) -> None:
    index(settings)
    before = sessions_of(settings)
    (path,) = codex.day.iterdir()
    packed = path.with_name(f"{path.name}.zst")
    packed.write_bytes(zstandard.compress(path.read_bytes()))
    index(settings)
    path.unlink()
    index(settings)
    assert sessions_of(settings) == before
    path.write_bytes(encoded([*LINES, agent("Resumed")]))
    index(settings)
    packed.unlink()
    index(settings)
    assert sessions_of(settings).keys() == before.keys()
    assert texts_of(settings, THREAD) == [["Fix the parser", "The span is off", "Resumed"]]
    assert found_in(settings, "Resumed") == [(THREAD, 1)]


def test_a_new_generation_is_the_same_session(codex: CodexHome, settings: Settings) -> None:
    codex.append(next(codex.day.iterdir()), *user("Reverted"))
    index(settings)
    before = session_of(settings, THREAD)
    base = {"thread_id": THREAD, "end_byte_offset": len(encoded(LINES)), "end_ordinal_exclusive": len(LINES)}
    codex.write(meta(history_base=base), *user("Else"), rollout="second", stamp="2026-11-30T12-00-00")
    index(settings)
    after = session_of(settings, THREAD)
    assert (after.handle, after.number) == (before.handle, before.number)
    assert texts_of(settings, THREAD) == [["Fix the parser", "The span is off"], ["Else"]]
    assert found_in(settings, "Reverted") == []


def test_a_deleted_thread_stays_and_is_marked(codex: CodexHome, settings: Settings) -> None:
    codex.write(meta(OTHER), *user("Else"), thread=OTHER)
    index(settings)
    next(codex.day.glob(f"*{THREAD}*")).unlink()
    index(settings)
    assert session_of(settings, THREAD).is_deleted
    assert found_in(settings, "span is off") == [(THREAD, 1)]


def test_what_is_unknown_is_counted_in_the_status(codex: CodexHome, settings: Settings) -> None:
    codex.append(next(codex.day.iterdir()), line("novelty", {}), line("novelty", {}))
    index(settings)
    (status,) = [one for one in status_of(settings).sources if one.source == "codex"]
    assert status.skipped == {"unknown type: novelty": 2}
