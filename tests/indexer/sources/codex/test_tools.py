import json
from typing import Any

import pytest

from schemas.items import Item, Kind, Status
from tests.indexer.sources.codex.rollouts import (
    CodexHome,
    Line,
    agent,
    call,
    complete,
    custom_call,
    event,
    item,
    meta,
    output,
    second,
    shell_output,
    shown,
    touch_later,
    user,
)

ONE = user("One")
PATCH = (
    "*** Begin Patch\n*** Update File: src/x.py\n@@\n-a\n+b\n*** Add File: src/y.py\n+c\n"
    "*** Delete File: src/z.py\n*** End Patch\n"
)


def only_tool(codex: CodexHome, *lines: Line) -> Item:
    (tool,) = codex.session(*ONE, *lines).of(Kind.TOOL)
    return tool


@pytest.mark.parametrize(
    ("name", "arguments", "label"),
    [
        ("shell", {"command": ["bash", "-lc", "cargo test parser"], "workdir": "/k"}, "shell: cargo test parser"),
        ("shell", {"command": ["rg", "off by one", "src"]}, "shell: rg 'off by one' src"),
        ("container.exec", {"command": ["/bin/bash", "-lc", "ls"]}, "shell: ls"),
        ("shell_command", {"command": "cargo test parser"}, "shell: cargo test parser"),
        ("exec_command", {"cmd": "cargo test parser", "yield_time_ms": 1000}, "shell: cargo test parser"),
        ("shell", {"command": ["apply_patch", PATCH]}, "apply_patch: src/x.py, src/y.py, src/z.py"),
        ("apply_patch", {"input": PATCH}, "apply_patch: src/x.py, src/y.py, src/z.py"),
        ("write_stdin", {"session_id": 7, "chars": "yes\n"}, "input to 7: yes"),
        ("write_stdin", {"session_id": 7, "chars": ""}, "poll 7"),
        ("update_plan", {"plan": [{"step": "Read", "status": "pending"}]}, "plan"),
        ("view_image", {"path": "/k/a.png"}, "view_image: /k/a.png"),
        ("spawn_agent", {"agent_type": "scout", "message": "Look around"}, "spawn_agent: scout: Look around"),
        ("wait_agent", {"ids": ["a1", "a2"]}, "wait_agent: a1, a2"),
        ("send_input", {"id": "a1", "message": "Go on"}, "send_input: a1: Go on"),
        ("close_agent", {"id": "a1"}, "close_agent: a1"),
        ("wait", {"ids": ["a1"], "timeout_ms": 1000}, "wait: a1"),
        ("send_message", {"target": "scout", "message": "Go on"}, "send_message: scout: Go on"),
        ("spawn_agent", {"task_name": "scout", "message": "Look around"}, "spawn_agent: scout: Look around"),
        ("shell_command", {"command": "ls", "workdir": "/k"}, "shell: ls"),
        ("exec_command", {"command": "ls"}, "shell: ls"),
        ("shell", {"command": ["zsh", "-lc", "ls | wc"]}, "shell: ls | wc"),
        ("view_image", {}, "view_image"),
        ("web_search", {"query": "kettles"}, "web search: kettles"),
        ("mcp__github__create_issue", {"title": "T"}, "mcp github create_issue"),
        ("github__create_issue", {"title": "T"}, "mcp github create_issue"),
        ("novel_tool", {"query": "q"}, "novel_tool: q"),
        ("novel_tool", {}, "novel_tool"),
    ],
)
def test_labels_read_as_a_person_would_write_them(
    codex: CodexHome, name: str, arguments: dict[str, Any], label: str
) -> None:
    assert only_tool(codex, call(name, arguments)).label == label


@pytest.mark.parametrize("namespace", ["mcp__github", "mcp__github__"])
def test_a_namespace_names_the_server_of_a_tool(codex: CodexHome, namespace: str) -> None:
    tool = only_tool(codex, call("create_issue", {"title": 'A "T"'}, namespace=namespace))
    assert (tool.label, tool.input) == ("mcp github create_issue", 'title: A "T"')


