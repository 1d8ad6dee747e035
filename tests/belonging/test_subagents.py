"""Sessions that another session started: left out unless asked for, and named by who started them."""

from contextlib import closing

import pytest

from schemas.requests import SessionsRequest
from search_api.archive import Archive
from search_api.caller import Caller
from search_api.render import text_form
from tests.belonging.mixed import Mixed, ids
from tests.indexer.sources.claude_code.written import SESSION, agent, call, result, user
from tests.indexer.sources.codex.rollouts import CHILD, THREAD, meta, spawned
from tests.indexer.sources.codex.rollouts import agent as said
from tests.indexer.sources.codex.rollouts import user as asked

TASK = call("t1", "Task", description="review the diff", subagent_type="code-reviewer", prompt="Review it.")


def write_parent(mixed: Mixed) -> None:
    mixed.claude.add(
        user("Find the zebra."),
        agent(TASK),
        result("t1", "Reviewed.", more={"status": "completed", "agentId": "a1b2c3d", "prompt": "Review it."}),
    )


def write_subagent(mixed: Mixed) -> None:
    mixed.subagent("a1b2c3d").add(user("Review it."), agent("The zebra is fine."))


@pytest.fixture
def family(mixed: Mixed) -> Mixed:
    write_parent(mixed)
    write_subagent(mixed)
    mixed.index()
    return mixed


def test_subagents_are_left_out_unless_asked_for(family: Mixed) -> None:
    assert family.found("zebra") == [(SESSION, 1)]
    assert sorted(family.found("zebra", subagents="include")) == [(SESSION, 1), ("agent-a1b2c3d", 1)]
    assert family.found("zebra", subagents="only") == [("agent-a1b2c3d", 1)]
    assert family.found("zebra", mode="words") == [(SESSION, 1)]
    assert family.found("zebra subagents:only", mode="words") == [("agent-a1b2c3d", 1)]
    assert family.found("zebra", mode="regex") == [(SESSION, 1)]
    assert ids(family.listed()) == [SESSION]
    assert ids(family.listed(subagents="only")) == ["agent-a1b2c3d"]


def test_a_search_says_that_it_left_out_subagents_where_it_did(family: Mixed) -> None:
    left_out = [("subagents", "subagents=include")]
    assert family.left_out("zebra") == left_out
    assert family.left_out("nothing has this") == left_out
    assert family.left_out("zebra", subagents="include") == []
    assert family.left_out("zebra", source=["codex"]) == []
    assert family.left_out("zebra", session=SESSION) == []


def test_a_subagent_that_is_named_is_searched(family: Mixed) -> None:
    assert family.found("zebra", session="agent-a1b2c3d") == [("agent-a1b2c3d", 1)]


def test_subagents_take_no_number(family: Mixed) -> None:
    assert family.numbers() == {SESSION: 1, "agent-a1b2c3d": None}


def test_a_subagent_names_its_parent_whichever_of_them_came_first(mixed: Mixed) -> None:
    write_subagent(mixed)
    mixed.index()
    (alone,) = mixed.listed(subagents="only")
    assert alone.parent == SESSION
    write_parent(mixed)
    mixed.index()
    (child,) = mixed.listed(subagents="only")
    assert child.parent == "kettle#1"


def test_a_task_names_the_subagent_that_it_started(family: Mixed) -> None:
    assert "tool: Task: review the diff (code-reviewer) → agent-a1b2c3d — ok" in family.text(SESSION)
    (tool,) = [item for part in family.read(SESSION).parts for item in part.items if item.kind == "tool"]
    assert (tool.label or "").endswith(" → agent-a1b2c3d")
    assert family.found("→") == []


def test_a_list_of_sessions_says_who_started_a_subagent(family: Mixed) -> None:
    with closing(Archive.open(family.settings())) as archive:
        text = text_form(archive.sessions(SessionsRequest.read({"subagents": "only"}), Caller()))
    assert text.startswith("agent-a1b2c3d Review it. — 1 turn, ")
    assert text.endswith(" · started by kettle#1")


def test_a_long_label_is_cut_so_that_the_name_behind_it_stays(mixed: Mixed) -> None:
    mixed.claude.add(
        user("Find it."),
        agent(call("t1", "Task", description="review " * 50, subagent_type="r", prompt="Review it.")),
        result("t1", "Reviewed.", more={"status": "completed", "agentId": "a1b2c3d", "prompt": "Review it."}),
    )
    write_subagent(mixed)
    mixed.index()
    assert "… → agent-a1b2c3d — ok" in mixed.text(SESSION)


def test_a_subagent_within_its_parents_file_goes_and_comes_back_with_it(mixed: Mixed) -> None:
    side = {"isSidechain": True}
    mixed.claude.usual |= {"version": "1.0.60"}
    mixed.claude.add(
        user("Find the zebra."),
        agent(call("t1", "Task", description="review", subagent_type="r", prompt="Review it.")),
        user("Review it.", parentUuid=None, uuid="s1", **side),
        agent("A zebra.", parentUuid="s1", uuid="s2", id="m2", **side),
        result("t1", "Reviewed.", parentUuid="u1"),
    )
    mixed.index()
    (child,) = mixed.listed(subagents="only")
    assert (child.parent, child.session, child.deleted) == ("kettle#1", None, False)
    content = mixed.claude.path.read_bytes()
    mixed.session("other").add(user("Else."))  # so that the folder is not empty
    mixed.claude.path.unlink()
    mixed.index()
    assert [one.deleted for one in mixed.listed(subagents="only")] == [True]
    mixed.claude.path.write_bytes(content)
    mixed.index()
    (back,) = mixed.listed(subagents="only")
    assert back == child


def test_a_subagent_within_a_file_moves_with_it(mixed: Mixed) -> None:
    mixed.claude.usual |= {"version": "1.0.60"}
    mixed.claude.add(
        user("Find the zebra."),
        agent(call("t1", "Task", description="review", subagent_type="r", prompt="Review it.")),
        user("Review it.", parentUuid=None, uuid="s1", isSidechain=True),
        agent("A zebra.", parentUuid="s1", uuid="s2", id="m2", isSidechain=True),
    )
    mixed.index()
    (before,) = mixed.listed(subagents="only")
    mixed.claude.folder.rename(mixed.claude.folder.with_name("-home-b-kettle"))
    mixed.index()
    (after,) = mixed.listed(subagents="only")
    assert (after.session_id, after.deleted) == (before.session_id, False)
    assert len(mixed.listed(subagents="include")) == 2


def test_a_subagent_of_codex_names_its_parent(mixed: Mixed) -> None:
    cwd = str(mixed.project)
    mixed.codex.write(meta(cwd=cwd), *asked("Find the zebra."))
    mixed.codex.write(spawned(cwd=cwd), *asked("Look for a zebra."), said("No zebra."), thread=CHILD)
    mixed.index()
    assert mixed.found("zebra") == [(THREAD, 1)]
    (child,) = mixed.listed(subagents="only")
    assert (child.session_id, child.session, child.parent) == (CHILD, None, "kettle#1")


def test_a_subagent_whose_parent_nobody_tells_is_one(mixed: Mixed) -> None:
    mixed.codex.write(meta(thread_source="memory_consolidation", cwd=str(mixed.project)), *asked("A zebra."))
    mixed.index()
    assert mixed.found("zebra") == []
    (child,) = mixed.listed(subagents="only")
    assert (child.session, child.parent) == (None, None)
