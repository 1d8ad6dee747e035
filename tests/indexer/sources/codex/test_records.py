import pytest

from schemas.items import Item, Kind
from tests.indexer.sources.codex.rollouts import (
    THREAD,
    CodexHome,
    Line,
    agent,
    agent_event,
    call,
    complete,
    context,
    event,
    item,
    line,
    meta,
    output,
    reasoning,
    second,
    shown,
    user,
    user_item,
)

ONE = user("One")


def test_what_the_agent_says_is_taken_from_the_items_whichever_twin_comes_first(codex: CodexHome) -> None:
    session = codex.session(*ONE, agent_event("a"), agent("a"), agent("b"), agent_event("b"))
    assert session.texts == [["One", "a", "b"]]
    assert session.of(Kind.AGENT)[0] == Item(Kind.AGENT, text="a", at_ms=second(4))


def test_without_items_what_the_agent_says_is_taken_from_events(codex: CodexHome) -> None:
    legacy = codex.session(*ONE, agent_event("a"))
    paginated = codex.session(*ONE, shown("AgentMessage", content=[{"type": "Text", "text": "a"}]))
    plan = codex.session(*ONE, shown("Plan", text="a"))
    assert legacy.texts == paginated.texts == plan.texts == [["One", "a"]]


def test_words_of_two_parts_never_become_one_word_or_one_line(codex: CodexHome) -> None:
    parts = [{"type": "output_text", "text": text} for text in ("ket", "tle")]
    shown_parts = [{"type": "text", "text": text} for text in ("tea", "pot")]
    session = codex.session(shown("UserMessage", content=shown_parts), item("message", role="assistant", content=parts))
    assert session.texts == [["tea\npot", "ket\ntle"]]
    assert codex.session(user_item("tea", "pot")).texts == [["tea\npot"]]


def test_commentary_and_final_answer_are_both_what_the_agent_says(codex: CodexHome) -> None:
    said = [
        item("message", role="assistant", phase=phase, content=[{"type": "output_text", "text": phase}])
        for phase in ("commentary", "final_answer")
    ]
    assert codex.session(*ONE, *said).texts == [["One", "commentary", "final_answer"]]


@pytest.mark.parametrize("role", ["developer", "system"])
def test_messages_of_developer_and_system_are_ignored(codex: CodexHome, role: str) -> None:
    said = item("message", role=role, content=[{"type": "input_text", "text": "Be brief"}])
    with_id = item("message", id="m1", role=role, content=[{"type": "input_text", "text": "Be brief"}])
    late = line("response_item", {"role": role, "content": [], "type": "message"})
    session = codex.session(*ONE, said, with_id, late)
    assert (session.texts, session.skipped) == ([["One"]], [])


def test_thinking_is_the_summary_else_the_content_and_nothing_where_it_is_encrypted(codex: CodexHome) -> None:
    session = codex.session(
        *ONE,
        event("agent_reasoning", text="**Plan**"),
        event("agent_reasoning", text="**Do**"),
        reasoning("**Plan**", "**Do**"),
        reasoning(content=[{"type": "reasoning_text", "text": "raw"}]),
        reasoning(),
        item("reasoning", id="rs_1", summary=[], encrypted_content="gAAAA"),
    )
    assert [one.text for one in session.of(Kind.THINKING)] == ["**Plan**\n\n**Do**", "raw"]


def test_without_items_thinking_is_taken_from_events(codex: CodexHome) -> None:
    legacy = codex.session(
        *ONE, event("agent_reasoning", text="a"), event("agent_reasoning_raw_content", text="b"), reasoning()
    )
    paginated = codex.session(*ONE, shown("Reasoning", summary_text=["a", "b"], raw_content=[]), reasoning())
    assert legacy.texts == [["One", "a", "b"]]
    assert paginated.texts == [["One", "a\n\nb"]]