def test_an_older_shell_call_has_its_own_item(codex: CodexHome) -> None:
    tool = only_tool(
        codex,
        item("local_shell_call", call_id="c1", status="completed", action={"type": "exec", "command": ["ls", "-l"]}),
        output("a.rs"),
    )
    assert (tool.label, tool.status, tool.output) == ("shell: ls -l", Status.OK, "a.rs")


def test_the_input_is_there_where_it_says_more_than_the_label(codex: CodexHome) -> None:
    assert only_tool(codex, call("exec_command", {"cmd": "ls", "workdir": "/k", "login": True})).input is None
    why = only_tool(codex, call("exec_command", {"cmd": "ls", "justification": "to see\nmore"}))
    assert why.input == "justification: to see\nmore"
    assert only_tool(codex, custom_call("apply_patch", PATCH)).input == PATCH


def test_an_endless_command_is_told_by_its_beginning_and_kept_whole_as_input(codex: CodexHome) -> None:
    command = "echo " + "x" * 10_000
    tool = only_tool(codex, call("exec_command", {"cmd": command}))
    assert tool.label is not None and len(tool.label) < 2100
    assert tool.input == command


def test_arguments_that_are_no_json_are_shown_raw(codex: CodexHome) -> None:
    tool = only_tool(codex, call("exec_command", '{"cmd": "ls'))
    assert (tool.label, tool.input) == ('shell: {"cmd": "ls', '{"cmd": "ls')


def test_a_patch_is_labelled_by_its_files(codex: CodexHome) -> None:
    tool = only_tool(
        codex, custom_call("apply_patch", PATCH), item("custom_tool_call_output", call_id="c1", output="Done")
    )
    assert tool == Item(
        Kind.TOOL,
        label="apply_patch: src/x.py, src/y.py, src/z.py",
        status=Status.OK,
        input=PATCH,
        output="Done",
        at_ms=second(3),
    )


@pytest.mark.parametrize(
    ("told", "text", "status"),
    [
        ("hello", "hello", "ok"),
        (shell_output("hello", 0), "hello", "ok"),
        (shell_output("hello", 3), "hello", "failed"),
        ("Exit code: 0\nWall time: 1 seconds\nOutput:\nhello", "hello", "ok"),
        ("Exit code: 1\nWall time: 1 seconds\nTotal output lines: 9\nOutput:\n\nhello", "\nhello", "failed"),
        ("Wall time: 0.1 seconds\nOutput:\nhello", "hello", "ok"),
        (
            shell_output("Process exited with code 1\nExit code: 1\n", 0),
            "Process exited with code 1\nExit code: 1\n",
            "ok",
        ),
        ("it says Exit code: 1\nOutput:\nhello", "it says Exit code: 1\nOutput:\nhello", "ok"),
        ("Script failed\nWall time 0.1 seconds\nOutput:\nhello", "hello", "failed"),
        ([{"type": "input_text", "text": "hello"}, {"type": "input_image", "image_url": "data:xx"}], "hello", "ok"),
        ([{"type": "input_image", "image_url": "data:xx"}], "[Image]", "ok"),
        ({"content": "hello", "success": True}, "hello", "ok"),
        ({"content": "hello", "success": False}, "hello", "failed"),
        (json.dumps({"output": "hello", "metadata": {"exit_code": 0, "duration_seconds": 1.2}}), "hello", "ok"),
        (json.dumps({"output": "hello", "metadata": {"exit_code": 2, "duration_seconds": 1.2}}), "hello", "failed"),
        ({"content": json.dumps({"output": "hello", "metadata": {"exit_code": 2}})}, "hello", "failed"),
        ('{"output": "hello", "more": 1}', '{"output": "hello", "more": 1}', "ok"),
        ("execution error: Io(NotFound)", "execution error: Io(NotFound)", "failed"),
        ("apply_patch verification failed: no such line", "apply_patch verification failed: no such line", "failed"),
        ("exec_command failed: no pty", "exec_command failed: no pty", "failed"),
        ("aborted by user after 3.2s", "aborted by user after 3.2s", "failed"),
        ("write_stdin failed: no such session", "write_stdin failed: no such session", "failed"),
        ("failed to parse function arguments: x", "failed to parse function arguments: x", "failed"),
        ("unsupported call: x", "unsupported call: x", "failed"),
        ({"content": [{"type": "input_text", "text": "hello"}], "success": True}, "hello", "ok"),
        ({"output": "hello", "metadata": {"exit_code": 1}}, "hello", "failed"),
        (shell_output("", 0), None, "ok"),
        (None, None, "ok"),
        ("", None, "ok"),
    ],
)
def test_outputs_and_what_they_say_of_the_status(codex: CodexHome, told: Any, text: str | None, status: str) -> None:
    tool = only_tool(codex, call("exec_command", {"cmd": "x"}), output(told))
    assert (tool.output, tool.status) == (text, status)


