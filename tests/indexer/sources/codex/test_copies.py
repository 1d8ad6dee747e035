import pytest

from tests.indexer.sources.codex.rollouts import (
    CHILD,
    OTHER,
    THREAD,
    CodexHome,
    Line,
    agent,
    call,
    complete,
    context,
    event,
    meta,
    spawned,
    started,
    user,
    user_event,
)


def task(turn_id: str, message: str, answer: str) -> list[Line]:
    """A turn as it is written since tasks are told."""
    return [started(turn_id), *user(message), context(turn_id), agent(answer), complete(turn_id)]


def older(turn_id: str, message: str, answer: str) -> list[Line]:
    """A turn as it was written when only contexts named it."""
    return [*user(message), context(turn_id), agent(answer)]


def fork(**more: object) -> Line:
    return meta(OTHER, forked_from_id=THREAD, **more)


@pytest.mark.parametrize("turn", [task, older])
def test_what_a_fork_brought_along_is_marked_with_where_it_comes_from(codex: CodexHome, turn: type) -> None:
    before = [*turn("T1", "One", "a"), *turn("T2", "Two", "b")]
    original = codex.session(*before, *turn("T3", "Three", "c"))
    copy = codex.session(meta(), *before, *turn("T9", "Else", "d"), header=fork(), thread=OTHER)
    assert copy.texts == [["One", "a"], ["Two", "b"], ["Else", "d"]]
    assert (copy.copies, original.copies) == ({1, 2}, set())
    assert copy.origins == {1: "T1", 2: "T2", 3: "T9"}
    assert original.origins == {1: "T1", 2: "T2", 3: "T3"}
    assert copy.facts is not None
    assert (copy.facts.key, copy.facts.forked_from, copy.facts.parent_id) == (OTHER, THREAD, None)


def test_a_fork_of_a_fork_marks_all_that_its_source_brought_along(codex: CodexHome) -> None:
    grand = task("T1", "One", "a")
    codex.session(*grand)
    codex.session(meta(), *grand, *task("T2", "Two", "b"), header=fork(), thread=OTHER)
    copy = codex.session(
        meta(OTHER),
        meta(),
        *grand,
        *task("T2", "Two", "b"),
        *task("T3", "Three", "c"),
        header=meta(CHILD, forked_from_id=OTHER),
        thread=CHILD,
    )
    assert copy.copies == {1, 2}


def test_a_fork_whose_source_is_gone_keeps_all_and_says_where_it_comes_from(codex: CodexHome) -> None:
    copy = codex.session(meta(), *task("T1", "One", "a"), *task("T9", "Else", "d"), header=fork(), thread=OTHER)
    assert copy.texts == [["One", "a"], ["Else", "d"]]
    assert (copy.copies, copy.origins) == (set(), {1: "T1", 2: "T9"})


def test_a_copy_is_marked_though_its_turn_was_told_before_its_end_was_known(codex: CodexHome) -> None:
    codex.session(*older("T1", "One", "a"))
    path = codex.write(fork(), meta(), *older("T1", "One", "a"), *user("Else"), thread=OTHER)
    session = codex.read(path)
    assert session.copies == {1, 2}
    codex.append(path, context("T9"), agent("d"))
    codex.read_on(path, session)
    assert (session.copies, session.origins) == ({1}, {1: "T1", 2: "T9"})


def test_a_source_that_went_on_after_the_fork_changes_nothing(codex: CodexHome) -> None:
    source = codex.write(meta(), *task("T1", "One", "a"))
    path = codex.write(fork(), meta(), *task("T1", "One", "a"), *task("T9", "Else", "d"), thread=OTHER)
    before = codex.read(path).state
    codex.append(source, *task("T2", "Two", "b"))
    assert codex.read(path).state == before


