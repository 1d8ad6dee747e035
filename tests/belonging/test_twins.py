"""The transcript that an agent wrote itself for a session that Cydonia recorded too: the record answers."""

import json
from pathlib import Path

import pytest

from tests.belonging.mixed import RECORD, Mixed, ids
from tests.indexer.archives import write_record
from tests.indexer.sources.claude_code.written import SESSION, agent, user
from tests.indexer.sources.codex.rollouts import THREAD, meta
from tests.indexer.sources.codex.rollouts import user as asked


def write_claude(mixed: Mixed) -> None:
    mixed.claude.add(user("Find the zebra."), agent("Found it."))


def write_codex(mixed: Mixed) -> None:
    mixed.codex.write(meta(cwd=str(mixed.project)), *asked("Find the zebra."))


WRITE = {SESSION: write_claude, THREAD: write_codex}
SOURCE = {SESSION: "claude-code", THREAD: "codex"}


def record(mixed: Mixed, session: str | None, stem: str = RECORD) -> Path:
    """A record as Cydonia prints it."""
    path = write_record(mixed.project, stem, "Find the zebra.", session=session)
    path.write_text(json.dumps(json.loads(path.read_text()), indent=2))
    return path


@pytest.mark.parametrize("is_record_first", [True, False, None])
@pytest.mark.parametrize("twin", [SESSION, THREAD])
def test_the_record_answers_whichever_of_them_came_first(mixed: Mixed, twin: str, is_record_first: bool | None) -> None:
    if is_record_first is True:
        record(mixed, twin)
        mixed.index()
    WRITE[twin](mixed)
    if is_record_first is False:
        mixed.index()
    record(mixed, twin)
    mixed.index()
    assert mixed.found("zebra") == [(RECORD, 1)]
    assert mixed.found("zebra", mode="words") == [(RECORD, 1)]
    assert mixed.left_out("zebra") == [("twins", f"source={SOURCE[twin]}")]
    assert ids(mixed.listed()) == [RECORD]
    (listed,) = mixed.listed(source=[SOURCE[twin]])
    assert (listed.session_id, listed.session, listed.twin_of) == (twin, None, RECORD)
    assert mixed.found("zebra", source=[SOURCE[twin]]) == [(twin, 1)]
    assert sorted(mixed.found("zebra", source=["cydonia", SOURCE[twin]])) == sorted([(RECORD, 1), (twin, 1)])
    assert mixed.found("zebra", session=twin) == [(twin, 1)]
    assert mixed.left_out("zebra", session=twin) == []
    assert "Find the zebra." in mixed.text(twin)


def test_a_twin_that_is_there_from_the_start_costs_no_number(mixed: Mixed) -> None:
    record(mixed, SESSION)
    write_claude(mixed)
    mixed.session("later").add(user("Else.", timestamp="2026-11-30T12:00:00Z"))
    mixed.index()
    assert mixed.numbers() == {RECORD: None, SESSION: None, "later": 1}


def test_a_number_that_a_twin_had_still_names_it(mixed: Mixed) -> None:
    write_claude(mixed)
    mixed.index()
    assert mixed.numbers() == {SESSION: 1}
    record(mixed, SESSION)
    mixed.index()
    assert mixed.numbers() == {RECORD: None, SESSION: None}
    assert mixed.read("kettle#1").session_id == SESSION
    assert mixed.read("kettle#1").reference == SESSION


def test_a_record_that_was_deleted_still_answers(mixed: Mixed) -> None:
    path = record(mixed, SESSION)
    write_record(mixed.project, "1790000000200", "Else.")
    write_claude(mixed)
    mixed.index()
    path.unlink()
    mixed.index()
    assert mixed.found("zebra") == [(RECORD, 1)]


def test_a_transcript_whose_record_is_about_another_session_now_is_an_ordinary_one(mixed: Mixed) -> None:
    record(mixed, SESSION)
    write_claude(mixed)
    mixed.index()
    record(mixed, "another-session")
    mixed.index()
    assert sorted(mixed.found("zebra")) == [(SESSION, 1), (RECORD, 1)]
    assert mixed.numbers()[SESSION] == 1
    assert mixed.left_out("zebra") == []


def test_a_session_that_was_a_twin_for_a_while_gets_its_number_back(mixed: Mixed) -> None:
    write_claude(mixed)
    mixed.index()
    record(mixed, SESSION)
    mixed.index()
    mixed.session("later").add(user("Else."))
    mixed.index()
    record(mixed, None)
    mixed.index()
    assert mixed.numbers() == {RECORD: None, SESSION: 1, "later": 2}


def test_a_turn_file_is_nobodys_twin(mixed: Mixed) -> None:
    record(mixed, "shared-id")
    mixed.transcripts.turn_file("shared-id", {"type": "user", "text": "A zebra."}, project=str(mixed.project))
    mixed.index()
    assert len(mixed.found("zebra")) == 2


def test_a_record_that_callers_may_not_see_answers_for_nobody(mixed: Mixed) -> None:
    elsewhere = mixed.folder / "elsewhere"
    mixed.claude.usual["cwd"] = str(elsewhere)
    record(mixed, SESSION)
    write_claude(mixed)
    mixed.index()
    assert mixed.found("zebra") == [(RECORD, 1)]
    mixed.allowed = [str(elsewhere)]
    assert mixed.found("zebra") == [(SESSION, 1)]
    assert mixed.left_out("zebra") == []
    (seen,) = mixed.listed()
    assert seen.twin_of is None


def test_a_title_that_record_and_twin_share_names_the_record(mixed: Mixed) -> None:
    write_record(mixed.project, RECORD, "Find the zebra.", session=SESSION, title="Find the zebra.")
    write_claude(mixed)
    mixed.index()
    assert {one.title for one in mixed.listed(source=["cydonia", "claude-code"])} == {"Find the zebra."}
    assert mixed.read("find the zebra.").session_id == RECORD