def test_a_call_without_an_output_runs_while_its_turn_is_the_last_and_its_file_is_fresh(codex: CodexHome) -> None:
    path = codex.write(*ONE, call("exec_command", {"cmd": "x"}))
    assert codex.read(path).tools == [("shell: x", Status.RUNNING)]
    touch_later(path, -100_000)
    session = codex.read(path)
    assert session.tools == [("shell: x", Status.FAILED)]
    codex.append(path, output("late"))
    codex.read_on(path, session)
    assert session.tools == [("shell: x", Status.OK)]


@pytest.mark.parametrize("end", [event("turn_aborted", reason="interrupted"), complete("T1"), user("Two")[1]])
def test_a_call_without_an_output_failed_when_its_turn_ended(codex: CodexHome, end: Line) -> None:
    session = codex.session(*ONE, call("exec_command", {"cmd": "x"}), end)
    assert session.tools == [("shell: x", Status.FAILED)]


def test_an_output_that_comes_late_counts_all_the_same(codex: CodexHome) -> None:
    session = codex.session(*ONE, call("exec_command", {"cmd": "x"}), complete("T1"), *user("Two"), output("late"))
    (tool,) = session.of(Kind.TOOL)
    assert (tool.status, tool.output) == (Status.OK, "late")


def test_a_process_that_runs_on_is_running_until_a_later_call_tells_its_end(codex: CodexHome) -> None:
    runs_on = "Chunk ID: 1a\nWall time: 1 seconds\nProcess running with session ID 7\nOutput:\nserving"
    begin = [*ONE, call("exec_command", {"cmd": "serve"}, "c1"), output(runs_on, "c1")]
    assert codex.session(*begin, complete("T1"), *user("Two")).tools == [("shell: serve", Status.RUNNING)]
    polls = [call("write_stdin", {"session_id": 7, "chars": ""}, "c2"), output(runs_on, "c2")]
    asked = codex.session(*begin, *polls)
    assert asked.tools == [("shell: serve", Status.RUNNING), ("poll 7", Status.OK)]
    ended = codex.session(
        *begin, *polls, call("write_stdin", {"session_id": 7, "chars": "q"}, "c3"), output(shell_output("bye", 1), "c3")
    )
    assert ended.tools == [("shell: serve", Status.FAILED), ("poll 7", Status.OK), ("input to 7: q", Status.FAILED)]
    assert [one.output for one in ended.of(Kind.TOOL)] == ["serving", "serving", "bye"]


def test_what_runs_ends_in_a_file_that_has_come_to_rest_since_it_was_read(codex: CodexHome) -> None:
    runs_on = "Chunk ID: 1a\nWall time: 1 seconds\nProcess running with session ID 7\nOutput:\nserving"
    serve = [call("exec_command", {"cmd": "serve"}, "c1"), output(runs_on, "c1")]
    path = codex.write(meta(), *ONE, *serve, call("exec_command", {"cmd": "x"}, "c2"))
    session = codex.read(path)
    assert [status for _, status in session.tools] == [Status.RUNNING, Status.RUNNING]
    touch_later(path, -100_000)
    assert codex.read_on(path, session) == 1
    assert [status for _, status in session.tools] == [Status.FAILED, Status.FAILED]
    assert codex.read_on(path, session) == 0


