import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from indexer.sources.codex import CodexSource
from tests.indexer.sources.codex.rollouts import (
    OTHER,
    START,
    THREAD,
    CodexHome,
    agent,
    event,
    meta,
    touch_later,
    user,
    user_event,
    user_item,
)
from tests.indexer.sources.model import snapshot


def test_the_id_in_the_header_wins_over_that_in_the_name(codex: CodexHome) -> None:
    session = codex.session(*user("One"), header=meta(OTHER), thread=THREAD)
    assert session.facts is not None and session.facts.key == OTHER


def test_without_a_header_the_name_tells_id_and_start_in_local_time(
    codex: CodexHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        session = codex.session(agent("a"), header=user_event("One"))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert session.facts is not None
    assert (session.facts.key, session.facts.started_ms) == (THREAD, START - 9 * 3_600_000)
    assert session.texts == [["One", "a"]]
    assert session.why_skipped == ["no session_meta"]


def test_a_broken_header_is_counted_and_the_name_must_do(codex: CodexHome) -> None:
    path = codex.write(b'{"type":"session_meta","payload":{"id":', *user("One"))
    session = codex.read(path)
    assert session.facts is not None and session.facts.key == THREAD
    assert session.texts == [["One"]]


@pytest.mark.parametrize(
    ("cwd", "project"),
    [
        ("/home/a/kettle/", "/home/a/kettle"),
        ("/mnt/c/work/kettle", "/mnt/c/work/kettle"),
        ("\\\\?\\C:\\work\\kettle", "C:/work/kettle"),
        ("C:\\work\\kettle", "C:/work/kettle"),
    ],
)
def test_projects_of_any_system_have_a_name(codex: CodexHome, cwd: str, project: str) -> None:
    facts = codex.session(*user("One"), header=meta(cwd=cwd)).facts
    assert facts is not None
    assert (facts.project, facts.project.name) == (Path(project), "kettle")


def test_a_link_to_a_project_is_the_project(codex: CodexHome, tmp_path: Path) -> None:
    (tmp_path / "kettle").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kettle")
    facts = codex.session(*user("One"), header=meta(cwd=str(tmp_path / "link"))).facts
    assert facts is not None and facts.project == Path(os.path.realpath(tmp_path / "kettle"))


@pytest.mark.parametrize("originator", ["codex_exec", "codex_vscode", "Codex Desktop", "a_client"])
def test_threads_of_every_program_are_read(codex: CodexHome, originator: str) -> None:
    assert codex.session(*user("One"), header=meta(originator=originator, source="exec")).texts == [["One"]]


def named(codex: CodexHome, *entries: tuple[str, str, str]) -> None:
    written = [json.dumps({"id": id_, "thread_name": name, "updated_at": at}) for id_, name, at in entries]
    (codex.path / "session_index.jsonl").write_text("\n".join(["not JSON", *written, ""]))


def title(codex: CodexHome, path: Path) -> str:
    facts = codex.read(path).facts
    assert facts is not None
    return facts.title


def test_a_title_is_the_first_line_of_the_first_prompt(codex: CodexHome) -> None:
    path = codex.write(meta(), user_item("<skill>s</skill>"), *user("\n  Fix the parser\nplease"), *user("Thanks"))
    assert title(codex, path) == "Fix the parser"


def test_the_newest_name_in_the_index_wins(codex: CodexHome) -> None:
    path = codex.write(meta(), *user("One"))
    old, new = "2026-11-30T10:00:00Z", "2026-11-30T11:00:00Z"
    named(codex, (THREAD, "Old", old), (THREAD, "New", new), (OTHER, "Else", new))
    assert title(codex, path) == "New"


def test_an_empty_name_takes_a_name_away(codex: CodexHome) -> None:
    path = codex.write(meta(), *user("One"))
    named(codex, (THREAD, "Old", "2026-11-30T10:00:00Z"), (THREAD, "", "2026-11-30T11:00:00Z"))
    assert title(codex, path) == "One"


@pytest.mark.parametrize(
    ("at", "expected"), [("2026-11-30T09:00:00Z", "By event"), ("2026-11-30T11:00:00Z", "By index")]
)
def test_of_a_name_in_the_index_and_one_by_an_event_the_newer_wins(codex: CodexHome, at: str, expected: str) -> None:
    path = codex.write(meta(), *user("One"), event("thread_name_updated", thread_name="By event"))
    named(codex, (THREAD, "By index", at))
    assert title(codex, path) == expected


@pytest.mark.parametrize("empty", ["", " ", None])
def test_an_event_without_a_name_takes_none_away(codex: CodexHome, empty: str | None) -> None:
    names = [event("thread_name_updated", thread_name=name) for name in ("Old", "New", empty)]
    assert title(codex, codex.write(meta(), *user("One"), *names)) == "New"


@contextmanager
def database(codex: CodexHome, *rows: tuple[str | None, ...], name: str = "state_5.sqlite") -> Iterator[None]:
    """Codex's own database, open and with its latest changes in the log beside it."""
    path = codex.path / name
    path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        opened.execute("PRAGMA journal_mode = WAL")
        opened.execute("CREATE TABLE threads (id TEXT PRIMARY KEY, rollout_path TEXT, title, first_user_message, name)")
        opened.executemany("INSERT INTO threads VALUES (?, '', ?, ?, ?)", rows)
        yield


def test_a_name_in_the_database_of_the_highest_number_is_next(codex: CodexHome) -> None:
    path = codex.write(meta(), *user("One"))
    with (
        database(codex, (THREAD, "One", "One", "Stale")),
        database(codex, (THREAD, "One", "One", "Named there"), name="sqlite/state_12.sqlite"),
    ):
        before = snapshot(codex.path)
        assert title(codex, path) == "Named there"
        assert snapshot(codex.path) == before
    codex.source = CodexSource([codex.path])
    named(codex, (THREAD, "By index", "2026-11-30T10:00:00Z"))
    assert title(codex, path) == "By index"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (("Made up", "One\nand more", None), "Made up"),
        (("One\nand more", "One\nand more", None), "One"),
        ((None, None, ""), "One"),
        ((7, 7, b"x"), "One"),
    ],
)
def test_a_title_in_the_database_counts_where_it_is_not_the_first_message(
    codex: CodexHome, row: tuple[str | None, ...], expected: str
) -> None:
    path = codex.write(meta(), *user("One\nand more"))
    with database(codex, (THREAD, *row)):
        assert title(codex, path) == expected


