"""The transcript that an agent wrote itself for a session that Cydonia recorded too: the record answers."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import indexer.forget
from indexer.pipeline import Pipeline
from schemas.times import iso_utc
from tests.belonging.forgetting import forget
from tests.belonging.mixed import RECORD, Mixed, ids
from tests.indexer.archives import write_record
from tests.indexer.sources.claude_code.written import SESSION, age, agent, user
from tests.indexer.sources.codex.rollouts import THREAD, file_name, meta, second
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


def keep_folder(mixed: Mixed) -> None:
    """Another record, as a folder that is empty where it was not changes nothing."""
    write_record(mixed.project, "1790000000200", "Else.")


def append(mixed: Mixed, twin: str, text: str) -> None:
    if twin == SESSION:
        mixed.claude.add(user(text, timestamp=iso_utc(second(60))))
    else:
        mixed.codex.append(mixed.codex.day / file_name(), *asked(text))


@pytest.mark.parametrize("is_record_first", [True, False, None])
@pytest.mark.parametrize("twin", [SESSION, THREAD])
def test_a_transcript_whose_record_was_deleted_is_an_ordinary_session(
    mixed: Mixed, twin: str, is_record_first: bool | None
) -> None:
    keep_folder(mixed)
    if is_record_first is not False:
        path = record(mixed, twin)
    if is_record_first is True:
        mixed.index()
    WRITE[twin](mixed)
    if is_record_first is False:
        mixed.index()
        path = record(mixed, twin)
    mixed.index()
    content = path.read_bytes()
    path.unlink()
    append(mixed, twin, "Now the okapi.")
    mixed.index()
    assert sorted(mixed.found("zebra")) == [(twin, 1), (RECORD, 1)]
    assert mixed.found("okapi") == [(twin, 2)]
    assert mixed.found("okapi", mode="words") == [(twin, 2)]
    assert mixed.left_out("zebra") == []
    listed = {one.session_id: (one.session, one.deleted, one.twin_of) for one in mixed.listed()}
    assert (listed[twin], listed[RECORD]) == ((1, False, None), (None, True, None))
    assert mixed.read("kettle#1").session_id == twin
    mixed.index()
    assert mixed.numbers()[twin] == 1
    path.write_bytes(content)
    mixed.index()
    assert mixed.found("zebra") == [(RECORD, 1)]
    assert mixed.found("okapi") == []
    assert mixed.left_out("okapi") == [("twins", f"source={SOURCE[twin]}")]
    assert mixed.numbers()[twin] is None
    assert mixed.read("kettle#1").session_id == twin
    mixed.session("later").add(user("Else."))
    mixed.index()
    assert mixed.numbers()["later"] == 2
    path.unlink()
    mixed.index()
    assert mixed.numbers()[twin] == 1


def test_a_record_that_is_put_back_as_it_was_answers_again(mixed: Mixed) -> None:
    keep_folder(mixed)
    path = record(mixed, SESSION)
    write_claude(mixed)
    mixed.index()
    away = path.rename(mixed.folder / path.name)
    mixed.index()
    assert sorted(mixed.found("zebra")) == [(SESSION, 1), (RECORD, 1)]
    away.rename(path)
    mixed.index()
    assert mixed.found("zebra") == [(RECORD, 1)]
    (listed,) = mixed.listed(source=["claude-code"])
    assert (listed.session, listed.twin_of) == (None, RECORD)


def test_a_transcript_that_shows_up_after_its_record_was_deleted_is_an_ordinary_session(mixed: Mixed) -> None:
    keep_folder(mixed)
    path = record(mixed, SESSION)
    mixed.index()
    path.unlink()
    mixed.index()
    write_claude(mixed)
    mixed.index()
    assert sorted(mixed.found("zebra")) == [(SESSION, 1), (RECORD, 1)]
    assert mixed.numbers()[SESSION] == 1


def test_transcripts_whose_records_go_together_get_their_numbers_by_age(mixed: Mixed) -> None:
    keep_folder(mixed)
    paths = []
    for number, name in enumerate(("late", "early")):
        paths.append(record(mixed, name, f"17900000003{number}0"))
        mixed.session(name).add(user("Find the zebra.", uuid=name, timestamp=iso_utc(second(9 - number))))
    mixed.index()
    for path in paths:
        path.unlink()
    mixed.index()
    assert (mixed.numbers()["early"], mixed.numbers()["late"]) == (1, 2)


def test_a_record_in_a_folder_that_is_unavailable_still_answers_for_its_twin(mixed: Mixed) -> None:
    path = record(mixed, SESSION)
    write_claude(mixed)
    mixed.index()
    path.parent.rename(path.parent.with_name("away"))
    mixed.index()
    assert mixed.found("zebra") == [(RECORD, 1)]
    assert mixed.numbers()[SESSION] is None


@pytest.mark.parametrize("how", ["delete", "forget"])
def test_of_two_records_of_a_session_the_other_answers_when_one_goes(mixed: Mixed, how: str) -> None:
    keep_folder(mixed)
    first, other = record(mixed, SESSION), "1790000000300"
    record(mixed, SESSION, other)
    write_claude(mixed)
    mixed.index()
    assert sorted(mixed.found("zebra")) == [(RECORD, 1), (other, 1)]
    if how == "delete":
        first.unlink()
    else:
        forget(mixed, RECORD)
    mixed.index()
    assert (SESSION, 1) not in mixed.found("zebra")
    (listed,) = mixed.listed(source=["claude-code"])
    assert (listed.session, listed.twin_of) == (None, other)


def test_which_of_two_records_answers_does_not_depend_on_which_was_found_first(mixed: Mixed) -> None:
    record(mixed, SESSION, "1790000000300")
    write_claude(mixed)
    mixed.index()
    record(mixed, SESSION)
    mixed.index()
    (listed,) = mixed.listed(source=["claude-code"])
    assert listed.twin_of == RECORD


def test_a_record_that_moves_to_another_project_costs_its_twin_no_number(mixed: Mixed) -> None:
    keep_folder(mixed)
    path = record(mixed, SESSION)
    write_claude(mixed)
    other = mixed.transcripts.project("pan")
    write_record(other, "1790000000400", "Else.")
    mixed.index()
    path.rename(other / path.relative_to(mixed.project))
    mixed.index()
    assert mixed.found("zebra") == [(RECORD, 1)]
    mixed.session("later").add(user("Else."))
    mixed.index()
    assert (mixed.numbers()[SESSION], mixed.numbers()["later"]) == (None, 1)


def test_a_record_that_is_archived_answers_for_its_twin(mixed: Mixed) -> None:
    write_record(mixed.project, RECORD, "Find the zebra.", session=SESSION, closed=True)
    write_claude(mixed)
    mixed.index()
    assert mixed.found("zebra") == [(RECORD, 1)]
    assert mixed.found("zebra", archived="exclude") == []


def test_a_record_of_a_closed_project_does_not_keep_its_twin_in_another_one_out(mixed: Mixed) -> None:
    mixed.claude.usual["cwd"] = str(mixed.folder / "elsewhere")
    record(mixed, SESSION)
    write_claude(mixed)
    mixed.index()
    mixed.transcripts.list_projects([])
    mixed.index()
    assert mixed.found("zebra") == [(SESSION, 1)]
    assert mixed.left_out("zebra") == []
    assert ids(mixed.listed()) == [SESSION]
    assert mixed.found("zebra", closed="include") == [(RECORD, 1)]
    assert mixed.left_out("zebra", closed="include") == [("twins", "source=claude-code")]


def test_history_that_is_not_kept_leaves_the_twin_of_a_deleted_record(
    mixed: Mixed, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_folder(mixed)
    path = record(mixed, SESSION)
    write_claude(mixed)
    mixed.keeps_deleted = False
    mixed.index()
    path.unlink()
    mixed.index()
    assert sorted(mixed.found("zebra")) == [(SESSION, 1), (RECORD, 1)]
    monkeypatch.setattr(indexer.forget, "GONE_SECONDS", 0.0)
    mixed.index()
    assert mixed.found("zebra") == [(SESSION, 1)]
    assert mixed.numbers()[SESSION] == 1
    record(mixed, SESSION)
    mixed.index()
    assert mixed.found("zebra") == [(RECORD, 1)]
    assert mixed.numbers()[SESSION] is None


def run_dry(pipeline: Pipeline) -> None:
    while not pipeline.is_idle:
        if not pipeline.step():
            pipeline.schedule.wait(pipeline.next_due())


def broken(path: Path) -> None:
    path.write_text(path.read_text()[:-3])
    age(path, 60)


def of_another_session(path: Path) -> None:
    path.write_text(path.read_text().replace(SESSION, "another-session"))


@pytest.mark.parametrize(("change", "looks"), [(broken, 1), (of_another_session, 1), (Path.unlink, 2)])
def test_a_record_that_was_expected_and_is_none_costs_nobody_a_number(
    mixed: Mixed, change: Callable[[Path], None], looks: int
) -> None:
    """Of one that is gone again, the next look through the folders tells."""
    keep_folder(mixed)
    mixed.index()
    path = record(mixed, SESSION)
    write_claude(mixed)
    pipeline = Pipeline(mixed.settings())
    try:
        pipeline.look()
        change(path)
        run_dry(pipeline)
        for _ in range(1, looks):
            pipeline.look()
            run_dry(pipeline)
    finally:
        pipeline.close()
    assert mixed.numbers()[SESSION] == 1


def test_a_record_that_is_forgotten_and_names_another_session_costs_that_one_no_number(mixed: Mixed) -> None:
    record(mixed, None)
    mixed.index()
    forget(mixed, RECORD)
    record(mixed, SESSION)
    write_claude(mixed)
    mixed.index()
    assert (mixed.found("zebra"), mixed.numbers()) == ([(SESSION, 1)], {SESSION: 1})


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
