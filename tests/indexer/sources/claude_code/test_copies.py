"""Turns that were brought along from another session: which they are, and what they are called there."""

import pytest

from indexer.sources.base import Append
from tests.indexer.sources.claude_code.written import SESSION, Line, Written, agent, attachment, sidecar, user
from tests.indexer.sources.model import transcript_of


def origins(written: Written, *lines: Line) -> list[tuple[str | None, bool]]:
    """Of each turn its origin, and whether it gives way to another turn of that origin."""
    written.add(*lines)
    parts = written.source.read(transcript_of(written.path, written.root), None, settle_ms=0)
    appends = [change for part in parts for change in part.changes if isinstance(change, Append)]
    return [(append.origin, append.is_copy) for append in appends]


def test_a_turn_is_called_by_the_uuid_of_its_message(written: Written) -> None:
    assert origins(written, user("u", uuid="a"), agent("a"), user("v", uuid="b")) == [("a", False), ("b", False)]


def test_a_forks_copies_name_their_originals(written: Written) -> None:
    fork = {"sessionId": "the-old-one", "messageUuid": "old-1"}
    assert origins(
        written, user("u", uuid="new-1", forkedFrom=fork), agent("a", forkedFrom=fork), user("v", uuid="b")
    ) == [("old-1", True), ("b", False)]
    assert written.read().the_facts.forked_from == "the-old-one"


def test_a_forks_copies_may_not_say_of_which_message(written: Written) -> None:
    assert origins(written, user("u", uuid="a", forkedFrom={"sessionId": "the-old-one"})) == [("a", True)]


def test_all_turns_of_a_session_in_the_background_give_way_to_others_of_their_origin(written: Written) -> None:
    # The chain that it took over has old uuids and its own the same mark: only the other file tells them apart.
    assert origins(written, user("u", uuid="a", sessionKind="bg"), user("v", uuid="b", sessionKind="bg")) == [
        ("a", True),
        ("b", True),
    ]
    assert written.read().the_facts.forked_from is None


def test_a_resumed_sessions_old_lines_give_way_to_those_of_the_old_file(written: Written) -> None:
    assert origins(
        written,
        user("u", uuid="a", sessionId="the-old-one"),
        agent("a", sessionId="the-old-one"),
        user("v", uuid="b"),
        user("w", uuid="c", sessionId=None, session_id=SESSION),
    ) == [("a", True), ("b", False), ("c", False)]
    assert written.read().the_facts.session_id == SESSION


def test_a_message_typed_during_the_work_is_called_by_its_line_or_its_source(written: Written) -> None:
    queued = attachment("queued_command", prompt="and this", commandMode="prompt", source_uuid="q")
    other = attachment("queued_command", prompt="and that", commandMode="prompt", source_uuid="r", line={"uuid": None})
    assert origins(written, user("u", uuid="a"), queued, other) == [("a", False), ("u1", False), ("r", False)]


def steering(words: str, uuid: str) -> Line:
    return attachment("queued_command", prompt=words, commandMode="prompt", line={"uuid": uuid})


def removed(words: str) -> Line:
    return sidecar("queue-operation", operation="remove", content=words)


def test_a_message_of_which_the_queue_told_first_is_called_by_its_attachment(written: Written) -> None:
    lines = [user("u", uuid="a"), removed("and this"), steering("and this", "s"), agent("b")]
    assert origins(written, *lines) == [("a", False), ("s", False)]


def test_it_is_also_where_the_attachment_comes_later(written: Written) -> None:
    session = written.read(user("u", uuid="a"), removed("and this"))
    written.add(steering("and this", "s"))
    parts = list(written.source.read(transcript_of(written.path, written.root), session.checkpoint, settle_ms=0))
    (append,) = [change for change in parts[0].changes if isinstance(change, Append)]
    assert (append.turn, append.items, append.origin) == (2, (), "s")


@pytest.mark.parametrize("attached", [["s", "t"], ["t", "s"], ["t"], ["s"]])
def test_of_several_the_latest_is_called_by_its_attachment_and_none_by_that_of_another(
    written: Written, attached: list[str]
) -> None:
    words = {"s": "x", "t": "y"}
    lines = [removed("x"), removed("y"), *(steering(words[uuid], uuid) for uuid in attached)]
    found = [origin for origin, _ in origins(written, user("u", uuid="a"), *lines)]
    assert found == ["a", None, "t" if "t" in attached else None]


@pytest.mark.parametrize("line", [user("u", uuid=None), agent("a")])
def test_a_turn_whose_message_has_no_uuid_has_no_origin(written: Written, line: Line) -> None:
    assert origins(written, line) == [(None, False)]


def test_a_continued_turn_keeps_its_origin(written: Written) -> None:
    session = written.read(user("u", uuid="a", forkedFrom={"sessionId": "o", "messageUuid": "m"}))
    written.add(agent("a"))
    parts = list(written.source.read(transcript_of(written.path, written.root), session.checkpoint, settle_ms=0))
    assert [(one.origin, one.is_copy) for one in parts[0].changes if isinstance(one, Append)] == [("m", True)]
