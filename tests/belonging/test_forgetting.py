"""What was forgotten leaves what belonged to it as it would be without it."""

import json

from indexer.commands import Forget, Order
from indexer.service import carry_out
from tests.belonging.mixed import RECORD, Mixed, ids
from tests.indexer.archives import session_of, write_record
from tests.indexer.sources.claude_code.written import SESSION, Written, agent, call, user


def forget(mixed: Mixed, session_id: str) -> None:
    key = session_of(mixed.settings(), session_id).id
    carry_out(mixed.settings(), Order(id=session_id, command=Forget(sessions=(key,), keeps_away=True)), lambda _: None)


def write_record_of(mixed: Mixed, session: str) -> None:
    path = write_record(mixed.project, RECORD, "Find the zebra.", session=session)
    path.write_text(json.dumps(json.loads(path.read_text()), indent=2))


def with_side(mixed: Mixed) -> Written:
    """A session with a subagent in its own file, as 1.0 wrote it."""
    mixed.claude.usual |= {"version": "1.0.60"}
    mixed.claude.add(
        user("Find the zebra."),
        agent(call("t1", "Task", description="review", subagent_type="r", prompt="Review it.")),
        user("Review it.", parentUuid=None, uuid="s1", isSidechain=True),
        agent("An okapi.", parentUuid="s1", uuid="s2", id="m2", isSidechain=True),
    )
    return mixed.claude


def test_a_twin_whose_record_is_forgotten_is_an_ordinary_session(mixed: Mixed) -> None:
    write_record_of(mixed, SESSION)
    mixed.claude.add(user("Find the zebra."))
    mixed.index()
    assert (mixed.found("zebra"), mixed.numbers()[SESSION]) == ([(RECORD, 1)], None)
    forget(mixed, RECORD)
    assert (mixed.found("zebra"), mixed.numbers()) == ([(SESSION, 1)], {SESSION: 1})
    assert mixed.left_out("zebra") == []
    mixed.index()
    assert (mixed.found("zebra"), mixed.numbers()) == ([(SESSION, 1)], {SESSION: 1})


def test_a_copy_whose_original_is_forgotten_is_found(mixed: Mixed) -> None:
    mixed.claude.add(user("Find the zebra.", uuid="a"))
    fork = {"sessionId": SESSION, "messageUuid": "a"}
    mixed.session("fork").add(user("Find the zebra.", uuid="n1", forkedFrom=fork))
    mixed.index()
    assert mixed.found("zebra") == [(SESSION, 1)]
    forget(mixed, SESSION)
    assert mixed.found("zebra") == [("fork", 1)]
    assert mixed.read("fork").parts[0].copied_from is None


def test_a_subagent_in_the_file_of_its_parent_is_forgotten_with_it(mixed: Mixed) -> None:
    written = with_side(mixed)
    mixed.index()
    assert len(mixed.listed(subagents="include")) == 2
    forget(mixed, SESSION)
    assert mixed.listed(subagents="include") == []
    written.add(user("And more."))
    mixed.index()
    assert mixed.listed(subagents="include") == []


def test_a_subagent_in_the_file_of_its_parent_that_is_forgotten_stays_away(mixed: Mixed) -> None:
    written = with_side(mixed)
    mixed.index()
    (child,) = mixed.listed(subagents="only")
    forget(mixed, child.session_id)
    written.add(agent("Another okapi.", parentUuid="s2", uuid="s3", id="m3", isSidechain=True), user("And more."))
    mixed.index()
    assert ids(mixed.listed(subagents="include")) == [SESSION]
    assert mixed.found("okapi", subagents="include") == []
    assert len(mixed.read(SESSION).parts) == 2
