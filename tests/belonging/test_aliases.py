"""A transcript that says it is of another session is also named by that one's id, where nobody else has it."""

from contextlib import closing

import pytest

from indexer.commands import Forget, Order
from indexer.service import carry_out
from schemas.errors import Ambiguous, NotFound
from search_api.archive import Archive
from search_api.caller import Caller
from tests.belonging.mixed import RECORD, Mixed
from tests.indexer.archives import session_of, write_record
from tests.indexer.sources.claude_code.written import SESSION, agent, user

OLD = "7c1e0c7f-0b9d-4a3e-9a52-7d1e5f7c2a11"


def resume(mixed: Mixed, name: str = SESSION) -> None:
    """A session that began with the lines of an older one, as version 1.0 resumed it."""
    written = mixed.session(name)
    written.add(user("Find the zebra.", sessionId=OLD, uuid="a"), user(f"An okapi of {name}.", uuid=f"b-{name}"))


def test_a_session_is_named_by_the_id_that_its_lines_have(mixed: Mixed) -> None:
    resume(mixed)
    mixed.index()
    for word in (OLD, OLD.upper(), f"{OLD}:2"):
        assert mixed.read(word).session_id == SESSION
    assert mixed.search("zebra", session=OLD).hits[0].session_id == SESSION
    with pytest.raises(NotFound):
        mixed.read(OLD[:12])


def test_a_session_that_has_the_id_itself_is_the_one_that_it_names(mixed: Mixed) -> None:
    resume(mixed)
    mixed.session(OLD).add(user("Find the zebra.", uuid="a"))
    mixed.index()
    assert mixed.read(OLD).session_id == OLD
    assert [hit.session_id for hit in mixed.search("zebra").hits] == [OLD]


def test_an_id_of_which_several_have_lines_names_none_of_them(mixed: Mixed) -> None:
    resume(mixed)
    resume(mixed, "another-one")
    mixed.index()
    with pytest.raises(Ambiguous) as refused:
        mixed.read(OLD)
    assert len(refused.value.candidates) == 2


def test_an_id_that_its_lines_have_no_more_names_no_session(mixed: Mixed) -> None:
    resume(mixed)
    mixed.index()
    mixed.claude.path.unlink()
    mixed.session(SESSION).add(user("Written anew, and longer than it was before."), agent("Yes."))
    mixed.index()
    with pytest.raises(NotFound):
        mixed.read(OLD)


def test_a_session_is_forgotten_by_its_own_id_alone(mixed: Mixed) -> None:
    resume(mixed)
    mixed.index()
    with closing(Archive.open(mixed.settings())) as archive, pytest.raises(NotFound):
        archive.sessions_to_forget([OLD], None, None, Caller())
    session = session_of(mixed.settings(), SESSION).id
    carry_out(mixed.settings(), Order(id="1", command=Forget(sessions=(session,), keeps_away=True)), lambda _: None)
    mixed.index()
    with pytest.raises(NotFound):
        mixed.read(OLD)


def test_a_record_of_the_id_that_its_lines_have_is_of_another_session(mixed: Mixed) -> None:
    resume(mixed)
    write_record(mixed.project, RECORD, "Find the giraffe.", session=OLD)
    mixed.index()
    assert mixed.found("zebra") == [(SESSION, 1)]
    assert [one.twin_of for one in mixed.listed(source=["claude-code"])] == [None]


def test_a_subagent_has_not_its_parents_id(mixed: Mixed) -> None:
    mixed.subagent("a1", parent=OLD).add(user("Find the zebra."))
    mixed.index()
    with pytest.raises(NotFound):
        mixed.read(OLD)
