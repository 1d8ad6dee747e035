"""What the agent said, thought and failed to say."""

from typing import Any

import pytest

from schemas.items import Kind
from tests.indexer.sources.claude_code.written import CWD, TEN, Written, agent, attachment, call, result, system, user


def test_each_block_stands_where_its_line_stands(written: Written) -> None:
    session = written.read(
        user("Fix it"),
        agent({"type": "thinking", "thinking": "The span is off.", "signature": "c2ln"}),
        agent("Looking."),
        agent(call("t1", "Bash", command="ls")),
        result("t1", "a.rs"),
        agent("Found it.", stop_reason="end_turn"),
    )
    assert session.said == [
        [
            ("user", "Fix it"),
            ("thinking", "The span is off."),
            ("agent", "Looking."),
            ("tool", "Bash: ls"),
            ("agent", "Found it."),
        ]
    ]
    assert [item.at_ms for item in session.turns[0].items] == [TEN + 1000 * second for second in (0, 1, 2, 3, 5)]


def test_adjacent_text_of_one_answer_is_joined_over_its_lines(written: Written) -> None:
    session = written.read(
        user("Who wrote it?"),
        agent("The parser is old.", id="m1"),
        {"type": "progress", "data": {"type": "hook_progress"}},
        agent("Two people", "wrote it.", id="m1"),
        agent("Shall I go on?", id="m2"),
        agent("Without an id", id=None),
        agent("stay apart", id=None),
    )
    assert session.texts == [
        [
            "Who wrote it?",
            "The parser is old.\nTwo people\nwrote it.",
            "Shall I go on?",
            "Without an id",
            "stay apart",
        ]
    ]


def test_words_of_two_blocks_never_become_one_word_or_one_line(written: Written) -> None:
    session = written.read(
        user([{"type": "text", "text": "tea"}, {"type": "text", "text": "pot"}]), agent("ket", "tle")
    )
    assert session.texts == [["tea\npot", "ket\ntle"]]


def test_text_of_one_answer_with_a_tool_between_is_not_joined(written: Written) -> None:
    session = written.read(
        user("u"), agent("One", call("t1", "Bash", command="ls"), "two"), result("t1"), agent("three")
    )
    assert session.texts == [["u", "One", "Bash: ls", "two", "three"]]


def test_joined_text_goes_on_in_a_later_read(written: Written) -> None:
    session = written.read(user("u"), agent("One "))
    written.add(agent("sentence."))
    written.read_on(session)
    assert session.texts == [["u", "One \nsentence."]]


def test_empty_and_unreadable_blocks_are_ignored(written: Written) -> None:
    session = written.read(
        user("u"),
        agent(
            "",
            {"type": "thinking", "thinking": "", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "eA=="},
            {"type": "fallback"},
            {"type": "hologram"},
            {"type": "text"},
            7,
        ),
        {"type": "assistant", "message": None},
        {"type": "assistant", "message": {"content": None}},
        {"type": "assistant"},
        agent("a"),
    )
    assert session.texts == [["u", "a"]]
    assert session.reasons == [(2, "unknown block: hologram")]


def synthetic(words: str, **more: Any) -> dict[str, Any]:
    line = agent(words, **more)
    line["message"]["model"] = "<synthetic>"
    return line


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (synthetic("Prompt is too long"), "Prompt is too long"),
        (agent("API Error: 529", isApiErrorMessage=True), "API Error: 529"),
        (synthetic("Usage limit reached", errorDetails="resets at 3pm"), "Usage limit reached\nresets at 3pm"),
        (synthetic("", error="rate_limit", apiErrorStatus=429), "rate_limit"),
        (synthetic("No response requested."), None),
    ],
)
def test_an_answer_that_is_none_is_a_notice(written: Written, line: dict[str, Any], shown: str | None) -> None:
    session = written.read(user("u"), line)
    assert session.said == [[("user", "u"), *([] if shown is None else [("notice", shown)])]]


def test_a_partial_answer_is_kept(written: Written) -> None:
    session = written.read(user("u"), agent("Half an ans", isAbortedMidStream=True))
    assert session.texts == [["u", "Half an ans"]]


def test_a_summary_on_an_agents_line_is_a_notice(written: Written) -> None:
    session = written.read(user("u"), agent("Summary: so far", isCompactSummary=True))
    assert session.said == [[("user", "u"), ("notice", "Summary: so far")]]


def test_lines_that_a_later_one_supersedes_are_dropped(written: Written) -> None:
    session = written.read(
        user("u"),
        agent("Kept.", id="m0"),
        agent("Wrong", id="m1", uuid="x1"),
        agent(call("t1", "Bash", command="ls"), id="m1", uuid="x2"),
        agent("Right", id="m2", supersedesUuids=["x1", "x2", "never-written", 7]),
        result("t1", "late"),
    )
    assert session.said[0][:3] == [("user", "u"), ("agent", "Kept."), ("agent", "Right")]


def test_superseded_lines_of_an_earlier_read_are_dropped(written: Written) -> None:
    session = written.read(user("u"), agent("Wrong", id="m1", uuid="x1"), agent("Wronger", id="m2", uuid="x2"))
    written.add(agent("Right", id="m3", supersedesUuids=["x1", "x2"]))
    written.read_on(session)
    assert session.texts == [["u", "Right"]]


