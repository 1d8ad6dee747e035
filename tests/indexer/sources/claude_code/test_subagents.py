"""Subagents: sessions of their own, in files of their own or within their parent's."""

import json
from typing import Any

import pytest

from indexer.sources.base import Call, Waiting
from tests.indexer.sources.claude_code.written import CWD, SESSION, TEN, Written, agent, call, result, user

SIDE: dict[str, Any] = {"isSidechain": True}
PLACES = [
    f"-home-a-kettle/{SESSION}/subagents/agent-a1b2c3d.jsonl",
    f"-home-a-kettle/{SESSION}/subagents/workflows/wf_7/agent-a1b2c3d.jsonl",
    "-home-a-kettle/agent-a1b2c3d.jsonl",
]


@pytest.mark.parametrize("place", PLACES)
def test_a_subagents_file_is_a_session_that_names_its_parent(written: Written, place: str) -> None:
    file = written.beside(place, isSidechain=True, agentId="a1b2c3d")
    session = file.read(user("Review the diff."), agent("Reviewed."), user("And the tests"))
    facts = session.the_facts
    assert session.texts == [["Review the diff.", "Reviewed."], ["And the tests"]]
    assert (facts.session_id, facts.parent_id, facts.parent_call) == ("agent-a1b2c3d", SESSION, None)
    assert facts.key == f"-home-a-kettle/{SESSION}/agent-a1b2c3d"
    assert facts.title == "Review the diff."
    assert session.sides == {}


@pytest.mark.parametrize("place", PLACES)
def test_a_subagent_belongs_to_the_project_of_its_parent(written: Written, place: str) -> None:
    written.add({"type": "progress", "cwd": CWD}, user("u"))
    file = written.beside(place, isSidechain=True, cwd=f"{CWD}/worktrees/x")
    assert str(file.read(user("Review.")).the_facts.project) == CWD


def test_a_subagent_whose_parent_is_gone_belongs_to_where_it_worked(written: Written) -> None:
    file = written.beside(PLACES[0], isSidechain=True, cwd="/elsewhere")
    session = file.read(user("Review."))
    written.add(user("u"))
    file.add(agent("Done."))
    assert str(file.read_on(session).the_facts.project) == "/elsewhere"


@pytest.mark.parametrize(
    ("meta", "title", "parent_call"),
    [
        ('{"agentType": "reviewer", "description": "review the diff", "toolUseId": "t1"}', "review the diff", "t1"),
        ('{"agentType": "reviewer"}', "Review.", None),
        ('{"description": 7, "toolUseId": null}', "Review.", None),
        ("{", "Review.", None),
        ("[]", "Review.", None),
    ],
)
def test_the_sidecar_tells_what_a_subagent_was_to_do_and_who_called_it(
    written: Written, meta: str, title: str, parent_call: str | None
) -> None:
    file = written.beside(PLACES[0], isSidechain=True)
    file.folder.mkdir(parents=True)
    file.path.with_suffix(".meta.json").write_text(meta)
    facts = file.read(user("Review.")).the_facts
    assert (facts.title, facts.parent_call) == (title, parent_call)


def test_a_sidecar_that_comes_later_is_read(written: Written) -> None:
    file = written.beside(PLACES[0], isSidechain=True)
    session = file.read(user("Review."))
    file.path.with_suffix(".meta.json").write_text(json.dumps({"toolUseId": "t1"}))
    file.add(agent("Done."))
    assert file.read_on(session).the_facts.parent_call == "t1"


def test_a_parents_call_tells_where_it_stands_and_whom_it_started(written: Written) -> None:
    session = written.read(
        user("u"), agent("Calling."), agent(call("t1", "Task", description="review", prompt="Review."))
    )
    assert session.calls == {"t1": Call("t1", 1, 2)}
    written.add(result("t1", "Reviewed.", more={"status": "completed", "agentId": "a1b2c3d", "content": []}))
    assert written.read_on(session).calls == {"t1": Call("t1", 1, 2, "agent-a1b2c3d")}
    assert session.texts == [["u", "Calling.", "Task: review"]]


def progress(call_id: str, agent_id: str) -> dict[str, Any]:
    data = {"type": "agent_progress", "agentId": agent_id, "message": {}}
    return {"type": "progress", "data": data, "parentToolUseID": call_id, "toolUseID": "p"}


def test_the_progress_of_a_running_call_tells_whom_it_started(written: Written) -> None:
    session = written.read(
        user("u"),
        agent(call("t1", "Task", description="review", prompt="Review.")),
        {"type": "progress", "data": {"type": "hook_progress"}},
        progress("t9", "another"),
        progress("t1", "a1b2c3d"),
        progress("t1", "too late"),
        agent(call("t2", "Task", description="test", prompt="Test.")),
        progress("t1", "too late"),
    )
    assert session.calls == {"t1": Call("t1", 1, 1, "agent-a1b2c3d"), "t2": Call("t2", 1, 2)}
    assert session.texts == [["u", "Task: review", "Task: test"]]


def test_a_warm_up_of_a_subagent_is_no_session(written: Written) -> None:
    file = written.beside(PLACES[2], isSidechain=True)
    with pytest.raises(Waiting):
        file.read(user("Warmup"), agent("Ready."))


def side(line: dict[str, Any], uuid: str, parent: str | None, **more: Any) -> dict[str, Any]:
    return {**line, **SIDE, "uuid": uuid, "parentUuid": parent, **more}