@pytest.mark.parametrize(
    ("told", "notice"),
    [
        (event("turn_aborted", reason="interrupted"), "stopped by the user"),
        (event("turn_aborted", reason="review_ended"), "stopped: review ended"),
        (event("turn_aborted", reason="replaced"), "stopped: replaced"),
        (event("turn_aborted"), "stopped: aborted"),
        (event("guardian_assessment", status="approved"), "guardian: approved"),
        (event("entered_review_mode"), "review started"),
        (event("exited_review_mode", review_output=None), "review ended"),
        (event("thread_rolled_back"), "rolled back"),
        (event("error", message="no quota left"), "error: no quota left"),
        (complete("T1", error={"message": "no quota left"}), "error: no quota left"),
        (complete("T1", error="no quota left"), "error: no quota left"),
        (event("guardian_assessment", status="denied", rationale="too wide"), "guardian: denied: too wide"),
        (event("entered_review_mode", user_facing_hint="current changes"), "review started: current changes"),
        (shown("EnteredReviewMode", review="current changes"), "review started: current changes"),
        (shown("ExitedReviewMode", review="All good"), "review ended: All good"),
        (event("context_compacted"), "context compacted"),
        (shown("ContextCompaction"), "context compacted"),
        (line("compacted", {"message": "", "replacement_history": []}), "context compacted"),
    ],
)
def test_notices(codex: CodexHome, told: Line, notice: str) -> None:
    assert codex.session(*ONE, told).texts == [["One", notice]]


def test_a_review_tells_its_findings(codex: CodexHome) -> None:
    told = {"overall_explanation": "One thing.", "findings": [{"title": "Off by one", "body": "In span()."}]}
    session = codex.session(*ONE, event("exited_review_mode", review_output=told))
    assert session.notices == ["review ended: One thing.\nOff by one\nIn span()."]


def test_a_guardian_that_is_still_at_it_says_nothing(codex: CodexHome) -> None:
    assert codex.session(*ONE, event("guardian_assessment", status="in_progress")).texts == [["One"]]


def test_a_compaction_is_told_once_and_its_new_history_never(codex: CodexHome) -> None:
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "secret" * 1000}]}]
    compacted = line("compacted", {"message": "secret", "replacement_history": history})
    twice = [compacted, event("context_compacted"), shown("ContextCompaction")]
    session = codex.session(*ONE, agent("a"), *twice, agent("b"), *twice, *twice)
    assert session.texts == [["One", "a", "context compacted", "b", "context compacted", "context compacted"]]


def test_a_compaction_is_told_by_its_first_bytes_however_its_line_goes_on(codex: CodexHome) -> None:
    broken = b'{"timestamp":"2026-11-30T10:00:03.000Z","type":"compacted","payload":{"message":' + b"[" * 5000
    session = codex.session(*ONE, broken, agent("a"))
    assert session.texts == [["One", "context compacted", "a"]]
    assert session.items[1].at_ms == second(3)


@pytest.mark.parametrize(
    "ignored",
    [
        context("T1", model="some-model"),
        line("world_state", {"a": 1}),
        line("token_usage_record", {"a": 1}),
        line("inter_agent_communication", {"a": 1}),
        line("inter_agent_communication_metadata", {"a": 1}),
        event("token_count", info={"total": 1}),
        event("thread_settings_applied", settings={}),
        event("thread_goal_updated", goal="g"),
        event("undo_started", message="m"),
        event("undo_completed", success=True),
        event("background_event", message="m"),
        event("plan_update", plan=[]),
        event("stream_error", message="retrying 1/5"),
        event("task_started", turn_id="T1"),
        event("turn_started", turn_id="T1"),
        event("turn_complete", turn_id="T1", last_agent_message="a"),
        shown("HookPrompt", fragments=[]),
        event("sub_agent_activity", agent_thread_id="x", kind="started"),
        shown("SubAgentActivity", kind="started"),
        item("ghost_snapshot", ghost_commit={"id": "abc"}),
        item("compaction", encrypted_content="x"),
        item("context_compaction", encrypted_content="x"),
        item("additional_tools", tools=[]),
        item("other"),
    ],
)
def test_what_says_nothing_is_ignored_and_not_counted(codex: CodexHome, ignored: Line) -> None:
    reordered = {"payload": ignored["payload"], "type": ignored["type"]}
    session = codex.session(*ONE, ignored, reordered, agent("a"))
    assert (session.texts, session.skipped) == ([["One", "a"]], [])


