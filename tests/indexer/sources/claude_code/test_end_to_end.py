"""A tree of Claude Code's, from its files to store and answers."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from search_api.cli import main
from tests.indexer.sources.claude_code.written import (
    SESSION,
    Written,
    agent,
    call,
    result,
    sidecar,
    user,
    written_in,
)


@pytest.fixture
def tree(home: Path) -> Written:
    """A session with a subagent, and a file that is none, in the usual place."""
    written = written_in(home / ".claude")
    written.add(
        user("The span is off when the range is open."),
        agent(call("t1", "Bash", command="cargo test parser")),
        result("t1", "FAILED open_range", is_error=True),
        agent(call("t2", "Task", description="review the diff", subagent_type="reviewer", prompt="Review it.")),
    )
    subagent = written.beside(f"-home-a-kettle/{SESSION}/subagents/agent-a1b2c3d.jsonl", isSidechain=True)
    subagent.add(user("Review it."), agent("No zebra in sight."))
    written.beside("-home-a-kettle/none.jsonl").add(sidecar("mode", mode="plan"))
    return written


def turndex(*arguments: str) -> str:
    answer = CliRunner().invoke(main, list(arguments))
    assert answer.exit_code in (0, 1), answer.output
    return answer.output


def test_a_tree_is_indexed_searched_and_read(tree: Written) -> None:
    turndex("index")
    assert "FAILED open_range" in turndex("search", "open_range", "--full")
    assert "agent: No zebra in sight.\n" in turndex("read", "agent-a1b2c3d")
    text = turndex("read", SESSION)
    assert "user: The span is off when the range is open.\n" in text
    assert "tool: Bash: cargo test parser — failed\n" in text
    assert "tool: Task: review the diff (reviewer) — running" in text
    tree.add(result("t2", "Reviewed."), agent("Fixed.", id="m9"))
    turndex("index")
    text = turndex("read", SESSION)
    assert "tool: Task: review the diff (reviewer) — ok\nagent: Fixed." in text