def test_a_subagent_within_its_parents_file_is_a_session_of_its_own(written: Written) -> None:
    session = written.read(
        user("u"),
        agent(call("t1", "Task", description="review", prompt="Review the diff.", subagent_type="reviewer")),
        side(user("Review the diff."), "s1", None),
        side(agent(call("x1", "Bash", command="git diff"), id="n1"), "s2", "s1"),
        side(result("x1", "a diff"), "s3", "s2"),
        side(agent("Looks good.", id="n2"), "s4", "s3"),
        result("t1", "Looks good."),
        agent("Reviewed.", id="m2"),
    )
    assert session.texts == [["u", "Task: review (reviewer)", "Reviewed."]]
    assert list(session.sides) == ["s1"]
    inner = session.sides["s1"]
    assert inner.texts == [["Review the diff.", "Bash: git diff", "Looks good."]]
    facts = inner.facts
    assert facts is not None
    assert (facts.parent_id, facts.parent_call, facts.title) == (SESSION, "t1", "Review the diff.")
    assert (facts.key, facts.started_ms) == (f"-home-a-kettle/{SESSION}/s1", TEN + 2000)
    assert facts.project == session.the_facts.project


@pytest.mark.parametrize("has_agent_id", [False, True])
def test_subagents_that_work_at_once_are_kept_apart(written: Written, has_agent_id: bool) -> None:
    first, second = ({"agentId": "a1"}, {"agentId": "b1"}) if has_agent_id else ({}, {})
    session = written.read(
        user("u"),
        agent(call("t1", "Task", description="one", prompt="One.")),
        agent(call("t2", "Task", description="two", prompt="Two.")),
        side(user("One."), "a1", None, **first),
        side(user("Two."), "b1", None, **second),
        side(agent("one.one", id="n1"), "a2", "a1", **first),
        side(agent("two.one", id="n2"), "b2", "b1", **second),
        side(agent("one.two", id="n3"), "a3", "a2", **first),
        user("v"),
        side(agent("two.two", id="n4"), "b3", "b2", **second),
        side(agent("a loose end", id="n5"), "b4", "never-written", **second),
    )
    assert session.texts == [["u", "Task: one", "Task: two"], ["v"]]
    names = ["agent-a1", "agent-b1"] if has_agent_id else ["a1", "b1"]
    assert [session.sides[name].texts for name in names] == [
        [["One.", "one.one", "one.two"]],
        [["Two.", "two.one", "two.two", "a loose end"]],
    ]
    calls = [facts.parent_call for name in names if (facts := session.sides[name].facts) is not None]
    assert calls == ["t1", "t2"]


def test_a_subagents_answers_end_no_tool_of_its_parent(written: Written) -> None:
    session = written.read(
        user("u"),
        agent(call("t1", "Task", description="one", prompt="One."), id="m1"),
        side(user("One."), "a1", None),
        side(agent("Hm.", id="n1"), "a2", "a1"),
        side(agent("Done.", id="n2"), "a3", "a2"),
    )
    assert session.turns[0].items[1].status == "running"


def test_a_subagent_within_a_file_goes_on_in_a_later_read(written: Written) -> None:
    session = written.read(
        user("u"), side(user("One."), "a1", None), side(agent(call("x", "Bash", command="ls"), id="n"), "a2", "a1")
    )
    written.add(side(result("x", "a.rs"), "a3", "a2"), side(agent("Done.", id="n2"), "a4", "a3"))
    written.read_on(session)
    inner = session.sides["a1"]
    assert inner.texts == [["One.", "Bash: ls", "Done."]]
    assert (inner.turns[0].items[1].status, inner.turns[0].items[1].output) == ("ok", "a.rs")


@pytest.mark.parametrize("uuid", ["../../x", "a b", "", "x" * 200, None])
def test_a_subagent_whose_first_line_has_no_proper_uuid_is_called_by_where_it_begins(
    written: Written, uuid: str | None
) -> None:
    session = written.read(user("u"), {**user("One."), **SIDE, "uuid": uuid, "parentUuid": None})
    assert list(session.sides) == [f"{SESSION}.2"]


@pytest.mark.parametrize("parent", ["../../x", "a\0b", ""])
def test_a_parent_whose_id_is_no_name_is_not_looked_for(written: Written, parent: str) -> None:
    file = written.beside(PLACES[2], sessionId=parent, cwd="/elsewhere")
    assert str(file.read(user("Review.")).the_facts.project) == "/elsewhere"


def test_a_file_of_nothing_but_a_subagents_lines_is_a_session_without_turns(written: Written) -> None:
    session = written.read(side(user("One."), "a1", None))
    assert session.texts == []
    assert session.sides["a1"].texts == [["One."]]


@pytest.mark.parametrize("place", PLACES)
def test_a_subagents_output_that_was_too_large_is_read_from_its_parents_folder(written: Written, place: str) -> None:
    folder = written.path.with_suffix("") / "tool-results"
    folder.mkdir(parents=True)
    (folder / "t1.txt").write_text("all of it")
    file = written.beside(place, isSidechain=True, agentId="a1b2c3d")
    session = file.read(
        user("Review."),
        agent(call("t1", "Bash", command="make")),
        result("t1", "<persisted-output>\nPreview:\nall\n</persisted-output>"),
    )
    assert session.turns[0].items[1].output == "all of it"
