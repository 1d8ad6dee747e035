import pytest
import zstandard

from indexer.sources.codex import source as source_module
from tests.indexer.sources.codex.rollouts import (
    CHILD,
    OTHER,
    THREAD,
    CodexHome,
    Line,
    ReadSession,
    agent,
    complete,
    context,
    encoded,
    meta,
    second,
    shown,
    spawned,
    started,
    touch_later,
    user,
    user_event,
    user_item,
)
from tests.indexer.sources.model import transcript_of

SECOND, THIRD = "019adf00-0000-7000-8000-0000000000b2", "019adf00-0000-7000-8000-0000000000b3"


def task(turn_id: str, message: str, answer: str) -> list[Line]:
    return [started(turn_id), *user(message), context(turn_id), agent(answer), complete(turn_id)]


def base(rollout: str, lines: list[Line | bytes], count: int) -> dict[str, object]:
    """What points to the first lines of a file."""
    return {"thread_id": rollout, "end_ordinal_exclusive": count, "end_byte_offset": len(encoded(lines[:count]))}


FIRST_LINES: list[Line | bytes] = [
    meta(history_mode="paginated"),
    *task("T1", "One", "a"),
    *task("T2", "Two", "reverted"),
]


def second_lines() -> list[Line | bytes]:
    header = meta(history_mode="paginated", history_base=base(THREAD, FIRST_LINES, 7), timestamp="2026-11-30T12:00:00Z")
    return [header, *task("T3", "Else", "b")]


def test_generations_are_joined_and_what_was_reverted_is_left_out(codex: CodexHome) -> None:
    codex.write(*FIRST_LINES)
    path = codex.write(*second_lines(), rollout=SECOND, stamp="2026-11-30T12-00-00")
    session = codex.read(path)
    assert codex.listed() == [path]
    assert session.texts == [["One", "a"], ["Else", "b"]]
    assert session.origins == {1: "T1", 2: "T3"}
    assert session.copies == set()
    assert session.facts is not None
    assert (session.facts.key, session.facts.title, session.facts.started_ms) == (THREAD, "One", second(-1))
    assert session.skipped == []


def test_the_head_of_a_later_generation_tells_when_the_thread_was_started(codex: CodexHome) -> None:
    codex.write(*FIRST_LINES)
    path = codex.write(*second_lines(), rollout=SECOND, stamp="2026-11-30T12-00-00")
    facts = codex.source.facts(transcript_of(path, codex.root_of(path)))
    assert facts is not None
    assert (facts.key, facts.started_ms) == (THREAD, second(-1))


def test_the_head_of_a_fork_tells_when_it_was_forked(codex: CodexHome) -> None:
    codex.write(*FIRST_LINES)
    header = meta(OTHER, history_base=base(THREAD, FIRST_LINES, 7), timestamp="2026-11-30T12:00:00Z")
    path = codex.write(header, *task("T3", "Else", "b"), thread=OTHER, stamp="2026-11-30T12-00-00")
    facts, read = codex.source.facts(transcript_of(path, codex.root_of(path))), codex.read(path).facts
    assert facts is not None and read is not None
    assert facts.started_ms == read.started_ms == second(7200)


def test_generations_are_followed_back_however_many_there_are(codex: CodexHome) -> None:
    codex.write(*FIRST_LINES)
    lines = second_lines()
    codex.write(*lines, rollout=SECOND, stamp="2026-11-30T12-00-00")
    header = meta(history_base=base(SECOND, lines, len(lines)))
    path = codex.write(header, *task("T4", "Last", "c"), rollout=THIRD, stamp="2026-12-01T08-00-00")
    assert codex.read(path).texts == [["One", "a"], ["Else", "b"], ["Last", "c"]]
    assert codex.listed() == [path]


def test_a_new_generation_takes_over_from_the_file_before(codex: CodexHome) -> None:
    first = codex.write(*FIRST_LINES)
    session = codex.read(first)
    assert session.texts == [["One", "a"], ["Two", "reverted"]]
    path = codex.write(*second_lines(), rollout=SECOND, stamp="2026-11-30T12-00-00")
    session.checkpoint = None
    codex.read_on(path, session)
    assert session.texts == [["One", "a"], ["Else", "b"]]
    codex.append(first, *user("too late"))
    assert codex.read_on(first, session) == 0
    assert not codex.source.owns(codex.root_of(first), first)


def test_a_generation_is_read_on_where_it_was_left(codex: CodexHome) -> None:
    first = codex.write(*FIRST_LINES)
    path = codex.write(*second_lines(), rollout=SECOND, stamp="2026-11-30T12-00-00")
    session = codex.read(path)
    first.rename(codex.path / "elsewhere")
    codex.append(path, agent("c"))
    assert codex.read_on(path, session) == 1
    assert session.texts == [["One", "a"], ["Else", "b", "c"]]


def test_a_reading_of_many_parts_can_stop_in_any_file(codex: CodexHome, monkeypatch: pytest.MonkeyPatch) -> None:
    codex.write(*FIRST_LINES)
    path = codex.write(*second_lines(), rollout=SECOND, stamp="2026-11-30T12-00-00")
    whole = codex.read(path)
    monkeypatch.setattr(source_module, "PART_BYTES", 1)
    session = ReadSession()
    while part := next(iter(codex.source.read(transcript_of(path, codex.root_of(path)), session.checkpoint)), None):
        session.apply(part)
    assert session.state == whole.state


def test_a_base_that_is_missing_is_told(codex: CodexHome) -> None:
    path = codex.write(*second_lines(), rollout=SECOND, stamp="2026-11-30T12-00-00")
    session = codex.read(path)
    assert session.texts == [["what came before in this thread is missing"], ["Else", "b"]]