def test_what_is_unknown_is_counted_by_its_name_and_hides_nothing(codex: CodexHome) -> None:
    session = codex.session(
        *ONE,
        line("novelty", {"a": 1}),
        item("novel_item"),
        event("novel_event"),
        shown("NovelItem"),
        shown("AgentMessage", content=[], novelty=1),
        item("message", role="narrator", content=[]),
        {**agent("a"), "extra": 1},
        item("function_call", name="exec_command", arguments="{}", call_id="c1", novelty=1),
        event("error", message="m", novelty=1),
        header=meta(history_mode="spiral", novelty=1, cli_version="1.2.3"),
    )
    assert session.texts[0][1] == "a"
    assert sorted(session.why_skipped) == [
        "unknown field: AgentMessage.novelty",
        "unknown field: error.novelty",
        "unknown field: extra",
        "unknown field: function_call.novelty",
        "unknown field: session_meta.novelty",
        "unknown history_mode: spiral",
        "unknown role: narrator",
        "unknown type: event_msg/novel_event",
        "unknown type: item_completed/NovelItem",
        "unknown type: novelty",
        "unknown type: response_item/novel_item",
        "unknown version: 1.2",
    ]


@pytest.mark.parametrize(
    "told",
    [
        item("message", role="user", content=[{"type": "input_scent"}, {"type": "input_text", "text": "Two"}]),
        item("message", role="assistant", content=[{"type": "input_scent"}, {"type": "output_text", "text": "Two"}]),
        item("agent_message", author="a", recipient="b", content=[{"type": "input_scent"}]),
        item("function_call_output", call_id="c1", output=[{"type": "input_scent"}]),
        shown("UserMessage", content=[{"type": "input_scent"}, {"type": "text", "text": "Two"}]),
    ],
)
def test_a_part_of_a_message_that_is_unknown_is_counted_by_its_type(codex: CodexHome, told: Line) -> None:
    assert codex.session(*ONE, told).why_skipped == ["unknown block: input_scent"]


@pytest.mark.parametrize("version", ["0.12.0", "0.154.0-alpha.3", "0.999.1", None])
def test_versions_that_were_seen_are_known(codex: CodexHome, version: str | None) -> None:
    assert codex.session(*ONE, header=meta(cli_version=version)).skipped == []


@pytest.mark.parametrize("version", ["1.0.0", "next", 7])
def test_other_versions_are_counted(codex: CodexHome, version: object) -> None:
    assert len(codex.session(*ONE, header=meta(cli_version=version)).skipped) == 1


def test_what_is_unknown_is_counted_with_bounds(codex: CodexHome) -> None:
    session = codex.session(
        *ONE, *[line("n" * 500, {})] * 1000, *[line(f"t{number}", {}) for number in range(1000)], agent("a")
    )
    assert session.texts == [["One", "a"]]
    assert len(session.skipped) < 1100
    assert max(len(skipped.reason) for skipped in session.skipped) < 200


@pytest.mark.parametrize(
    "bad", [b"{", b"[]", b"null", b'"a"', b"\xff\xfe", b'{"type":"response_item","payload":[]}', b'{"type":7}', b"{}"]
)
def test_a_line_that_is_no_record_is_counted_and_hides_nothing(codex: CodexHome, bad: bytes) -> None:
    session = codex.session(*ONE, bad, agent("a"))
    assert session.texts == [["One", "a"]]
    assert [skipped.line for skipped in session.skipped] == [4]


def test_a_byte_order_mark_blank_lines_and_line_ends_of_another_system_hide_nothing(codex: CodexHome) -> None:
    path = codex.write(meta(), *ONE, b"", b"\r", agent("a"))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"}\n", b"}\r\n"))
    session = codex.read(path)
    assert (session.texts, session.skipped) == ([["One", "a"]], [])
    assert session.facts is not None and session.facts.key == THREAD


def test_a_line_of_nul_bytes_is_counted_and_hides_nothing(codex: CodexHome) -> None:
    session = codex.session(*ONE, b"\0" * 3000, agent("a"))
    assert (session.texts, session.why_skipped) == ([["One", "a"]], ["NUL bytes"])


def test_pieces_of_a_broken_emoji_are_replaced_and_all_else_kept(codex: CodexHome) -> None:
    broken = b'{"type":"event_msg","payload":{"type":"agent_message","message":"a\\ud83d b"}}'
    assert codex.session(*ONE, broken).texts == [["One", "a\ufffd b"]]