def test_an_output_whose_call_is_lost_is_kept(codex: CodexHome) -> None:
    tool = only_tool(codex, output(shell_output("hello", 1), "lost"))
    assert (tool.label, tool.status, tool.output) == (None, Status.FAILED, "hello")


@pytest.mark.parametrize("is_first", [True, False])
def test_an_event_enriches_the_call_of_its_id(codex: CodexHome, is_first: bool) -> None:
    end = event(
        "exec_command_end",
        call_id="c1",
        command=["bash", "-lc", "x"],
        exit_code=2,
        aggregated_output="all of it",
        stdout="",
        stderr="",
        status="failed",
    )
    told = [end, output("all…")] if is_first else [output("all…"), end]
    tool = only_tool(codex, call("exec_command", {"cmd": "x"}), *told)
    assert (tool.label, tool.status, tool.output) == ("shell: x", Status.FAILED, "all of it")


def test_an_event_that_comes_before_its_call_is_the_same_tool(codex: CodexHome) -> None:
    end = event("exec_command_end", call_id="c1", command=["x"], exit_code=0, aggregated_output="out")
    tool = only_tool(codex, end, call("exec_command", {"cmd": "x y"}), output("out"))
    assert (tool.label, tool.status, tool.output) == ("shell: x y", Status.OK, "out")


def test_what_was_written_apart_to_stderr_is_a_process(codex: CodexHome) -> None:
    end = event("exec_command_end", call_id="c1", command=["x"], exit_code=0, stdout="out", stderr="warning: w")
    patched = event(
        "patch_apply_end", call_id="c2", changes={"a.rs": {}}, success=False, stdout="", stderr="no such line"
    )
    session = codex.session(
        *ONE, call("shell", {"command": ["x"]}), end, custom_call("apply_patch", PATCH, "c2"), patched
    )
    assert [(one.command, one.output) for one in session.of(Kind.PROCESS)] == [
        ("x", "warning: w"),
        ("apply_patch: a.rs", "no such line"),
    ]
    assert [status for _, status in session.tools] == [Status.OK, Status.FAILED]


@pytest.mark.parametrize(
    ("told", "status", "text"),
    [
        ({"Ok": {"content": [{"type": "text", "text": "made"}]}}, Status.OK, "made"),
        ({"Ok": {"content": [{"type": "text", "text": "no"}], "isError": True}}, Status.FAILED, "no"),
        ({"Err": "no such tool"}, Status.FAILED, "no such tool"),
    ],
)
def test_the_end_of_an_mcp_call(codex: CodexHome, told: dict[str, Any], status: Status, text: str) -> None:
    end = event("mcp_tool_call_end", call_id="c1", invocation={"server": "github", "tool": "create_issue"}, result=told)
    alone = only_tool(codex, end)
    assert (alone.label, alone.status, alone.output) == ("mcp github create_issue", status, text)
    enriched = only_tool(codex, call("github__create_issue", {"title": "T"}), output("x"), end)
    assert (enriched.label, enriched.status) == ("mcp github create_issue", status)


FAILED_CALL = event(
    "mcp_tool_call_end",
    call_id="c1",
    invocation={"server": "github", "tool": "create_issue"},
    result={"Err": "no such repository"},
)
FAILED_ITEM = shown(
    "McpToolCall",
    "c1",
    server="github",
    tool="create_issue",
    status="failed",
    error={"message": "no such repository"},
)


