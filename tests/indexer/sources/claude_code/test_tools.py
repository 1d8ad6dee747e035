"""Tool calls: their labels, what of their input and output is kept, and how they ended."""

from typing import Any

import pytest

from schemas.items import Item, Kind, Status
from tests.indexer.sources.claude_code.written import CWD, Written, age, agent, attachment, call, result, system, user
from tests.indexer.sources.model import transcript_of

BASE64 = "iVBORw0KGgo" * 1000
REFUSED = result(
    "t1", "The user doesn't want to proceed with this tool use.", is_error=True, more="User rejected tool use"
)


@pytest.mark.parametrize(
    ("name", "given", "label", "more"),
    [
        ("Bash", {"command": "cargo test parser"}, "Bash: cargo test parser", None),
        ("Bash", {"command": "make", "description": "Build all"}, "Bash: make", "Build all"),
        (
            "Bash",
            {"command": "make", "timeout": 5000, "run_in_background": True},
            "Bash: make",
            "run_in_background: true",
        ),
        ("Bash", {"command": "cat <<E\nx\nE"}, "Bash: cat <<E", "cat <<E\nx\nE"),
        ("Bash", {"command": ""}, "Bash", ""),
        ("Read", {"file_path": f"{CWD}/src/parser.rs"}, "Read src/parser.rs", None),
        ("Read", {"file_path": f"{CWD}/src/parser.rs", "offset": 40, "limit": 41}, "Read src/parser.rs:40-80", None),
        ("Read", {"file_path": f"{CWD}/src/parser.rs", "offset": 40}, "Read src/parser.rs:40-", None),
        ("Read", {"file_path": f"{CWD}/src/parser.rs", "limit": 10}, "Read src/parser.rs:1-10", None),
        ("Read", {"file_path": "/etc/hosts"}, "Read /etc/hosts", None),
        ("Read", {"file_path": f"{CWD}-two/a"}, f"Read {CWD}-two/a", None),
        ("Read", {"file_path": "a.pdf", "pages": "1-3"}, "Read a.pdf:1-3", None),
        (
            "Edit",
            {"file_path": f"{CWD}/src/x.py", "old_string": "a", "new_string": "b"},
            "Edit src/x.py",
            "old_string: a\nnew_string: b",
        ),
        ("MultiEdit", {"file_path": f"{CWD}/x", "edits": [{"a": 1}]}, "MultiEdit x", 'edits: [{"a":1}]'),
        ("Write", {"file_path": f"{CWD}/x.py", "content": "import os\n"}, "Write x.py", "import os\n"),
        ("NotebookEdit", {"notebook_path": f"{CWD}/n.ipynb", "new_source": "1"}, "NotebookEdit n.ipynb", "1"),
        ("Grep", {"pattern": "fn main", "path": f"{CWD}/src"}, "Grep fn main in src", None),
        ("Grep", {"pattern": "x", "path": CWD}, "Grep x in .", None),
        ("Glob", {"pattern": "**/*.rs"}, "Glob **/*.rs", None),
        ("LS", {"path": f"{CWD}/src"}, "LS src", None),
        ("WebFetch", {"url": "https://example.org", "prompt": "Read"}, "WebFetch: https://example.org", "Read"),
        ("WebSearch", {"query": "open ranges"}, "WebSearch: open ranges", None),
        (
            "Task",
            {"description": "review the diff", "subagent_type": "code-reviewer", "prompt": "Review it."},
            "Task: review the diff (code-reviewer)",
            "Review it.",
        ),
        ("Agent", {"description": "review the diff", "prompt": "Review."}, "Task: review the diff", "Review."),
        (
            "TodoWrite",
            {"todos": [{"content": "parse", "status": "pending"}, {"content": "test", "status": "pending"}]},
            "TodoWrite: parse; test",
            'todos: [{"content":"parse","status":"pending"},{"content":"test","status":"pending"}]',
        ),
        ("TaskCreate", {"subject": "Fix", "description": "All"}, "TaskCreate: Fix", "All"),
        ("TaskUpdate", {"taskId": "1", "status": "completed"}, "TaskUpdate: 1", "completed"),
        ("TaskList", {}, "TaskList", None),
        (
            "AskUserQuestion",
            {"questions": [{"question": "Which one?", "options": []}]},
            "AskUserQuestion: Which one?",
            'questions: [{"question":"Which one?","options":[]}]',
        ),
        ("ExitPlanMode", {"plan": "# Plan\n1. parse"}, "plan", "# Plan\n1. parse"),
        ("Skill", {"skill": "pdf", "args": "a.pdf"}, "Skill: pdf", "a.pdf"),
        ("SlashCommand", {"command": "/review 12"}, "SlashCommand: /review 12", None),
        ("ToolSearch", {"query": "select:Read"}, "ToolSearch: select:Read", None),
        ("mcp__github__create_issue", {}, "mcp github create_issue", None),
        (
            "mcp__github__create_issue",
            {"labels": ["a"], "title": "Fix", "body": "b"},
            "mcp github create_issue: Fix",
            'labels: ["a"]\nbody: b',
        ),
        ("PowerShell", {"command": "dir"}, "PowerShell: dir", None),
        ("NotebookRead", {"notebook_path": f"{CWD}/n.ipynb"}, "NotebookRead n.ipynb", None),
        ("BashOutput", {"bash_id": "b1"}, "BashOutput: b1", None),
        ("KillShell", {"shell_id": "b1"}, "KillShell: b1", None),
        ("TaskOutput", {"task_id": "b1", "block": True}, "TaskOutput: b1", "block: true"),
        ("TaskStop", {"task_id": "b1"}, "TaskStop: b1", None),
        ("TaskGet", {"taskId": "1"}, "TaskGet: 1", None),
        ("Skill", {"command": "pdf"}, "Skill: pdf", None),
        ("mcp__github__list", {"page": 2}, "mcp github list: 2", None),
        ("Teleport", {"where": "home"}, "Teleport", "home"),
        ("Read", {}, "Read", None),
        ("Read", None, "Read", None),
        ("Read", "raw text", "Read", "raw text"),
    ],
)
def test_a_label_reads_as_a_person_would_write_it(
    written: Written, name: str, given: Any, label: str, more: str | None
) -> None:
    block = {"type": "tool_use", "id": "t1", "name": name, "input": given}
    tool = written.read(user("u"), agent(block)).turns[0].items[1]
    assert (tool.label, tool.input or None) == (label, more or None)


