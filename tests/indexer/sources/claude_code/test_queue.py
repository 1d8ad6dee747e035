"""Messages that are typed while the agent works."""

from typing import Any

import pytest

from tests.indexer.sources.claude_code.written import TEN, Written, agent, attachment, call, result, sidecar, user


def queue(operation: str, content: Any = None, **more: Any) -> dict[str, Any]:
    line = sidecar("queue-operation", operation=operation, timestamp="2026-11-30T10:00:30.000Z", **more)
    return line if content is None else {**line, "content": content}


def steering(prompt: Any, **fields: Any) -> dict[str, Any]:
    return attachment("queued_command", **{"prompt": prompt, "commandMode": "prompt", **fields})


WORK = [user("first"), agent("One ", id="m1")]
MORE = agent("two", id="m1")


@pytest.mark.parametrize(
    "prompt",
    [
        "and this",
        [{"type": "text", "text": "and this"}],
        "<system-reminder>x</system-reminder>and this",
    ],
)
@pytest.mark.parametrize("more", [{}, {"origin": {"kind": "human"}}, {"line": {"uuid": None}}])
def test_an_attached_message_begins_a_turn_where_the_agent_saw_it(
    written: Written, prompt: Any, more: dict[str, Any]
) -> None:
    session = written.read(*WORK, steering(prompt, **more), MORE)
    assert session.texts == [["first", "One "], ["and this", "two"]]


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


@pytest.mark.parametrize(
    "prompt", [[PICTURE], [{"type": "text", "text": "<system-reminder>x</system-reminder>"}, PICTURE]]
)
def test_an_attached_picture_begins_a_turn(written: Written, prompt: Any) -> None:
    assert written.read(*WORK, steering(prompt), MORE).texts == [["first", "One "], ["[Image]", "two"]]


@pytest.mark.parametrize("has_attachment", [True, False])
def test_a_picture_that_left_the_queue_into_the_work_begins_one_turn(written: Written, has_attachment: bool) -> None:
    lines = [queue("enqueue", [PICTURE]), queue("remove"), *([steering([PICTURE])] if has_attachment else [])]
    assert written.read(*WORK, *lines, MORE).texts == [["first", "One "], ["[Image]", "two"]]


def test_a_message_is_one_turn_though_only_its_attachment_has_what_was_put_in_for_the_model(written: Written) -> None:
    both = [queue("remove", "and this"), steering("<system-reminder>x</system-reminder>and this")]
    for lines in (both, both[::-1]):
        written.path.unlink(missing_ok=True)
        assert written.read(*WORK, *lines, MORE).texts == [["first", "One "], ["and this", "two"]]


@pytest.mark.parametrize(
    "line",
    [
        steering("x", commandMode="task-notification"),
        steering("x", isMeta=True),
        steering("x", origin={"kind": "peer"}),
        steering("<task-notification><summary>x</summary></task-notification>"),
        steering("<system-reminder>x</system-reminder><task-notification><summary>x</summary></task-notification>"),
        steering("<system-reminder>x</system-reminder>"),
        steering(""),
        steering(None),
    ],
)
def test_what_else_is_attached_begins_none(written: Written, line: dict[str, Any]) -> None:
    assert written.read(*WORK, line, MORE).texts == [["first", "One \ntwo"]]


@pytest.mark.parametrize("content", ["and this", [{"type": "text", "text": "and this"}]])
def test_what_left_the_queue_into_the_work_begins_a_turn(written: Written, content: Any) -> None:
    session = written.read(*WORK, queue("enqueue", content), queue("remove"), MORE)
    assert session.texts == [["first", "One "], ["and this", "two"]]
    assert session.turns[1].at_ms == TEN + 30_000


def test_what_left_the_queue_may_say_its_text_itself(written: Written) -> None:
    session = written.read(
        *WORK,
        queue("enqueue", "a"),
        queue("enqueue", "b"),
        queue("remove", "b", reason="absorbed_mid_turn"),
        queue("remove", "never enqueued"),
        queue("remove"),
        queue("remove"),
    )
    assert session.texts == [["first", "One "], ["b"], ["never enqueued"], ["a"]]