@pytest.mark.parametrize("end", [FAILED_CALL, FAILED_ITEM])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    ("printed", "shown_output", "aside"),
    [
        (None, "no such repository", []),
        ("", "no such repository", []),
        ("tool call error: no such repository", "tool call error: no such repository", []),
        ("half of it", "half of it", ["no such repository"]),
        ("no such", "no such", ["no such repository"]),
        ("half of it, and " * 500, "half of it, and " * 500, ["no such repository"]),
    ],
)
def test_an_error_of_an_mcp_call_is_not_lost_beside_an_output(
    codex: CodexHome, printed: str | None, shown_output: str, aside: list[str], is_first: bool, end: Line
) -> None:
    printed_too = [] if printed is None else [output(printed)]
    told = [end, *printed_too] if is_first else [*printed_too, end]
    session = codex.session(*ONE, call("github__create_issue", {"title": "T"}), *told, end)
    (tool,) = session.of(Kind.TOOL)
    assert (tool.label, tool.status, tool.output) == ("mcp github create_issue", Status.FAILED, shown_output)
    assert [(one.command, one.output) for one in session.of(Kind.PROCESS)] == [
        ("mcp github create_issue", one) for one in aside
    ]


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("has_output", [True, False])
def test_a_very_long_error_of_an_mcp_call_is_kept_whole_and_not_remembered(
    codex: CodexHome, is_first: bool, has_output: bool
) -> None:
    error = "no such repository, " * 5000
    end = event("mcp_tool_call_end", call_id="c1", invocation={"server": "a", "tool": "b"}, result={"Err": error})
    printed = [output("half of it")] if has_output else []
    session = codex.session(*ONE, *([end, *printed] if is_first else [*printed, end]))
    assert error in [one.output for one in session.items]
    assert not has_output or "half of it" in [one.output for one in session.items]
    assert len(json.dumps(session.checkpoint)) < 10_000


@pytest.mark.parametrize(
    ("told", "label", "status"),
    [
        (
            shown(
                "CommandExecution", command="cargo test", cwd="/k", status="failed", exit_code=1, aggregated_output="o"
            ),
            "shell: cargo test",
            Status.FAILED,
        ),
        (shown("CommandExecution", command=["bash", "-lc", "ls"], status="declined"), "shell: ls", Status.FAILED),
        (shown("CommandExecution", command="ls", status="completed", exit_code=0), "shell: ls", Status.OK),
        (
            shown("FileChange", status="completed", changes=[{"path": "a.rs", "kind": "update", "diff": "+b"}]),
            "apply_patch: a.rs",
            Status.OK,
        ),
        (
            shown("FileChange", status="failed", changes={"a.rs": {"update": {"unified_diff": "+b"}}}),
            "apply_patch: a.rs",
            Status.FAILED,
        ),
        (
            shown("McpToolCall", server="github", tool="create_issue", status="completed", result={"content": []}),
            "mcp github create_issue",
            Status.OK,
        ),
        (
            shown("McpToolCall", server="github", tool="x", status="failed", error={"message": "no"}),
            "mcp github x",
            Status.FAILED,
        ),
        (shown("Extension", kind="web_search", query="kettles"), "web search: kettles", Status.OK),
        (shown("Extension", kind="novelty", status="completed", text="t"), "novelty", Status.OK),
        (shown("WebSearch", query="kettles"), "web search: kettles", Status.OK),
        (shown("ImageView", path="/k/a.png"), "view_image: /k/a.png", Status.OK),
        (shown("CollabAgentToolCall", tool="spawn_agent", prompt="Look around"), "spawn_agent: Look around", Status.OK),
        (event("view_image_tool_call", call_id="v1", path="/k/a.png"), "view_image: /k/a.png", Status.OK),
        (event("web_search_end", call_id="w1", query="kettles"), "web search: kettles", Status.OK),
        (
            event("exec_command_end", call_id="x1", command=["bash", "-lc", "ls"], exit_code=2),
            "shell: ls",
            Status.FAILED,
        ),
        (event("exec_command_end", call_id="x1", command=["ls"], status="declined"), "shell: ls", Status.FAILED),
        (event("patch_apply_end", call_id="p1", success=True, changes={"a.rs": {}}), "apply_patch: a.rs", Status.OK),
        (
            event("image_generation_end", call_id="g1", status="failed", revised_prompt="A kettle"),
            "image generation: A kettle",
            Status.FAILED,
        ),
        (
            event(
                "dynamic_tool_call_response", call_id="d1", tool="weather", success=False, arguments={"query": "Bern"}
            ),
            "weather: Bern",
            Status.FAILED,
        ),
        (event("collab_agent_interaction_end", call_id="a1", prompt="Go on"), "agent_interaction: Go on", Status.OK),
        (event("collab_waiting_end", call_id="a1"), "waiting", Status.OK),
        (event("collab_close_end", call_id="a1"), "close", Status.OK),
        (shown("CollabAgentToolCall", tool="wait"), "wait", Status.OK),
        (shown("ImageGeneration", status="completed", revised_prompt="A"), "image generation: A", Status.OK),
        (shown("CommandExecution", command="serve", status="in_progress"), "shell: serve", Status.RUNNING),
    ],
)
def test_tools_that_only_events_tell_of(codex: CodexHome, told: Line, label: str, status: Status) -> None:
    assert codex.session(*ONE, told).tools == [(label, status)]


