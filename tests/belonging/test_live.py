"""Sessions of agents at work, found and read while they grow."""

from collections.abc import Iterator

import pytest

from indexer.commands import Done, Forget, Forgotten, Order
from indexer.service import Indexer
from schemas.errors import TurndexError
from tests.belonging.mixed import Mixed, ids
from tests.indexer.archives import session_of, write_record
from tests.indexer.sources.claude_code.written import SESSION, agent, call, result, user
from tests.indexer.sources.codex.rollouts import THREAD, context, meta, output
from tests.indexer.sources.codex.rollouts import call as called
from tests.indexer.sources.codex.rollouts import started as begun
from tests.indexer.sources.codex.rollouts import user as asked
from tests.waiting import wait_for


@pytest.fixture
def indexer(mixed: Mixed) -> Iterator[Indexer]:
    started = Indexer(mixed.settings())
    started.start()
    try:
        yield started
    finally:
        started.stop()


@pytest.fixture
def live(mixed: Mixed, indexer: Indexer) -> Mixed:
    """The transcripts of someone whose server is running."""
    return mixed


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
    path = live.codex.write(meta(cwd=str(live.project)), begun("T1"), *asked("Find the zebra."), context("T1"))
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


def test_a_session_answers_as_long_as_its_record_is_gone(live: Mixed) -> None:
    write_record(live.project, "1790000000200", "Else.")  # a folder that is empty where it was not changes nothing
    path = write_record(live.project, "1790000000100", "Find the zebra.", session=SESSION)
    live.claude.add(user("Find the zebra."))
    wait_until_found(live, "zebra", ("1790000000100", 1))
    wait_for(lambda: live.listed(source=["claude-code"]), "the transcript is read, too")
    away = path.rename(live.folder / path.name)
    wait_for(lambda: len(live.found("zebra")) == 2, "both are found")
    assert live.numbers()[SESSION] == 1
    live.claude.add(user("Now the okapi."))
    wait_until_found(live, "okapi", (SESSION, 2))
    away.rename(path)
    wait_until_found(live, "zebra", ("1790000000100", 1))
    assert live.found("okapi") == []
    assert live.numbers()[SESSION] is None


def test_what_a_forgotten_session_starts_is_not_read_while_it_grows(live: Mixed, indexer: Indexer) -> None:
    live.claude.add(user("Find the zebra."))
    live.subagent("a1b2c3d").add(user("Look for the okapi.", uuid="a1"))
    wait_until_found(live, "okapi", ("agent-a1b2c3d", 1), subagents="include")
    doomed = Forget(sessions=(session_of(live.settings(), SESSION).id,))
    *_, done = indexer.submit(Order(id="f", command=doomed)).follow()
    assert done == Done(Forgotten(sessions=2, turns=2))
    live.claude.add(user("Now the okapi."))
    live.subagent("a1b2c3d").add(user("The okapi again.", uuid="a2"))
    live.subagent("later01").add(user("An okapi.", uuid="l1"))
    live.session("other").add(user("Another okapi.", uuid="other"))
    wait_until_found(live, "okapi", ("other", 1), subagents="include")
    assert ids(live.listed(subagents="include")) == ["other"]