def test_missing_fields_are_no_failure(codex: CodexHome) -> None:
    kinds = [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "local_shell_call",
        "web_search_call",
        "tool_search_call",
        "tool_search_output",
        "image_generation_call",
        "agent_message",
    ]
    events = [
        "user_message",
        "agent_message",
        "agent_reasoning",
        "exec_command_end",
        "patch_apply_end",
        "mcp_tool_call_end",
        "web_search_end",
        "view_image_tool_call",
        "dynamic_tool_call_request",
        "dynamic_tool_call_response",
        "image_generation_end",
        "collab_agent_spawn_end",
        "task_started",
        "task_complete",
        "turn_aborted",
        "error",
        "guardian_assessment",
        "entered_review_mode",
        "exited_review_mode",
        "thread_rolled_back",
        "thread_name_updated",
        "item_completed",
    ]
    shows = [
        "UserMessage",
        "AgentMessage",
        "Reasoning",
        "CommandExecution",
        "FileChange",
        "McpToolCall",
        "Extension",
        "ImageView",
        "Plan",
        "CollabAgentToolCall",
        "ContextCompaction",
        "WebSearch",
        "ImageGeneration",
    ]
    nothing = [line("response_item", {"type": kind}) for kind in kinds]
    nothing += [line("event_msg", {"type": kind}) for kind in events]
    nothing += [event("item_completed", item={"type": kind}) for kind in shows]
    odd: list[Line] = [
        {
            **one,
            "payload": {
                **one["payload"],
                "content": 7,
                "summary": 7,
                "output": 7,
                "arguments": 7,
                "message": 7,
                "action": 7,
                "changes": 7,
                "result": 7,
                "invocation": 7,
                "command": 7,
            },
        }
        for one in nothing
    ]
    session = codex.session(*ONE, *nothing, *odd, agent("a"), header=line("session_meta", {}))
    assert session.turns[-1].items[-1].text == "a"


def test_a_message_between_agents_that_nobody_else_can_read_is_ignored(codex: CodexHome) -> None:
    said = item("agent_message", author="/root/scout", recipient="/root", content="gAAAAABo" * 20)
    assert codex.session(*ONE, said, agent("a")).texts == [["One", "a"]]


def test_a_thread_stays_in_the_project_where_it_was_started(codex: CodexHome) -> None:
    session = codex.session(*ONE, context("T1", cwd="/elsewhere"), agent("a"))
    assert session.facts is not None and str(session.facts.project) == "/home/a/kettle"


def test_the_start_of_a_thread_is_what_its_header_says_and_not_its_first_line(codex: CodexHome) -> None:
    session = codex.session(*ONE, header=meta(timestamp="2026-11-30T08:00:00.000Z"))
    assert session.facts is not None and session.facts.started_ms == second(-7200)


def test_of_lines_of_many_megabytes_the_text_is_kept_and_the_picture_is_not(codex: CodexHome) -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64," + "iVBORw0KGgo" * 1_000_000}
    text = {"type": "input_text", "text": "See this"}
    session = codex.session(
        item("message", role="user", content=[picture, text]),
        event("user_message", message="See this", images=[picture["image_url"]]),
        call("view_image", {"path": "/k/a.png"}),
        output([picture, {"type": "input_text", "text": "a kettle"}]),
        agent("I see."),
    )
    assert session.texts == [["See this", "view_image: /k/a.png", "I see."]]
    assert session.of(Kind.TOOL)[0].output == "a kettle"
    assert "iVBOR" not in repr(session.turns) + repr(session.checkpoint)


def test_a_call_and_an_output_belong_together_however_far_apart(codex: CodexHome) -> None:
    session = codex.session(
        *ONE,
        call("exec_command", {"cmd": "a"}, "c1"),
        call("exec_command", {"cmd": "b"}, "c2"),
        agent("x"),
        output("from b", "c2"),
        *user("Two"),
        output("from a", "c1"),
    )
    assert [(one.label, one.output) for one in session.of(Kind.TOOL)] == [
        ("shell: a", "from a"),
        ("shell: b", "from b"),
    ]