def test_a_label_that_is_too_long_is_cut_and_stands_whole_in_the_input(written: Written) -> None:
    command = "echo " + "x" * 5000
    tool = written.read(user("u"), agent(call("t1", "Bash", command=command))).turns[0].items[1]
    assert tool.label is not None
    assert (len(tool.label), tool.label[-1], tool.input) == (1001, "…", command)


def tool_of(written: Written, *lines: Any) -> Item:
    session = written.read(user("u"), agent(call("t1", "Bash", command="make")), *lines)
    return session.turns[0].items[1]


@pytest.mark.parametrize(
    ("line", "status", "output"),
    [
        (result("t1", "done"), "ok", "done"),
        (result("t1", "done", is_error=False), "ok", "done"),
        (result("t1", None), "ok", ""),
        (result("t1", None, more={"stdout": "out", "stderr": ""}), "ok", "out"),
        (result("t1", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "ok", "a\nb"),
        (
            result("t1", [{"type": "text", "text": "a"}, {"type": "document"}, {"type": "image"}]),
            "ok",
            "a\n[Document]\n[Image]",
        ),
        (result("t1", [{"type": "tool_reference", "tool_name": "Read"}]), "ok", "Read"),
        (
            result("t1", "Exit code 2\nboom", is_error=True, more="Error: Exit code 2\nboom"),
            "failed",
            "Exit code 2\nboom",
        ),
        (result("t1", "<tool_use_error>No such file</tool_use_error>", is_error=True), "failed", "No such file"),
        (REFUSED, "failed", "The user doesn't want to proceed with this tool use."),
        (result("t1", "half", more={"stdout": "half", "stderr": "", "interrupted": True}), "failed", "half"),
        (result("t1", "Started", more={"backgroundTaskId": "b1", "stdout": "", "stderr": ""}), "ok", "Started"),
        (result("t1", "Launched", more={"status": "async_launched", "agentId": "a1"}), "ok", "Launched"),
        (result("t1", "listed", more=[{"type": "text", "text": "listed"}]), "ok", "listed"),
        (result("t1", None, more="Error: gone", is_error=True), "failed", "Error: gone"),
        (
            result("t1", "Sibling tool call errored", is_error=True, more="Error: Sibling tool call errored"),
            "failed",
            "Sibling tool call errored",
        ),
        (result("t1", "1", more={"stdout": "1", "stderr": "", "returnCodeInterpretation": "No match"}), "ok", "1"),
        ({**result("t1", "Denied", is_error=True), "toolDenialKind": "user"}, "failed", "Denied"),
        ({**result("t1", "done"), "sourceToolAssistantUUID": "elsewhere"}, "ok", "done"),
    ],
)
def test_a_result_completes_its_call(written: Written, line: dict[str, Any], status: str, output: str) -> None:
    tool = tool_of(written, line)
    assert (tool.status, tool.output or "") == (status, output)


def test_a_call_runs_until_its_result_comes(written: Written) -> None:
    session = written.read(user("u"), agent(call("t1", "Bash", command="make")))
    assert session.turns[0].items[1].status == "running"
    written.add(result("t1", "done"))
    written.read_on(session)
    assert session.turns[0].items[1] == Item(
        Kind.TOOL, label="Bash: make", status=Status.OK, output="done", at_ms=session.turns[0].items[1].at_ms
    )


def test_results_are_matched_by_id_in_any_order_and_two_in_a_line(written: Written) -> None:
    both = user(
        [
            {"type": "tool_result", "tool_use_id": "t3", "content": "three"},
            {"type": "tool_result", "tool_use_id": "t1", "content": "one", "is_error": True},
        ]
    )
    session = written.read(
        user("u"),
        agent(call("t1", "Read", file_path="a")),
        agent(call("t2", "Read", file_path="b")),
        agent(call("t3", "Read", file_path="c")),
        result("t2", "two"),
        both,
    )
    assert [(item.output, item.status) for item in session.turns[0].items[1:]] == [
        ("one", "failed"),
        ("two", "ok"),
        ("three", "ok"),
    ]


def test_a_result_without_its_call_is_kept_without_a_label(written: Written) -> None:
    session = written.read(user("u"), result("t9", "orphaned"))
    tool = session.turns[0].items[1]
    assert (tool.kind, tool.label, tool.status, tool.output) == ("tool", None, "ok", "orphaned")


def test_standard_error_is_also_a_process(written: Written) -> None:
    session = written.read(
        user("u"),
        agent(call("t1", "Bash", command="make")),
        result("t1", "out\nwarning: x", more={"stdout": "out", "stderr": "warning: x", "interrupted": False}),
    )
    tool, process = session.turns[0].items[1:]
    assert tool.output == "out\nwarning: x"
    assert (process.kind, process.command, process.output) == ("process", "Bash: make", "warning: x")


def test_what_is_large_and_no_text_is_not_kept(written: Written) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": BASE64}
    session = written.read(
        user([{"type": "text", "text": "See"}, {"type": "image", "source": source}]),
        agent(call("t1", "Read", file_path="a.png")),
        result("t1", [{"type": "image", "source": source}], more={"type": "image", "file": {"base64": BASE64}}),
        agent(call("t2", "Edit", file_path="a.rs", old_string="a", new_string="b")),
        result("t2", "edited", more={"filePath": "a.rs", "originalFile": "SECRET" * 1000, "structuredPatch": []}),
        attachment("file", filename="a", content={"file": {"content": "SECRET" * 1000}}),
    )
    kept = str(session.turns) + str(session.checkpoint)
    assert BASE64[:50] not in kept
    assert "SECRET" not in kept
    assert session.turns[0].items[1].output == "[Image]"


def test_a_line_of_many_megabytes_is_read_for_what_is_text_in_it(written: Written) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "A" * 20_000_000}
    session = written.read(
        user("u"),
        agent(call("t1", "Read", file_path="a.png")),
        result("t1", [{"type": "image", "source": source}, {"type": "text", "text": "a kettle"}]),
        agent("I see.", id="m2"),
    )
    assert session.texts == [["u", "Read a.png", "I see."]]
    assert session.turns[0].items[1].output == "[Image]\na kettle"


