"""Turns that a fork or resume brought along: each found once, where it was said first."""

import pytest

from schemas.times import iso_utc
from tests.belonging.mixed import RECORD, Mixed
from tests.indexer.archives import write_record
from tests.indexer.sources.claude_code.written import SESSION, agent, at, user
from tests.indexer.sources.codex.rollouts import OTHER, THREAD, Line, complete, context, meta, second, started
from tests.indexer.sources.codex.rollouts import agent as said
from tests.indexer.sources.codex.rollouts import user as asked

FORK = "1790000000900"


def write_original(mixed: Mixed) -> None:
    mixed.claude.add(user("Find the zebra.", uuid="a"), agent("Found it.", uuid="b"))


def write_fork(mixed: Mixed, name: str = "fork") -> None:
    mixed.session(name).add(
        user("Find the zebra.", uuid="n1", forkedFrom={"sessionId": SESSION, "messageUuid": "a"}),
        agent("Found it.", uuid="n2", forkedFrom={"sessionId": SESSION, "messageUuid": "b"}),
        user("Now the okapi.", uuid="n3", timestamp=at(60)),
    )


@pytest.fixture
def forked(mixed: Mixed) -> Mixed:
    write_original(mixed)
    write_fork(mixed)
    mixed.index()
    return mixed


@pytest.mark.parametrize("mode", ["text", "regex", "words"])
def test_a_copy_is_left_out_unless_asked_for(forked: Mixed, mode: str) -> None:
    assert forked.found("zebra", mode=mode) == [(SESSION, 1)]
    assert forked.left_out("zebra", mode=mode) == [("copies", "copies=include")]
    assert sorted(forked.found("zebra", mode=mode, copies="include")) == [(SESSION, 1), ("fork", 1)]
    assert forked.left_out("zebra", mode=mode, copies="include") == []
    assert forked.found("okapi", mode=mode) == [("fork", 2)]
    assert forked.left_out("okapi", mode=mode) == []


def test_copies_are_told_from_originals_whichever_was_read_first(mixed: Mixed) -> None:
    write_fork(mixed)
    mixed.index()
    assert mixed.found("zebra") == [("fork", 1)]
    write_original(mixed)
    mixed.index()
    assert mixed.found("zebra") == [(SESSION, 1)]


def test_a_copy_says_what_it_was_copied_from(forked: Mixed) -> None:
    hits = forked.search("zebra", copies="include").hits
    assert {(hit.session_id, hit.copied_from) for hit in hits} == {(SESSION, None), ("fork", "kettle#1:1")}
    parts = forked.read("fork").parts
    assert [(part.turn, part.copied_from) for part in parts] == [(1, "kettle#1:1"), (2, None)]
    assert "## kettle#2:1 · copied from kettle#1:1\n" in forked.text("fork")
    assert "## kettle#1:1\n" in forked.text(SESSION)
    assert {one.session_id: one.forked_from for one in forked.listed()} == {SESSION: None, "fork": "kettle#1"}


def test_a_copy_that_is_named_is_searched(forked: Mixed) -> None:
    assert forked.found("zebra", session="fork") == [("fork", 1)]
    assert forked.left_out("zebra", session="fork") == []


def test_a_copy_is_answered_where_its_original_does_not_pass_the_filters(forked: Mixed) -> None:
    assert forked.found("zebra", title="okapi") == []
    title = {one.session_id: one.title for one in forked.listed()}
    assert title[SESSION] == title["fork"]
    forked.session("fork").add({"type": "custom-title", "customTitle": "Branch", "sessionId": "fork"})
    forked.index()
    assert forked.found("zebra", title="Branch") == [("fork", 1)]
    assert forked.left_out("zebra", title="Branch") == []


def test_of_two_copies_without_an_original_the_first_is_answered(mixed: Mixed) -> None:
    write_fork(mixed, "one")
    write_fork(mixed, "two")
    mixed.index()
    assert mixed.found("zebra") == [("one", 1)]


def test_a_session_in_the_background_is_found_unless_it_took_its_turn_over(mixed: Mixed) -> None:
    write_original(mixed)
    background = mixed.session("background", sessionKind="bg")
    background.add(
        user("Find the zebra.", uuid="a"),
        agent("Found it.", uuid="b"),
        user("And a zebra here.", uuid="c", timestamp=at(60)),
    )
    mixed.index()
    assert mixed.found("zebra") == [("background", 2), (SESSION, 1)]


def test_a_turn_that_went_on_in_its_own_way_is_no_copy(mixed: Mixed) -> None:
    write_original(mixed)
    background = mixed.session("background", sessionKind="bg")
    background.add(user("Find the zebra.", uuid="a"), agent("It went on.", uuid="b2"))
    mixed.index()
    assert mixed.found("went on") == [("background", 1)]
    assert sorted(mixed.found("zebra")) == [(SESSION, 1), ("background", 1)]


def test_pages_hold_each_turn_once_and_no_copy(mixed: Mixed) -> None:
    for number in range(5):
        mixed.claude.add(user(f"zebra {number}", uuid=f"a{number}"))
        mixed.session("fork").add(
            user(f"zebra {number}", uuid=f"n{number}", forkedFrom={"sessionId": SESSION, "messageUuid": f"a{number}"})
        )
    mixed.index()
    found: list[int] = []
    cursor: dict[str, str] = {}
    while True:
        answer = mixed.search("zebra", limit=2, **cursor)
        found += [hit.turn for hit in answer.hits]
        assert {hit.session_id for hit in answer.hits} == {SESSION}
        if answer.cursor is None:
            break
        cursor = {"cursor": answer.cursor}
    assert sorted(found) == [1, 2, 3, 4, 5]


