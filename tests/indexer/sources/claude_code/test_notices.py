"""Lines of the program's own: `system` and `attachment`."""

import re
from typing import Any

import pytest

from tests.indexer.sources.claude_code.written import Written, agent, attachment, sidecar, system, user


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (system("compact_boundary"), "conversation compacted"),
        (system("compact_boundary", compactMetadata={"trigger": "manual"}), "conversation compacted (manual)"),
        (system("microcompact_boundary"), None),
        (system("api_error", error={"error": {"message": "Overloaded"}}), "Overloaded"),
        (system("api_error", error="x", retryAttempt=3, maxRetries=10, retryInMs=900), "x (try 3 of 10)"),
        (system("error", content="broken"), "broken"),
        (system("api_refusal", content="refused"), "refused"),
        (system("model_refusal_fallback", content="another model"), "another model"),
        (system("turn_duration", durationMs=1200), None),
        (system("stop_hook_summary", hookInfos=[], hookErrors=[]), None),
        (system("stop_hook_summary", hookErrors=["tests fail"]), "stop hook failed: tests fail"),
        (system("stop_hook_summary", hookErrors=["a", {"message": "b"}]), "stop hook failed: a\nb"),
        (system("stop_hook_summary", hookErrors="tests fail"), "stop hook failed: tests fail"),
        (system("stop_hook_summary", hookErrors=[{"code": 2}]), "stop hook failed"),
        (system("informational", content="fyi", level="info"), None),
        (system("informational", content="careful", level="warning"), "careful"),
        (system("away_summary", content="while away"), None),
        (system("scheduled_task_fire", content="x"), None),
        (system("bridge_status", content="x", level="error"), "x"),
        (system("session_start", content="x"), None),
        (system(None, content="\x1b[31mhook failed\x1b[0m", level="error", toolUseID="t"), "hook failed"),
        (system(None, content="hook ok", level="info"), None),
        (
            system("local_command", content="<command-name>/model</command-name><command-args>fast</command-args>"),
            "/model fast",
        ),
        (system("local_command", content="<local-command-stdout>Bye</local-command-stdout>"), "Bye"),
        (system("local_command", content="<local-command-stdout></local-command-stdout>"), None),
    ],
)
def test_a_system_line_is_a_notice_where_it_says_something(
    written: Written, line: dict[str, Any], shown: str | None
) -> None:
    session = written.read(user("u"), line, agent("a"))
    assert session.said == [[("user", "u"), *([] if shown is None else [("notice", shown)]), ("agent", "a")]]
    assert session.skipped == []


@pytest.mark.parametrize("count", [1, 2, 5])
def test_of_a_burst_of_retries_the_last_is_shown(written: Written, count: int) -> None:
    session = written.read(user("u"))
    for number in range(count):
        written.add(system("api_error", error="busy", retryAttempt=number + 1, maxRetries=10))
        written.read_on(session)
    written.add(agent("a"), system("api_error", error="busy", retryAttempt=1, maxRetries=10))
    written.read_on(session)
    assert session.texts == [["u", f"busy (try {count} of 10)", "a", "busy (try 1 of 10)"]]