def test_a_call_and_its_shown_item_are_one_tool_in_either_order(codex: CodexHome) -> None:
    told = shown("CommandExecution", "c1", command="x", status="failed", exit_code=1, aggregated_output="all of it")
    asked, answered = call("exec_command", {"cmd": "x"}), output(shell_output("all…", 1))
    for lines in ([asked, answered, told], [asked, told, answered], [told, asked, answered]):
        tool = only_tool(codex, *lines)
        assert (tool.label, tool.status, tool.output) == ("shell: x", Status.FAILED, "all of it")


def test_outputs_of_calls_at_once_come_in_any_order(codex: CodexHome) -> None:
    ids = ["c1", "c2", "c3"]
    session = codex.session(
        *ONE,
        *(call("exec_command", {"cmd": id_}, id_) for id_ in ids),
        *(output(shell_output(f"of {id_}", int(id_ == "c2")), id_) for id_ in ("c3", "c1", "c2")),
    )
    assert [(one.label, one.output) for one in session.of(Kind.TOOL)] == [(f"shell: {id_}", f"of {id_}") for id_ in ids]
    assert [status for _, status in session.tools] == [Status.OK, Status.FAILED, Status.OK]


def test_a_file_change_keeps_its_diffs(codex: CodexHome) -> None:
    told = shown("FileChange", changes={"a.rs": {"update": {"unified_diff": "+b"}}, "c.rs": {"add": {"content": "d"}}})
    assert only_tool(codex, told).input == "+b\nd"


@pytest.mark.parametrize(
    ("action", "label"),
    [
        ({"type": "search", "query": "kettles"}, "web search: kettles"),
        ({"type": "open_page", "url": "https://kettles.example"}, "open page: https://kettles.example"),
        (
            {"type": "find_in_page", "url": "https://kettles.example", "pattern": "steel"},
            "find in page: steel in https://kettles.example",
        ),
    ],
)
def test_a_web_search_is_one_record_and_its_twin_is_not_shown(
    codex: CodexHome, action: dict[str, Any], label: str
) -> None:
    search = item("web_search_call", status="completed", action=action)
    with_id = item("web_search_call", id="ws_1", status="completed", action=action)
    end = event("web_search_end", call_id="ws_1", query="kettles", action=action)
    for twins in ([search, end], [end, search], [with_id, end], [end, with_id]):
        assert codex.session(*ONE, *twins).tools == [(label, Status.OK)]
    assert codex.session(*ONE, search, search).tools == [(label, Status.OK)] * 2


def test_a_generated_picture_is_dropped_and_its_prompt_kept(codex: CodexHome) -> None:
    picture = "iVBORw0KGgo" * 10_000
    made = item("image_generation_call", id="ig_1", status="completed", revised_prompt="A kettle", result=picture)
    end = event("image_generation_end", call_id="ig_1", status="completed", revised_prompt="A kettle", result=picture)
    tool = only_tool(codex, made, end)
    assert (tool.label, tool.status, tool.input) == ("image generation: A kettle", Status.OK, "A kettle")
    assert "iVBOR" not in repr(tool)


def test_a_search_for_tools_is_a_tool(codex: CodexHome) -> None:
    tool = only_tool(
        codex,
        item("tool_search_call", call_id="c1", arguments={"query": "issues"}, status="completed"),
        item("tool_search_output", call_id="c1", tools=[{"name": "create_issue"}]),
    )
    assert (tool.label, tool.status) == ("tool_search: issues", Status.OK)
    assert tool.output is not None and "create_issue" in tool.output