def task(turn_id: str, message: str, answer: str) -> list[Line]:
    return [started(turn_id), *asked(message), context(turn_id), said(answer), complete(turn_id)]


@pytest.mark.parametrize("mode", ["text", "words"])
@pytest.mark.parametrize("order", ["newest", "oldest"])
@pytest.mark.parametrize("is_original_first", [True, False, None])
def test_a_copy_has_the_time_of_its_original_though_it_was_stamped_anew(
    mixed: Mixed, is_original_first: bool | None, order: str, mode: str
) -> None:
    cwd = str(mixed.project)
    original = mixed.codex.write(meta(cwd=cwd), *task("T1", "Find the zebra.", "Found."))
    later = [
        {**line, "timestamp": iso_utc(second(3600 + i))}
        for i, line in enumerate(task("T1", "Find the zebra.", "Found."))
    ]
    mixed.codex.write(
        meta(OTHER, forked_from_id=THREAD, cwd=cwd), meta(cwd=cwd), *later, *task("T9", "Else.", "d"), thread=OTHER
    )
    if is_original_first is False:
        away = original.rename(mixed.folder / original.name)
        mixed.index()
        assert mixed.found("zebra") == [(OTHER, 1)]
        away.rename(original)
    mixed.index()
    hits = mixed.search("zebra", copies="include", order=order, mode=mode).hits
    assert len(hits) == 2
    assert len({hit.at for hit in hits}) == 1
    assert mixed.found("zebra", order=order, mode=mode) == [(THREAD, 1)]
    assert mixed.found("zebra", since=iso_utc(second(1800)), mode=mode) == []


def items(*texts: str) -> list[dict[str, str]]:
    return [{"User": text} for text in texts]


def record_fork(mixed: Mixed, stem: str, *texts: str, of: str = RECORD, before: int = 2) -> None:
    fork = {"session": of, "title": "Parser", "before": before, "pending": False}
    write_record(mixed.project, stem, items=items(*texts), fork=fork)


def test_the_turns_that_a_fork_of_a_record_brought_along_are_copies(mixed: Mixed) -> None:
    write_record(mixed.project, RECORD, items=items("A zebra.", "Another zebra."), sent_at={"0": 1_790_000_100})
    record_fork(mixed, FORK, "A zebra.", "Another zebra.", "A third zebra.")
    mixed.index()
    assert sorted(mixed.found("zebra")) == [(RECORD, 1), (RECORD, 2), (FORK, 3)]
    assert mixed.left_out("zebra") == [("copies", "copies=include")]
    assert [part.copied_from for part in mixed.read(FORK).parts] == [f"{RECORD}:1", f"{RECORD}:2", None]
    times = {(hit.session_id, hit.turn): hit.at for hit in mixed.search("zebra", copies="include").hits}
    assert times[FORK, 1] == times[RECORD, 1] == iso_utc(1_790_000_100_000)


def test_a_turn_that_no_longer_says_what_its_original_says_is_no_copy(mixed: Mixed) -> None:
    write_record(mixed.project, RECORD, items=items("A zebra, and an okapi.", "Another zebra."))
    record_fork(mixed, FORK, "A zebra.", "Another zebra.")
    mixed.index()
    assert sorted(mixed.found("zebra")) == [(RECORD, 1), (RECORD, 2), (FORK, 1)]


def test_a_turn_that_the_fork_cut_is_no_copy(mixed: Mixed) -> None:
    write_record(mixed.project, RECORD, items=items("A zebra.", "Another zebra."))
    record_fork(mixed, FORK, "A zebra.", "Another zebra.", before=1)
    mixed.index()
    assert sorted(mixed.found("zebra")) == [(RECORD, 1), (RECORD, 2), (FORK, 2)]


def test_a_fork_of_a_fork_goes_back_to_the_first(mixed: Mixed) -> None:
    write_record(mixed.project, RECORD, "A zebra.")
    record_fork(mixed, FORK, "A zebra.", "Another zebra.", before=1)
    record_fork(mixed, "1790000001900", "A zebra.", "Another zebra.", "A third zebra.", of=FORK)
    mixed.index()
    assert mixed.found("zebra") == [("1790000001900", 3), (FORK, 2), (RECORD, 1)]
    copied_from = [part.copied_from for part in mixed.read("1790000001900").parts]
    assert copied_from == [f"{RECORD}:1", f"{FORK}:2", None]


def test_a_fork_whose_original_is_not_there_is_found(mixed: Mixed) -> None:
    record_fork(mixed, FORK, "A zebra.", "Another zebra.")
    mixed.index()
    assert len(mixed.found("zebra")) == 2
    assert mixed.left_out("zebra") == []
    write_record(mixed.project, RECORD, "A zebra.", "Another zebra.")
    mixed.index()
    assert {session for session, _ in mixed.found("zebra")} == {RECORD}
    assert len({hit.at for hit in mixed.search("zebra", copies="include").hits}) == 1
