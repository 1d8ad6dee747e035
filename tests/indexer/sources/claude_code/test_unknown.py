"""What a new version may bring: it is counted and hides nothing."""

import json
import re
from collections import Counter
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.sources import unknown as unknown_module
from tests.indexer.sources.claude_code.written import Written, agent, attachment, sidecar, system, user, written_in


def test_a_message_of_an_unknown_origin_is_counted_and_begins_a_turn(written: Written) -> None:
    session = written.read(
        user("one", origin={"kind": "human"}),
        user("two", origin={"kind": "oracle"}),
        user("three", origin={"kind": 7}),
        user("four", origin="oracle"),
    )
    assert session.texts == [["one"], ["two"], ["three"], ["four"]]
    assert session.reasons == [(2, "unknown origin: oracle")]


def test_what_is_unknown_is_counted_by_what_it_is(written: Written) -> None:
    session = written.read(
        user("u", mood="good", haste=1),
        agent("a", mood="good", version="2.2.0"),
        agent("b", id="m2", version="2.2.0"),
        {"type": "hologram", "text": "x"},
        sidecar("hologram"),
        system("seance", content="x"),
        attachment("crystal_ball"),
        attachment("crystal_ball"),
        sidecar("queue-operation", operation="ponder", content="x"),
        sidecar("ai-title", aiTitle="t", mood="good"),
        user([{"type": "text", "text": "v"}, {"type": "hologram"}, {"text": "x"}]),
    )
    assert session.texts == [["u", "a", "b"], ["v"]]
    assert session.reasons == [
        (1, "unknown field: haste"),
        (1, "unknown field: mood"),
        (2, "unknown version: 2.2"),
        (2, "unknown field: mood"),
        (4, "unknown type: hologram"),
        (5, "unknown type: hologram"),
        (6, "unknown system subtype: seance"),
        (7, "unknown attachment: crystal_ball"),
        (8, "unknown attachment: crystal_ball"),
        (9, "unknown queue operation: ponder"),
        (10, "unknown field: mood"),
        (11, "unknown block: hologram"),
        (11, "unknown block: None"),
    ]


@pytest.mark.parametrize("version", ["1.0.24", "2.0.14", "2.1.250", "0.2.9"])
def test_versions_that_were_seen_are_known(written: Written, version: str) -> None:
    assert written.read(user("u", version=version)).skipped == []


@pytest.mark.parametrize("version", ["2.2.0", "3.0.0", "x", "2"])
def test_other_versions_are_counted(written: Written, version: str) -> None:
    assert len(written.read(user("u", version=version)).skipped) == 1


def test_a_loud_line_of_an_unknown_kind_is_shown(written: Written) -> None:
    assert written.read(user("u"), system("seance", content="boo", level="error")).texts == [["u", "boo"]]


def test_reasons_are_short_and_few_and_none_is_hidden_by_another(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unknown_module, "MAX_TIMES", 10)
    long = "x" * 500
    lines = [sidecar(f"{number}-{long}") for number in range(200)]
    others = [
        *[sidecar("often")] * 100,
        system(long),
        attachment(long),
        agent({"type": long}),
        user("", **{long: 1}),
        user("", version=f"9.{long}"),
        {"type": "system", "subtype": "informational\n"},
    ]
    session = written.read(user("u"), *others, *lines, agent("a"))
    assert session.texts == [["u", "a"]]
    reasons = Counter(reason for _, reason in session.reasons)
    assert len(reasons) == unknown_module.MAX_REASONS + 1
    assert (reasons["unknown type: often"], reasons[unknown_module.MORE]) == (10, 10)
    assert {"unknown block", "unknown attachment", "unknown field", "unknown version", "unknown system subtype"} <= {
        reason.partition(":")[0] for _, reason in session.reasons
    }
    assert max(len(reason) for _, reason in session.reasons) < 120
    assert all(reason.isprintable() for _, reason in session.reasons)


NAMES = re.findall(
    r"\w+",
    """
    type subtype message content role id model name input text thinking tool_use_id is_error toolUseResult
    stdout stderr interrupted agentId attachment prompt commandMode origin kind isMeta isSidechain
    isCompactSummary uuid parentUuid sessionId cwd timestamp version forkedFrom messageUuid supersedesUuids
    operation leafUuid summary customTitle prUrl data parentToolUseID hookName command error errorDetails
    hookErrors compactMetadata level source file_path pattern todos questions offset limit status
    """,
)
VALUES = [
    "user",
    "assistant",
    "system",
    "attachment",
    "progress",
    "queue-operation",
    "summary",
    "pr-link",
    "text",
    "thinking",
    "tool_use",
    "tool_result",
    "web_search_tool_result",
    "image",
    "prompt",
    "remove",
    "enqueue",
    "queued_command",
    "hook_blocking_error",
    "agent_progress",
    "api_error",
    "Bash",
    "Read",
    "Task",
    "TodoWrite",
    "AskUserQuestion",
    "mcp__a__b",
    "t1",
    "../../x",
    "a\0b",
    "<command-name>/x</command-name>",
    "<bash-input>",
    "<persisted-output>",
    "2026-11-30T10:00:00Z",
    "/home/a",
    "",
]
SCALARS = st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats() | st.sampled_from(VALUES)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from(NAMES), JSON, max_size=8)
TYPES = st.sampled_from(["user", "assistant", "system", "attachment", "progress", "queue-operation", "summary"])
BLOCKS = st.builds(lambda block, type_: {**block, "type": type_}, OBJECTS, st.sampled_from(VALUES))
ODD = st.builds(
    lambda line, type_, content, inner: {
        **line,
        "type": type_,
        "message": {**line, "content": content},
        "attachment": inner,
    },
    OBJECTS,
    TYPES,
    JSON | st.lists(BLOCKS, max_size=3),
    BLOCKS,
)


@settings(max_examples=50)
@given(lines=st.lists(ODD | OBJECTS, max_size=8), place=st.sampled_from(["", "agent-1.jsonl"]))
def test_no_line_stops_the_reading_whatever_it_holds(
    tmp_path_factory: pytest.TempPathFactory, lines: list[dict[str, Any]], place: str
) -> None:
    written = written_in(tmp_path_factory.mktemp("odd"))
    if place:
        written = written.beside(f"-home-a-kettle/{place}")
    written.add_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    session = written.read(user("<command-message>the last</command-message>"))
    assert session.texts[-1][-1] == "/the last"
    orjson.dumps(session.checkpoint)


@pytest.mark.parametrize("depth", [100, 400, 3000])
def test_no_depth_stops_the_reading(written: Written, depth: int) -> None:
    raw = b'[{"content":' * depth + b"0" + b"}]" * depth
    line = b'{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":' + raw + b"}]}}\n"
    made = b'{"type":"assistant","message":{"content":[{"type":"tool_use","id":"d","name":"X","input":{"a":1,"b":'
    written.add(user("u"))
    written.add_bytes(line + made + raw + b"}}]}}\n")
    session = written.read(agent("a"))
    assert session.texts[0][-1] == "a"
    assert len(session.texts[0]) == 4