@pytest.mark.parametrize("turn", [task, older])
def test_what_a_subagent_brought_along_is_left_out(codex: CodexHome, turn: type) -> None:
    before = [*turn("T1", "One", "a"), call("exec_command", {"cmd": "x"}), event("error", message="e")]
    codex.session(*before)
    child = codex.session(meta(), *before, *turn("T9", "Look around", "d"), header=spawned(), thread=CHILD)
    assert child.texts == [["Look around", "d"]]
    assert (child.copies, child.origins) == (set(), {1: "T9"})
    assert child.facts is not None
    assert (child.facts.key, child.facts.parent_id, child.facts.title) == (CHILD, THREAD, "Look around")


def test_the_last_message_that_a_subagent_brought_along_is_not_its_own(codex: CodexHome) -> None:
    before = [started("T1"), context("T1"), *user("One"), agent("a")]
    codex.session(*before, complete("T1"))
    child = codex.session(meta(), *before, *task("T9", "Look around", "d"), header=spawned(), thread=CHILD)
    assert child.texts == [["Look around", "d"]]
    assert child.facts is not None
    assert child.facts.title == "Look around"


def test_a_subagent_that_brought_nothing_along_holds_only_its_own_lines(codex: CodexHome) -> None:
    codex.session(*task("T1", "One", "a"))
    child = codex.session(*task("T1", "Look around", "d"), header=spawned(), thread=CHILD)
    assert child.texts == [["Look around", "d"]]


def test_a_subagent_whose_parent_is_gone_keeps_all(codex: CodexHome) -> None:
    child = codex.session(meta(), *task("T1", "One", "a"), *task("T9", "Look", "d"), header=spawned(), thread=CHILD)
    assert child.texts == [["One", "a"], ["Look", "d"]]


def test_lines_before_the_ordinal_at_which_a_subagent_starts_are_left_out(codex: CodexHome) -> None:
    lines = [meta(), *task("T1", "One", "a"), *task("T9", "Look around", "d")]
    numbered = [{**one, "ordinal": number} for number, one in enumerate(lines, 1)]
    early = [{"timestamp": "2026-11-30T10:00:00.000Z", "ordinal": one["ordinal"], **one} for one in numbered]
    header = {**spawned(subagent_history_start_ordinal=8), "ordinal": 0}
    for written in (numbered, early):
        child = codex.session(*written, header=header, thread=CHILD)
        assert child.texts == [["Look around", "d"]]


@pytest.mark.parametrize(
    ("source", "more", "parent"),
    [
        ({"subagent": {"thread_spawn": {"parent_thread_id": THREAD, "depth": 1}}}, {}, THREAD),
        ({"subagent": "review"}, {"parent_thread_id": THREAD}, THREAD),
        ({"subagent": "compact"}, {"forked_from_id": THREAD}, THREAD),
        ({"subagent": {"other": "guardian"}}, {"session_id": THREAD}, THREAD),
        ("cli", {"thread_source": "subagent", "parent_thread_id": THREAD}, THREAD),
        ("cli", {"thread_source": "guardian_review", "session_id": THREAD}, THREAD),
        ("cli", {"thread_source": "memory_consolidation"}, ""),
        ("cli", {"thread_source": "user", "session_id": THREAD, "parent_thread_id": THREAD}, None),
        ("vscode", {}, None),
        ("unknown", {}, None),
        ({"custom": "a-client"}, {}, None),
    ],
)
def test_kinds_of_threads(codex: CodexHome, source: object, more: dict[str, str], parent: str | None) -> None:
    session = codex.session(user_event("One"), header=meta(OTHER, source=source, **more), thread=OTHER)
    assert session.facts is not None
    assert session.facts.parent_id == parent


def test_the_family_is_not_the_identity(codex: CodexHome) -> None:
    session = codex.session(user_event("One"), header=meta(OTHER, session_id=THREAD), thread=OTHER)
    assert session.facts is not None
    assert (session.facts.key, session.facts.session_id) == (OTHER, OTHER)


def test_later_headers_of_the_thread_itself_are_ignored(codex: CodexHome) -> None:
    session = codex.session(*task("T1", "One", "a"), meta(cwd="/elsewhere"), agent("b"))
    assert session.facts is not None
    assert str(session.facts.project) == "/home/a/kettle"
    assert session.texts == [["One", "a", "b"]]