def test_a_later_start_ends_what_runs_and_a_late_result_still_counts(written: Written) -> None:
    session = written.read(user("u"), agent(call("t1", "Bash", command="make")), user("v"))
    assert session.turns[0].items[1].status == "failed"
    written.add(result("t1", "done after all"))
    written.read_on(session)
    assert (session.turns[0].items[1].status, session.turns[0].items[1].output) == ("ok", "done after all")


def test_an_interruption_ends_what_runs(written: Written) -> None:
    tool = tool_of(written, user("[Request interrupted by user]"))
    assert tool.status == "failed"


def test_the_next_answer_ends_what_runs(written: Written) -> None:
    session = written.read(
        user("u"),
        agent(call("t1", "Bash", command="a"), id="m1"),
        agent(call("t2", "Bash", command="b"), id="m1"),
        result("t1"),
        agent("Hm.", id="m2"),
    )
    assert [item.status for item in session.turns[0].items[1:3]] == ["ok", "failed"]


def test_two_programs_that_write_to_one_file_end_each_others_tools_for_a_while_only(written: Written) -> None:
    session = written.read(
        user("u"),
        agent(call("a", "Bash", command="a"), id="m1"),
        user("v", parentUuid="elsewhere"),
        agent(call("b", "Bash", command="b"), id="n1"),
        result("a", "one"),
        agent("A.", id="m2"),
        result("b", "two"),
    )
    assert session.texts == [["u", "Bash: a"], ["v", "Bash: b", "A."]]
    assert [(turn.items[1].status, turn.items[1].output) for turn in session.turns] == [("ok", "one"), ("ok", "two")]


