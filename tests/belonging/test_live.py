"""Sessions of agents at work, found and read while they grow."""

from collections.abc import Iterator

import pytest

from indexer.service import Indexer
from schemas.errors import TurndexError
from tests.belonging.mixed import Mixed
from tests.indexer.archives import write_record
from tests.indexer.sources.claude_code.written import SESSION, agent, call, result, user
from tests.indexer.sources.codex.rollouts import THREAD, context, meta, output, started
from tests.indexer.sources.codex.rollouts import call as called
from tests.indexer.sources.codex.rollouts import user as asked
from tests.waiting import wait_for


@pytest.fixture
def live(mixed: Mixed) -> Iterator[Mixed]:
    indexer = Indexer(mixed.settings())
    indexer.start()
    try:
        yield mixed
    finally:
        indexer.stop()


def wait_until_found(mixed: Mixed, query: str, *expected: tuple[str, int], **arguments: str) -> None:
    wait_for(lambda: mixed.found(query, **arguments) == list(expected), f"{query!r} is found in {expected}")


def wait_until_read(mixed: Mixed, session: str, line: str) -> None:
    def has_line() -> bool:
        try:
            return line in mixed.text(session).split("\n")
        except TurndexError:
            return False

    wait_for(has_line, f"{session} has the line {line!r}")


def test_a_session_of_claude_code_is_found_and_read_while_it_grows(live: Mixed) -> None:
    live.claude.add(user("Find the zebra."))
    wait_until_found(live, "zebra", (SESSION, 1))
    live.claude.add(agent(call("t1", "Bash", command="cargo test zebra")))
    wait_until_read(live, SESSION, "tool: Bash: cargo test zebra — running")
    live.claude.add(result("t1", "FAILED", is_error=True))
    wait_until_read(live, SESSION, "tool: Bash: cargo test zebra — failed")
    live.subagent("a1b2c3d").add(user("Look for an okapi."))
    wait_until_found(live, "okapi", ("agent-a1b2c3d", 1), subagents="include")


def test_a_thread_of_codex_is_found_and_read_while_it_grows(live: Mixed) -> None:
    path = live.codex.write(meta(cwd=str(live.project)), started("T1"), *asked("Find the zebra."), context("T1"))
    wait_until_found(live, "zebra", (THREAD, 1))
    live.codex.append(path, called("exec_command", {"cmd": "ls"}))
    wait_until_read(live, THREAD, "tool: shell: ls — running")
    live.codex.append(path, output("a.rs"))
    wait_until_read(live, THREAD, "tool: shell: ls — ok")


def test_a_session_gives_way_to_its_record_as_soon_as_that_names_it(live: Mixed) -> None:
    live.claude.add(user("Find the zebra."))
    wait_until_found(live, "zebra", (SESSION, 1))
    write_record(live.project, "1790000000100", "Find the zebra.")
    wait_for(lambda: len(live.found("zebra")) == 2, "both are found")
    write_record(live.project, "1790000000100", "Find the zebra.", session=SESSION)
    wait_until_found(live, "zebra", ("1790000000100", 1))