@pytest.mark.parametrize("is_system", [True, False])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("<local-command-stderr>no</local-command-stderr>", [("process", "no")]),
        (
            "<local-command-stdout>half</local-command-stdout>\n<local-command-stderr>no</local-command-stderr>",
            [("notice", "half"), ("process", "no")],
        ),
    ],
)
def test_standard_error_of_a_local_command_is_a_process(
    written: Written, content: str, said: list[tuple[str, str]], is_system: bool
) -> None:
    line = system("local_command", content=content) if is_system else user(content)
    assert written.read(user("u"), line).said == [[("user", "u"), *said]]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            attachment(
                "hook_non_blocking_error", hookName="PreToolUse:Bash", command="lint.sh", stderr="bad", exitCode=1
            ),
            ("process", "bad"),
        ),
        (
            attachment("hook_non_blocking_error", hookName="Stop", stdout="only out", stderr=""),
            ("notice", "hook Stop: only out"),
        ),
        (
            attachment("hook_blocking_error", hookName="Stop", blockingError={"blockingError": "no", "command": "x"}),
            ("notice", "hook Stop: no"),
        ),
        (attachment("hook_stopped_continuation", hookName="Stop", message="enough"), ("notice", "hook Stop: enough")),
        (attachment("hook_cancelled", hookName="Stop"), ("notice", "hook Stop")),
        (attachment("hook_success", hookName="Stop", stdout="ok", stderr="ignored"), None),
        (attachment("hook_additional_context", content=["x"]), None),
        (attachment("task_status", taskId="b1", status="running"), None),
        (attachment("edited_text_file", filename="a", snippet="b"), None),
        (attachment("plan_mode_reminder"), None),
        (attachment("ultrathink_effort"), None),
        (attachment("verify_plan_reminder"), None),
        ({"type": "attachment"}, None),
    ],
)
def test_of_attachments_only_failed_hooks_say_something(
    written: Written, line: dict[str, Any], shown: tuple[str, str] | None
) -> None:
    session = written.read(user("u"), line)
    assert session.said == [[("user", "u"), *([] if shown is None else [shown])]]
    assert session.skipped == []


def test_a_hooks_process_has_its_command(written: Written) -> None:
    line = attachment("hook_blocking_error", hookName="Stop", command="lint.sh", stderr="bad")
    assert written.read(user("u"), line).turns[0].items[1].command == "lint.sh"


def test_a_pull_request_is_said_once(written: Written) -> None:
    link = sidecar("pr-link", prNumber=12, prUrl="https://example.org/pull/12", prRepository="a/kettle")
    other = sidecar("pr-link", prNumber=13, prUrl="https://example.org/pull/13")
    session = written.read(user("u"), link, link, agent("a"), link, other)
    assert session.texts == [
        ["u", "pull request #12: https://example.org/pull/12", "a", "pull request #13: https://example.org/pull/13"]
    ]


IGNORED_SIDECARS = re.findall(
    r"\S+",
    """
    file-history-snapshot file-history-delta last-prompt mode permission-mode worktree-state relocated bridge-session
    frame-link atis-latch cost-state content-replacement agent-setting agent-color started result
    """,
)
IGNORED_ATTACHMENTS = re.findall(
    r"\S+",
    """
    file directory edited_text_file compact_file_reference nested_memory skill_listing invoked_skills dynamic_skill
    deferred_tools_delta mcp_instructions_delta agent_listing_delta todo_reminder task_reminder plan_mode plan_mode_exit
    plan_file_reference auto_mode date_change command_permissions verify_plan_reminder ultrathink_effort ultra_plan
    budget_usd read_truncation_notice companion_intro task_status hook_success hook_additional_context
    """,
)
IGNORED_PROGRESS = re.findall(
    r"\S+",
    "hook_progress bash_progress agent_progress mcp_progress waiting_for_task query_update search_results_received",
)


@pytest.mark.parametrize(
    "line",
    [
        *(sidecar(type_, content="kettle", sessionId="s") for type_ in IGNORED_SIDECARS),
        *(attachment(type_, content="kettle") for type_ in IGNORED_ATTACHMENTS),
        *({"type": "progress", "data": {"type": type_, "text": "kettle"}} for type_ in IGNORED_PROGRESS),
    ],
    ids=lambda line: (line.get("attachment") or line.get("data") or line)["type"],
)
def test_what_says_nothing_to_a_reader_is_ignored_and_not_counted(written: Written, line: dict[str, Any]) -> None:
    # Until a line names a directory every line is decoded; behind one its first bytes decide.
    session = written.read({**line, "cwd": None}, user("u"), line, agent("a"), line)
    assert session.said == [[("user", "u"), ("agent", "a")]]
    assert session.skipped == []


def test_a_burst_of_retries_is_one_notice_also_among_lines_that_say_nothing(written: Written) -> None:
    retry = system("api_error", error={"message": "Overloaded"}, retryInMs=500, retryAttempt=1, maxRetries=10)
    session = written.read(user("u"), retry, sidecar("mode", mode="plan"), {**retry, "retryAttempt": 2}, agent("a"))
    assert session.texts == [["u", "Overloaded (try 2 of 10)", "a"]]
