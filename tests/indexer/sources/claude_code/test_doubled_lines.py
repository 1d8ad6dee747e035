"""A line once in a file, however often it was written."""

import json
import random
from functools import partial

import pytest

from indexer.sources.claude_code import seen as seen_module
from indexer.sources.claude_code import source as source_module
from indexer.sources.claude_code.seen import Seen
from tests.indexer.sources.claude_code.written import ReadSession, Written, agent, at, system, user


def history(count: int) -> list[dict[str, object]]:
    return [
        line
        for number in range(count)
        for line in (
            user(f"question {number}", uuid=f"q{number}", timestamp=at(2 * number)),
            agent(f"answer {number}", id=f"m{number}", uuid=f"a{number}", timestamp=at(2 * number + 1)),
        )
    ]


def test_each_message_written_twice_is_read_once(written: Written) -> None:
    lines = history(50)
    session = written.read(*[line for line in lines for _ in range(2)])
    assert session.texts == [[f"question {number}", f"answer {number}"] for number in range(50)]


def test_a_whole_history_written_again_is_read_once(written: Written) -> None:
    session = written.read(*history(100))
    written.add(*history(100), user("new"))
    written.read_on(session)
    assert len(session.turns) == 101


@pytest.mark.parametrize("is_in_one_pass", [True, False])
def test_a_history_longer_than_what_is_remembered_is_read_once(
    written: Written, monkeypatch: pytest.MonkeyPatch, is_in_one_pass: bool
) -> None:
    monkeypatch.setattr(seen_module, "KEPT", 64)
    session = ReadSession()
    for count in (200, 200, 300, 300):
        written.add(*history(count))
        if not is_in_one_pass:
            written.read_on(session)
    written.read_on(session)
    assert session.texts == [[f"question {number}", f"answer {number}"] for number in range(300)]
    assert len(json.dumps(session.checkpoint)) < 3000


@pytest.mark.parametrize("is_in_one_pass", [True, False])
@pytest.mark.parametrize("has_times", [True, False])
def test_a_long_history_that_was_written_again_with_other_times_is_read_once(
    written: Written, monkeypatch: pytest.MonkeyPatch, has_times: bool, is_in_one_pass: bool
) -> None:
    monkeypatch.setattr(seen_module, "KEPT", 64)
    session = ReadSession()
    for number, count in enumerate((200, 200, 300)):
        again = [line | {"timestamp": at(1000 * number + place)} for place, line in enumerate(history(count))]
        again = again if has_times else [line | {"timestamp": None} for line in again]
        for start in range(0, len(again), 90):
            written.add(*again[start : start + 90])
            if not is_in_one_pass:
                written.read_on(session)
    written.read_on(session)
    assert session.texts == [[f"question {number}", f"answer {number}"] for number in range(300)]


def test_new_lines_with_old_times_are_read(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_module, "KEPT", 16)
    session = written.read(*history(40), user("late", timestamp=at(0)), user("without a time", timestamp=None))
    assert session.texts[-2:] == [["late"], ["without a time"]]


def test_a_uuid_that_a_tool_printed_is_not_one_of_the_file(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_module, "KEPT", 16)
    printed = agent('a line is {"uuid":"late"} here', uuid="p")
    session = written.read(printed, *history(40), user("late", uuid="late", timestamp=at(0)))
    assert session.texts[-1] == ["late"]


def test_messages_that_a_compaction_wrote_again_are_read_once(written: Written) -> None:
    kept = history(2)
    session = written.read(
        *kept,
        system("compact_boundary", compactMetadata={"trigger": "auto", "preservedMessages": {"uuids": ["q1", "a1"]}}),
        user("Summary", isCompactSummary=True),
        *kept[2:],
        agent("Going on.", id="m9"),
    )
    assert session.texts == [
        ["question 0", "answer 0"],
        ["question 1", "answer 1", "conversation compacted (auto)", "Summary", "Going on."],
    ]


def test_the_checkpoint_does_not_grow_with_the_file(written: Written) -> None:
    session = written.read(*history(500))
    small = len(json.dumps(session.checkpoint))
    written.add(*history(6000))
    written.read_on(session)
    large = len(json.dumps(session.checkpoint))
    assert small < 11_000
    assert large < 36_000


def test_what_is_remembered_agrees_with_a_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_module, "KEPT", 32)
    chance = random.Random(7)
    seen, known, file = Seen(), set[str](), bytearray()
    times: dict[str, int] = {}
    for step in range(3000):
        uuid = chance.choice(sorted(known)) if known and chance.random() < 0.3 else f"n{step}"
        at_ms = times.setdefault(uuid, step + chance.randrange(-5, 5) if step > 5 else step)
        blocks = [bytes(file[:700]), bytes(file[700:])]
        assert seen.is_new(uuid, at_ms, partial(list, blocks)) is (uuid not in known)
        known.add(uuid)
        file += b'{"uuid":"%s"}\n' % uuid.encode()
        if chance.random() < 0.05:
            seen = Seen.from_json(json.loads(json.dumps(seen.as_json())))


def test_lines_are_doubled_over_the_bounds_of_parts(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "PART_BYTES", 1)
    assert len(written.read(*history(20), *history(20)).turns) == 20