def test_a_call_that_is_made_again_ends_the_one_before(written: Written) -> None:
    session = written.read(
        user("u"), agent(call("t1", "Bash", command="a")), agent(call("t1", "Bash", command="b")), result("t1")
    )
    assert [item.status for item in session.turns[0].items[1:]] == ["failed", "ok"]


def test_calls_without_end_are_forgotten_at_last(written: Written) -> None:
    calls = [agent(call(f"t{number}", "Bash", command=f"{number}")) for number in range(200)]
    session = written.read(user("u"), *calls, result("t0", "late"), result("t199", "done"))
    items = session.turns[0].items
    assert (items[1].status, items[72].status, items[73].status, items[200].status) == (
        "failed",
        "failed",
        "running",
        "ok",
    )
    assert (items[201].label, items[201].output) == (None, "late")


def test_what_runs_in_a_file_long_at_rest_runs_no_more(written: Written) -> None:
    written.add(user("u"), agent(call("t1", "Bash", command="make")))
    age(written.path, 7200)
    session = written.read()
    assert session.turns[0].items[1].status == "failed"


def test_what_runs_ends_in_a_file_that_has_come_to_rest_since_it_was_read(written: Written) -> None:
    session = written.read(user("u"), agent(call("t1", "Bash", command="make")))
    assert session.turns[0].items[1].status == "running"
    age(written.path, 7200)
    assert written.read_on(session).turns[0].items[1].status == "failed"
    parts = list(written.source.read(transcript_of(written.path, written.root), session.checkpoint, settle_ms=0))
    assert parts == []


def test_what_a_subagent_within_the_file_runs_ends_with_it(written: Written) -> None:
    side = {"isSidechain": True, "agentId": "a1"}
    session = written.read(user("u"), {**user("Look"), **side}, {**agent(call("t1", "Bash", command="make")), **side})
    assert session.sides["agent-a1"].turns[0].items[1].status == "running"
    age(written.path, 7200)
    assert written.read_on(session).sides["agent-a1"].turns[0].items[1].status == "failed"


def test_the_mark_at_the_end_of_a_turn_ends_what_runs(written: Written) -> None:
    assert tool_of(written, system("turn_duration", durationMs=1200)).status == "failed"