def test_what_stands_behind_a_superseded_line_stays_where_it_is(written: Written) -> None:
    session = written.read(
        user("u"),
        agent("Wrong", id="m1", uuid="x1"),
        system("model_refusal_fallback", content="another model answers"),
        agent("Right", id="m2", supersedesUuids=["x1"]),
    )
    seen = [(item.kind, item.text) for item in session.turns[0].items if item.text]
    assert seen == [(Kind.USER, "u"), (Kind.NOTICE, "another model answers"), (Kind.AGENT, "Right")]
    assert "Wrong" not in str(session.turns)


def test_what_is_superseded_in_a_later_read_is_dropped_from_its_own_turn(written: Written) -> None:
    session = written.read(
        user("u"),
        agent("Wrong", id="m1", uuid="x1"),
        system("model_refusal_fallback", content="another model answers"),
    )
    written.add(agent("Right", id="m2", supersedesUuids=["x1"]), user("v"), agent("a", id="m3"), agent("b", id="m4"))
    written.read_on(session)
    assert [[text for text in turn if text] for turn in session.texts] == [
        ["u", "another model answers", "Right"],
        ["v", "a", "b"],
    ]


@pytest.mark.parametrize("is_in_one_read", [True, False])
@pytest.mark.parametrize("is_steering", [True, False])
@pytest.mark.parametrize("count", [1, 3])
def test_a_line_is_superseded_also_where_a_message_was_sent_since(
    written: Written, is_in_one_read: bool, is_steering: bool, count: int
) -> None:
    words = [f"v{number}" for number in range(count)]
    typed = [
        attachment("queued_command", prompt=word, commandMode="prompt") if is_steering else user(word) for word in words
    ]
    session = written.read(user("u", forkedFrom={"sessionId": "o", "messageUuid": "m"}), agent("Wrong", uuid="x1"))
    for line in [*typed, agent("Right", id="m2", supersedesUuids=["x1"])]:
        written.add(line)
        session = written.read_on(session) if not is_in_one_read else session
    session = written.read_on(session)
    seen = [[text for text in turn if text] for turn in session.texts]
    assert seen == [["u"], *[[f"v{number}"] for number in range(count - 1)], [f"v{count - 1}", "Right"]]


def test_a_tool_of_the_servers_has_its_result_in_the_same_answer(written: Written) -> None:
    found = [
        {"type": "web_search_result", "title": "Parsing", "url": "https://example.org/p", "encrypted_content": "x"}
    ]
    session = written.read(
        user("u"),
        agent(
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "open ranges"}},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": found},
            {"type": "server_tool_use", "id": "s2", "name": "web_search", "input": {"query": "again"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "s2",
                "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
            },
        ),
    )
    first, second = session.turns[0].items[1:]
    assert (first.label, first.status, first.output) == (
        "web_search: open ranges",
        "ok",
        "Parsing: https://example.org/p",
    )
    assert (second.label, second.status, second.output) == ("web_search: again", "failed", "max_uses_exceeded")


def test_lone_halves_of_pairs_become_replacement_characters(written: Written) -> None:
    written.add(user("u"))
    written.add_bytes(
        b'{"type":"assistant","uuid":"v","message":{"content":[{"type":"text","text":"cut \\ud83d here"}]}}\n'
    )
    assert written.read().texts == [["u", "cut \ufffd here"]]


def test_the_directory_may_change_and_the_first_one_names_the_project(written: Written) -> None:
    session = written.read(
        {"type": "progress", "cwd": CWD},
        user("u", cwd=f"{CWD}/src"),
        agent(call("t", "Read", file_path=f"{CWD}/src/a.rs"), cwd="/elsewhere"),
        {"type": "relocated", "relocatedCwd": "/moved", "cwd": None, "uuid": None},
    )
    assert str(session.the_facts.project) == CWD
    assert session.texts == [["u", "Read src/a.rs"]]


def test_a_time_that_is_missing_or_no_time_is_the_one_before(written: Written) -> None:
    session = written.read(
        user("u"),
        agent("a", timestamp=None),
        agent("b", id="m2", timestamp="soon"),
        agent("c", id="m3", timestamp=1796032800),
        agent("d", id="m4", timestamp="9999-99-99T00:00:00Z"),
        user("v", timestamp=None),
    )
    assert {item.at_ms for turn in session.turns for item in turn.items} == {TEN}
    assert [turn.at_ms for turn in session.turns] == [TEN, TEN]


def test_without_any_time_a_turn_has_that_of_the_file(written: Written) -> None:
    session = written.read(user("u", timestamp=None))
    assert session.turns[0].at_ms == written.path.stat().st_mtime_ns // 1_000_000


def test_the_order_is_the_files_and_the_start_the_smallest_time(written: Written) -> None:
    session = written.read(
        user("u", timestamp="2026-11-30T10:00:05.000Z"),
        agent("b", timestamp="2026-11-30T10:00:09.000Z"),
        agent("a", id="m2", timestamp="2026-11-30T10:00:01.000Z"),
    )
    assert session.texts == [["u", "b", "a"]]
    assert session.the_facts.started_ms == TEN + 1000


def test_a_second_spelling_of_the_sessions_id_is_known_and_changes_nothing(written: Written) -> None:
    session = written.read(user("u", session_id="another"), agent("a", session_id="another"))
    assert (session.texts, session.skipped) == ([["u", "a"]], [])


def test_an_answers_usage_and_reasons_to_stop_are_not_text(written: Written) -> None:
    usage = {"input_tokens": 3, "output_tokens": 5, "service_tier": "kettle"}
    line = agent("a")
    line["message"] |= {"usage": usage, "stop_sequence": "kettle", "container": {"id": "kettle"}}
    session = written.read(user("u"), line)
    assert session.texts == [["u", "a"]]
    assert "kettle" not in str(session.turns)