def test_a_program_is_labelled_by_its_first_line_unless_the_tools_it_called_are_told(codex: CodexHome) -> None:
    program = custom_call("exec", "\nconst r = await tools.exec_command({cmd: 'cargo test'});\ntext(r)")
    done = item("custom_tool_call_output", call_id="c1", output="Script completed\nWall time 1 seconds\nOutput:\nbad")
    alone = only_tool(codex, program, done)
    assert alone.label == "exec: const r = await tools.exec_command({cmd: 'cargo test'});"
    assert alone.input is not None and alone.input.endswith("text(r)")
    inner = shown("CommandExecution", "x1", command="cargo test", status="failed", exit_code=1, aggregated_output="bad")
    for told in ([program, inner, done], [program, done, inner]):
        assert codex.session(*ONE, *told).tools == [("exec", Status.OK), ("shell: cargo test", Status.FAILED)]


def test_a_users_own_command_is_a_tool(codex: CodexHome) -> None:
    text = (
        "<user_shell_command>\n<command>\ngit status\n</command>\n<result>\nExit code: 1\nDuration: 0.1 seconds\n"
        "Output:\nnot a repository\n</result>\n</user_shell_command>"
    )
    own = item("message", role="user", content=[{"type": "input_text", "text": text}])
    end = event(
        "exec_command_end",
        call_id="u1",
        source="user_shell",
        command=["bash", "-lc", "git status"],
        exit_code=1,
        aggregated_output="not a repository",
    )
    for told in ([own], [own, end], [end, own], [end]):
        (tool,) = codex.session(*ONE, *told).of(Kind.TOOL)
        assert (tool.label, tool.status, tool.output) == ("shell: git status", Status.FAILED, "not a repository")


def test_a_dynamic_tool_is_opened_and_closed_by_events(codex: CodexHome) -> None:
    asked = event("dynamic_tool_call_request", callId="d1", turnId="T1", tool="weather", arguments={"query": "Bern"})
    answered = event(
        "dynamic_tool_call_response",
        call_id="d1",
        tool="weather",
        success=True,
        content_items=[{"type": "inputText", "text": "rain"}],
    )
    assert codex.session(*ONE, asked).tools == [("weather: Bern", Status.RUNNING)]
    tool = only_tool(codex, asked, answered)
    assert (tool.status, tool.output) == (Status.OK, "rain")


@pytest.mark.parametrize(
    "told",
    [
        output(json.dumps({"agent_id": "a-thread", "nickname": "Scout"})),
        event("collab_agent_spawn_end", call_id="c1", new_thread_id="a-thread", prompt="Look around"),
        shown("CollabAgentToolCall", "c1", tool="spawn_agent", receiver_thread_ids=["a-thread"], prompt="Look around"),
        event("sub_agent_activity", call_id="c1", agent_thread_id="a-thread", kind="started"),
        shown("SubAgentActivity", "c1", agent_thread_id="a-thread", kind="started"),
    ],
)
def test_a_call_that_starts_an_agent_names_its_thread(codex: CodexHome, told: Line) -> None:
    session = codex.session(*ONE, call("spawn_agent", {"message": "Look around"}), told)
    assert session.agents == {"c1": "a-thread"}
    assert session.tools[0][0] == "spawn_agent: Look around"


def test_events_about_a_call_long_ago_are_of_that_call(codex: CodexHome) -> None:
    many = [
        one
        for number in range(100)
        for one in (call("exec_command", {"cmd": f"x{number}"}, f"c{number}"), output("a", f"c{number}"))
    ]
    end = event("exec_command_end", call_id="c3", command=["x3"], exit_code=1, aggregated_output="all of it")
    session = codex.session(*ONE, *many, end, agent("a"))
    assert len(session.of(Kind.TOOL)) == 100
    assert session.of(Kind.TOOL)[3].output == "all of it"