@pytest.mark.parametrize("order", ["attachment first", "removal first"])
@pytest.mark.parametrize("has_text", [True, False])
def test_a_message_that_is_told_twice_is_one_turn(written: Written, order: str, has_text: bool) -> None:
    both = [steering("and this"), queue("remove", "and this" if has_text else None)]
    session = written.read(
        *WORK, queue("enqueue", "and this"), *(both if order == "attachment first" else both[::-1]), MORE
    )
    assert session.texts == [["first", "One "], ["and this", "two"]]


def test_the_same_words_sent_twice_are_two_turns(written: Written) -> None:
    once = [queue("enqueue", "go on"), steering("go on"), queue("remove", "go on")]
    assert written.read(*WORK, *once, MORE, *once).texts == [["first", "One "], ["go on", "two"], ["go on"]]


def test_the_same_words_attached_twice_are_two_turns(written: Written) -> None:
    session = written.read(user("first"), steering("go on"), steering("go on"))
    assert session.texts == [["first"], ["go on"], ["go on"]]


def test_a_removal_long_ago_does_not_hide_an_attachment(written: Written) -> None:
    session = written.read(*WORK, queue("enqueue", "go on"), queue("remove"), agent("Yes.", id="m2"), steering("go on"))
    assert session.texts == [["first", "One "], ["go on", "Yes."], ["go on"]]


def test_a_message_that_was_told_twice_does_not_hide_one_of_the_same_words(written: Written) -> None:
    session = written.read(
        *WORK, steering("go on"), queue("remove", "go on"), MORE, queue("enqueue", "go on"), queue("remove")
    )
    assert session.texts == [["first", "One "], ["go on", "two"], ["go on"]]


def test_an_attachment_before_another_message_does_not_hide_a_removal(written: Written) -> None:
    session = written.read(*WORK, steering("go on"), user("second"), queue("enqueue", "go on"), queue("remove"))
    assert session.texts == [["first", "One "], ["go on"], ["second"], ["go on"]]


@pytest.mark.parametrize("content", ["/compact", "<task-notification><summary>x</summary></task-notification>"])
def test_commands_and_notifications_that_leave_the_queue_begin_none(written: Written, content: str) -> None:
    assert written.read(*WORK, queue("enqueue", content), queue("remove"), MORE).texts == [["first", "One \ntwo"]]


def test_what_was_sent_to_the_idle_agent_is_counted_as_its_own_line(written: Written) -> None:
    session = written.read(
        *WORK, queue("enqueue", "second"), queue("dequeue"), user("second"), queue("enqueue", "x"), queue("remove")
    )
    assert session.texts == [["first", "One "], ["second"], ["x"]]


def test_what_went_back_into_the_editor_was_not_sent(written: Written) -> None:
    session = written.read(*WORK, queue("enqueue", "a"), queue("enqueue", "b"), queue("popAll"), queue("remove"), MORE)
    assert session.texts == [["first", "One \ntwo"]]


def test_what_waits_was_not_sent(written: Written) -> None:
    assert written.read(*WORK, queue("enqueue", "a"), queue("later", "b"), MORE).texts == [["first", "One \ntwo"]]


def test_steering_ends_no_tool_that_runs(written: Written) -> None:
    session = written.read(
        user("first"),
        agent(call("t1", "Bash", command="make"), id="m1"),
        steering("and this"),
        agent(call("t2", "Bash", command="test"), id="m1"),
    )
    assert [turn.items[1].status for turn in session.turns] == ["running", "running"]
    written.add(result("t1"), result("t2"))
    written.read_on(session)
    assert [turn.items[1].status for turn in session.turns] == ["ok", "ok"]


def test_the_queue_is_remembered_between_reads(written: Written) -> None:
    session = written.read(*WORK, queue("enqueue", "and this"))
    written.add(queue("remove"))
    written.read_on(session)
    written.add(steering("and this"), MORE)
    written.read_on(session)
    assert session.texts == [["first", "One "], ["and this", "two"]]
