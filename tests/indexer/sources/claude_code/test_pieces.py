"""However a file is read, in one pass, in pieces cut anywhere, or by readers that die in between: the same is read."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.sources.base import Unsettled, Waiting
from indexer.sources.claude_code import seen as seen_module
from indexer.sources.claude_code import source as source_module
from tests.indexer.sources.claude_code.written import (
    ReadSession,
    Written,
    agent,
    at,
    attachment,
    call,
    result,
    sidecar,
    system,
    user,
    written_in,
)
from tests.indexer.sources.model import transcript_of

WORDS = st.sampled_from(["one", "two", "grün 中🎉", "line\none", "\u2028\x85", "x" * 40])
IDS = st.sampled_from(["t1", "t2", "t3"])
ANSWERS = st.sampled_from(["m1", "m2", None])
WRAPPERS = st.sampled_from(
    [
        "<command-name>/tidy</command-name>",
        "<command-message>x</command-message><command-name>/x</command-name>",
        "<local-command-stdout>out</local-command-stdout>",
        "<bash-input>ls</bash-input>",
        "<bash-stdout>a</bash-stdout><bash-stderr>b</bash-stderr>",
        "[Request interrupted by user]",
        "This session is being continued from a previous conversation. Summary.",
        "Warmup",
        "<system-reminder>x</system-reminder>",
        "",
    ]
)

USERS = st.builds(user, WORDS | WRAPPERS)
METAS = st.builds(lambda words: user(words, isMeta=True), WORDS)
AGENTS = st.builds(lambda words, id_: agent(words, id=id_), WORDS | st.just(""), ANSWERS)
THOUGHTS = st.builds(lambda words, id_: agent({"type": "thinking", "thinking": words}, id=id_), WORDS, ANSWERS)
CALLS = st.builds(
    lambda id_, name, words, answer: agent(call(id_, name, command=words, description=words, prompt=words), id=answer),
    IDS,
    st.sampled_from(["Bash", "Task"]),
    WORDS,
    ANSWERS,
)
RESULTS = st.builds(
    lambda id_, words, is_error, more: result(id_, words, is_error=is_error, more=more),
    IDS,
    WORDS,
    st.booleans(),
    st.sampled_from([None, {"stdout": "o", "stderr": "e"}, {"agentId": "a1"}, "Error"]),
)
SUPERSEDING = st.builds(
    lambda words, uuids, id_: agent(words, id=id_, supersedesUuids=uuids),
    WORDS,
    st.lists(st.integers(0, 20).map(lambda number: f"u{number}"), max_size=3),
    ANSWERS,
)
QUEUE = st.builds(
    lambda operation, words: sidecar("queue-operation", operation=operation, content=words, timestamp=at(5)),
    st.sampled_from(["enqueue", "dequeue", "remove", "popAll"]),
    st.none() | WORDS,
)
STEERING = st.builds(lambda words: attachment("queued_command", prompt=words, commandMode="prompt"), WORDS)
OTHERS = st.sampled_from(
    [
        {"type": "progress", "data": {"type": "agent_progress", "agentId": "a1"}, "parentToolUseID": "t1"},
        {"type": "progress", "data": {"type": "agent_progress", "agentId": "a2"}, "parentToolUseID": "t2"},
        system("compact_boundary"),
        system("api_error", error="busy", retryAttempt=1, maxRetries=3),
        system("local_command", content="<local-command-stderr>e</local-command-stderr>"),
        attachment("hook_blocking_error", hookName="Stop", stderr="bad"),
        attachment("file", content="x" * 3000),
        {"type": "progress", "data": {}},
        sidecar("custom-title", customTitle="Mine"),
        sidecar("summary", summary="Summed up", leafUuid="u3"),
        sidecar("pr-link", prNumber=1, prUrl="https://example.org/1"),
        sidecar("hologram"),
    ]
)
SIDES = st.builds(
    lambda line, parent: {**line, "isSidechain": True, "parentUuid": parent},
    USERS | AGENTS | CALLS | RESULTS,
    st.none() | st.integers(0, 20).map(lambda number: f"u{number}"),
)
BROKEN = st.sampled_from([b"", b"\0\0\0", b'{"type":"user","message":{"con', b"\xff\xfe", b"[]"])
LINES = st.lists(
    USERS | METAS | AGENTS | THOUGHTS | CALLS | RESULTS | SUPERSEDING | QUEUE | STEERING | OTHERS | SIDES | BROKEN,
    max_size=25,
)


def content_of(folder: Path, lines: list[Any], times: list[int], doubled: list[int]) -> tuple[Written, bytes]:
    """The lines as a file, some of them written a second time."""
    written = written_in(folder)
    raw = []
    for number, line in enumerate(lines):
        if isinstance(line, dict) and "timestamp" not in line and times:
            line = {**line, "timestamp": at(times[number % len(times)])}
        raw.append(written.encoded(line))
    raw += [raw[number % len(raw)] for number in doubled if raw]
    return written, b"".join(raw)


def agree(one: ReadSession, other: ReadSession) -> None:
    assert one.turns == other.turns
    assert one.facts == other.facts
    assert one.calls == other.calls
    assert {id_: (side.turns, side.facts) for id_, side in one.sides.items()} == {
        id_: (side.turns, side.facts) for id_, side in other.sides.items()
    }


def whole(written: Written, content: bytes) -> ReadSession:
    written.path.parent.mkdir(parents=True, exist_ok=True)
    written.path.write_bytes(content)
    session = ReadSession()
    with suppress(Waiting):
        written.read_on(session)
    return session


@given(
    lines=LINES,
    times=st.lists(st.integers(0, 30), max_size=5),
    doubled=st.lists(st.integers(0, 30), max_size=8),
    cuts=st.lists(st.integers(0, 8000), max_size=12),
    part_bytes=st.sampled_from([1, 300, 4_000_000]),
    kept=st.sampled_from([4, 4096]),
)
def test_a_file_read_in_pieces_cut_anywhere_equals_the_file_read_at_once(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[Any],
    times: list[int],
    doubled: list[int],
    cuts: list[int],
    part_bytes: int,
    kept: int,
) -> None:
    written, content = content_of(tmp_path_factory.mktemp("pieces"), lines, times, doubled)
    session = ReadSession()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seen_module, "KEPT", kept)
        patch.setattr(source_module, "PART_BYTES", part_bytes)
        begin = 0
        for end in [*sorted(min(cut, len(content)) for cut in cuts), len(content)]:
            written.add_bytes(content[begin:end])
            begin = end
            try:
                written.read_on(session, settle_ms=600_000)
            except (Unsettled, Waiting):
                continue
        agree(session, whole(written, content))


@given(lines=LINES, times=st.lists(st.integers(0, 30), max_size=5), doubled=st.lists(st.integers(0, 30), max_size=8))
def test_a_reader_that_dies_after_every_line_reads_the_same(
    tmp_path_factory: pytest.TempPathFactory, lines: list[Any], times: list[int], doubled: list[int]
) -> None:
    written, content = content_of(tmp_path_factory.mktemp("restarts"), lines, times, doubled)
    expected = whole(written, content)
    session = ReadSession()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_module, "PART_BYTES", 1)
        while True:
            parts = written.source.read(transcript_of(written.path, written.root), session.checkpoint, settle_ms=0)
            try:
                part = next(parts, None)
            except Waiting:
                part = None
            if part is None:
                break
            session.apply(part)
    agree(session, expected)


@given(before=LINES, after=LINES)
def test_a_file_that_was_rewritten_is_read_like_a_new_one(
    tmp_path_factory: pytest.TempPathFactory, before: list[Any], after: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("rewritten")
    written, old = content_of(folder, [user("old"), *before], [], [])
    session = whole(written, old)
    _, new = content_of(folder, [user("new"), *after], [], [])
    written.path.unlink()
    expected = whole(written, new)
    written.read_on(session)
    # A turn keeps the time that it got first.
    assert [turn.items for turn in session.turns] == [turn.items for turn in expected.turns]
    assert session.facts == expected.facts
    assert session.skipped == expected.skipped