def test_a_database_that_is_damaged_or_of_another_shape_changes_nothing(codex: CodexHome) -> None:
    path = codex.write(meta(), *user("One"))
    (codex.path / "state_6.sqlite").write_bytes(b"no database" * 1000)
    assert title(codex, path) == "One"
    with closing(sqlite3.connect(codex.path / "state_7.sqlite")) as opened, opened:
        opened.execute("CREATE VIEW threads AS SELECT 1 AS id, 'x' AS name")
    codex.source = CodexSource([codex.path])
    assert title(codex, path) == "One"


def test_a_new_name_is_told_though_the_file_has_nothing_new(codex: CodexHome) -> None:
    path = codex.write(meta(), *user("One"))
    session = codex.read(path)
    assert codex.read_on(path, session) == 0
    named(codex, (THREAD, "Named", "2026-11-30T11:00:00Z"))
    assert codex.read_on(path, session) == 1
    assert session.facts is not None and session.facts.title == "Named"
    assert session.texts == [["One"]]


def test_a_file_that_is_cut_or_replaced_is_read_anew(codex: CodexHome) -> None:
    path = codex.write(meta(), *user("One"), agent("a"), agent("b"))
    session = codex.read(path)
    codex.write(meta(), *user("One"), agent("c"))
    touch_later(path)
    codex.read_on(path, session)
    assert session.texts == [["One", "c"]]


def test_a_year_out_of_the_calendar_is_no_time(codex: CodexHome) -> None:
    far = {**user_event("One"), "timestamp": "9999-99-99T99:99:99.999Z"}
    session = codex.session(far, {**user_event("Two"), "timestamp": 7})
    assert [turn.at_ms for turn in session.turns] == [START - 1000, START - 1000] or session.turns[0].at_ms == START