def test_an_answer_to_a_question_is_a_result_and_no_turn(written: Written) -> None:
    session = written.read(
        user("u"),
        agent(call("t1", "AskUserQuestion", questions=[{"question": "Which?"}])),
        result("t1", 'User has answered: "Which?"="this"', more={"answers": {"Which?": "this"}}),
    )
    assert session.said == [[("user", "u"), ("tool", "AskUserQuestion: Which?")]]
    assert session.turns[0].items[1].output == 'User has answered: "Which?"="this"'


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (result("t1", "User has approved your plan.", more={"plan": "# Plan", "isAgent": False}), "ok"),
        (REFUSED, "failed"),
    ],
)
def test_a_plan_is_approved_or_refused_and_either_is_no_turn(
    written: Written, line: dict[str, Any], status: str
) -> None:
    session = written.read(user("u"), agent(call("t1", "ExitPlanMode", plan="# Plan\n1. parse")), line)
    assert session.said == [[("user", "u"), ("tool", "plan")]]
    assert (session.turns[0].items[1].status, session.turns[0].items[1].input) == (status, "# Plan\n1. parse")


def test_a_command_in_the_background_ends_at_once_and_its_end_is_a_notice(written: Written) -> None:
    ended = (
        "<task-notification><task-id>b1</task-id><status>completed</status><summary>make ended</summary>"
        "</task-notification>"
    )
    session = written.read(
        user("u"),
        agent(call("t1", "Bash", command="make", run_in_background=True)),
        result("t1", "Running in the background: b1", more={"backgroundTaskId": "b1", "stdout": "", "stderr": ""}),
        user(ended, origin={"kind": "task-notification"}),
        agent(call("t2", "TaskOutput", task_id="b1"), id="m2"),
        result("t2", "built"),
    )
    assert session.said == [
        [("user", "u"), ("tool", "Bash: make"), ("notice", "make ended (completed)"), ("tool", "TaskOutput: b1")]
    ]
    assert [item.status for item in session.turns[0].items if item.status] == ["ok", "ok"]


def test_the_text_after_a_skill_is_ignored(written: Written) -> None:
    session = written.read(
        user("u"),
        agent(call("t1", "Skill", skill="pdf")),
        result("t1", "Launching skill: pdf"),
        user([{"type": "text", "text": "Base directory …"}], isMeta=True, sourceToolUseID="t1"),
    )
    assert session.texts == [["u", "Skill: pdf"]]


PERSISTED = (
    "<persisted-output>\nOutput too large. Full output saved to: /etc/passwd\n\nPreview:\nfirst\n</persisted-output>"
)


def test_an_output_that_was_too_large_is_read_from_the_sessions_own_folder(written: Written) -> None:
    folder = written.path.with_suffix("") / "tool-results"
    folder.mkdir(parents=True)
    (folder / "t1.txt").write_text("first\n" + "line\n" * 1000 + "last")
    tool = tool_of(written, result("t1", PERSISTED))
    assert (tool.output or "").endswith("line\nlast")


def test_an_output_that_was_too_large_may_be_json(written: Written) -> None:
    folder = written.path.with_suffix("") / "tool-results"
    folder.mkdir(parents=True)
    (folder / "t1.json").write_text('[{"type":"text","text":"all of it"}]')
    assert tool_of(written, result("t1", PERSISTED)).output == "all of it"


@pytest.mark.parametrize("id_", ["t1", "../../x", ""])
def test_where_the_full_output_is_gone_the_preview_is_kept(written: Written, id_: str) -> None:
    (written.path.with_suffix("") / "tool-results").mkdir(parents=True)
    (written.folder / "x.txt").write_text("of something else")
    session = written.read(user("u"), agent(call(id_, "Bash", command="make")), result(id_, PERSISTED))
    assert session.turns[0].items[1].output == PERSISTED


def test_a_cleared_result_is_what_it_says(written: Written) -> None:
    assert (
        tool_of(written, result("t1", "[Old tool result content cleared]")).output
        == "[Old tool result content cleared]"
    )


def test_a_compaction_amid_a_turn_begins_none(written: Written) -> None:
    session = written.read(
        user("u"),
        agent("One"),
        system(
            "compact_boundary",
            parentUuid=None,
            logicalParentUuid="u1",
            compactMetadata={"trigger": "auto", "preTokens": 150_000},
        ),
        user("This session is being continued from a previous conversation. Summary.", isCompactSummary=True),
        agent("Two", id="m2"),
    )
    assert session.said == [
        [
            ("user", "u"),
            ("agent", "One"),
            ("notice", "conversation compacted (auto)"),
            ("notice", "This session is being continued from a previous conversation. Summary."),
            ("agent", "Two"),
        ]
    ]