def test_a_base_may_be_compressed_or_archived(codex: CodexHome) -> None:
    first = codex.write(*FIRST_LINES)
    codex.archived.mkdir()
    packed = codex.archived / f"{first.name}.zst"
    packed.write_bytes(zstandard.compress(first.read_bytes()))
    first.unlink()
    path = codex.write(*second_lines(), rollout=SECOND, stamp="2026-11-30T12-00-00")
    assert codex.read(path).texts == [["One", "a"], ["Else", "b"]]


def test_without_a_byte_offset_the_ordinal_tells_where_the_base_ends(codex: CodexHome) -> None:
    codex.write(*({**one, "ordinal": number} for number, one in enumerate(FIRST_LINES) if isinstance(one, dict)))
    header = meta(history_base={"thread_id": THREAD, "end_ordinal_exclusive": 7})
    path = codex.write(header, *task("T3", "Else", "b"), rollout=SECOND, stamp="2026-11-30T12-00-00")
    assert codex.read(path).texts == [["One", "a"], ["Else", "b"]]


def test_a_thread_goes_on_in_a_new_file_without_having_been_reverted(codex: CodexHome) -> None:
    codex.write(*FIRST_LINES)
    header = meta(history_mode="paginated", history_base=base(THREAD, FIRST_LINES, len(FIRST_LINES)))
    path = codex.write(header, *task("T3", "More", "b"), rollout=SECOND, stamp="2026-12-01T12-00-00")
    assert codex.read(path).texts == [["One", "a"], ["Two", "reverted"], ["More", "b"]]


def test_the_newest_file_is_told_by_its_name_and_not_by_when_it_was_touched(codex: CodexHome) -> None:
    first = codex.write(*FIRST_LINES)
    path = codex.write(*second_lines(), rollout=SECOND, stamp="2026-11-30T12-00-00")
    touch_later(first)
    assert codex.listed() == [path]


def test_a_base_ends_amid_a_compressed_file_at_the_byte_of_the_unpacked_one(codex: CodexHome) -> None:
    first = codex.write(*FIRST_LINES)
    raw = first.read_bytes()
    first.with_name(f"{first.name}.zst").write_bytes(zstandard.compress(raw[:900]) + zstandard.compress(raw[900:]))
    first.unlink()
    path = codex.write(*second_lines(), rollout=SECOND, stamp="2026-11-30T12-00-00")
    assert codex.read(path).texts == [["One", "a"], ["Else", "b"]]


def test_bases_in_a_circle_end(codex: CodexHome) -> None:
    codex.write(meta(history_base={"thread_id": SECOND, "end_byte_offset": 10_000}), *user("One"))
    header = meta(history_base={"thread_id": THREAD, "end_byte_offset": 10_000})
    path = codex.write(header, *user("Two"), rollout=SECOND, stamp="2026-11-30T12-00-00")
    assert codex.read(path).texts == [["One"], ["Two"]]


def test_each_file_of_a_thread_chooses_its_layers(codex: CodexHome) -> None:
    older: list[Line | bytes] = [meta(), user_item("One"), agent("a")]
    codex.write(*older)
    header = meta(history_base=base(THREAD, older, 3))
    path = codex.write(header, *user("Two"), agent("b"), rollout=SECOND, stamp="2026-11-30T12-00-00")
    assert codex.read(path).texts == [["One", "a"], ["Two", "b"]]


def test_a_paginated_fork_marks_what_it_has_from_its_source(codex: CodexHome) -> None:
    codex.write(*FIRST_LINES)
    header = meta(OTHER, forked_from_id=THREAD, history_mode="paginated", history_base=base(THREAD, FIRST_LINES, 7))
    path = codex.write(header, *task("T9", "Else", "b"), thread=OTHER, stamp="2026-11-30T12-00-00")
    session = codex.read(path)
    assert session.texts == [["One", "a"], ["Else", "b"]]
    assert (session.copies, session.origins) == ({1}, {1: "T1", 2: "T9"})
    assert session.facts is not None
    assert (session.facts.key, session.facts.started_ms) == (OTHER, second(-1))


def test_a_paginated_subagent_leaves_its_parents_history_out(codex: CodexHome) -> None:
    codex.write(*FIRST_LINES)
    header = spawned(history_mode="paginated", history_base=base(THREAD, FIRST_LINES, 7))
    path = codex.write(header, *task("T9", "Look around", "b"), thread=CHILD)
    assert codex.read(path).texts == [["Look around", "b"]]


def test_a_file_that_was_migrated_is_read_anew(codex: CodexHome) -> None:
    path = codex.write(meta(), *user("One"), agent("a"), *user("Two"))
    session = codex.read(path)
    migrated = [
        meta(history_mode="paginated"),
        user_item("One"),
        shown("UserMessage", content=[{"type": "text", "text": "One"}]),
        user_event("One"),
        agent("a"),
        shown("AgentMessage", content=[{"type": "Text", "text": "a"}]),
    ]
    codex.write(*migrated)
    codex.read_on(path, session)
    assert session.texts == [["One", "a"]]


def test_ordinals_that_are_missing_or_come_twice_change_nothing(codex: CodexHome) -> None:
    lines = [meta(history_mode="paginated"), *user("One"), agent("a"), agent("b")]
    ordinals = [0, 1, 1, None, 1]
    numbered = [
        one if ordinal is None else {**one, "ordinal": ordinal} for one, ordinal in zip(lines, ordinals, strict=True)
    ]
    assert codex.read(codex.write(*numbered)).texts == [["One", "a", "b"]]
