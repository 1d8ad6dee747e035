"""What was forgotten leaves what belonged to it as it would be without it."""

import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

import indexer.forget
from indexer.store.schema import STORE_FILE
from search_api.archive import Archive
from search_api.caller import Caller
from search_api.forgetting import told_beforehand
from tests.belonging.forgetting import forget
from tests.belonging.mixed import RECORD, Mixed, ids
from tests.indexer.archives import write_record
from tests.indexer.sources.claude_code.written import SESSION, Written, agent, call, user
from tests.indexer.sources.codex.rollouts import CHILD, OTHER, THREAD, encoded, file_name, meta
from tests.indexer.sources.codex.rollouts import user as asked
from tests.indexer.test_forget import SECRET, deleted_earlier, index_folder, traces

DAY_SECONDS = 86_400


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


def test_that_a_twin_stays_is_told_before_its_record_is_forgotten(mixed: Mixed) -> None:
    write_record_of(mixed, SESSION)
    mixed.claude.add(user("Find the zebra."))
    mixed.index()
    stays = f"… what the agent itself wrote of {RECORD} stays and is found, unless it is named too: {SESSION}"
    with closing(Archive.open(mixed.settings())) as archive:
        alone, both = (
            told_beforehand(archive.sessions_to_forget(named, None, None, Caller()))
            for named in ([RECORD], [RECORD, SESSION])
        )
    assert alone[-1] == stays
    assert stays not in both
    assert forget(mixed, RECORD, SESSION)[1] == (2, 2)
    assert mixed.listed(source=["cydonia", "claude-code"]) == []


# A session goes with what it started.


def thread(mixed: Mixed, id_: str, text: str, parent: str | None = None) -> Path:
    """A thread of Codex, of which another one may have been the start."""
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": parent, "depth": 1}}}
    head = meta(id_, cwd=str(mixed.project), **({} if parent is None else {"source": spawn}))
    return mixed.codex.write(head, *asked(text), thread=id_)


def write_family(mixed: Mixed) -> None:
    """A session of Claude Code with a subagent in its file and one beside it; a thread, its subagent, and theirs."""
    with_side(mixed)
    mixed.subagent("a1b2c3d").add(user(f"Review it, {SECRET}.", uuid="a1"), agent("A tapir."), user("More.", uuid="a2"))
    thread(mixed, THREAD, "Find the zebra.")
    thread(mixed, CHILD, f"Look for {SECRET}.", THREAD)
    thread(mixed, OTHER, f"Look closer for {SECRET}.", CHILD)
    mixed.session("other").add(user("Else.", uuid="other"))


@pytest.fixture
def family(mixed: Mixed) -> Mixed:
    write_family(mixed)
    mixed.index()
    return mixed


def test_a_session_is_forgotten_with_all_that_it_started(family: Mixed) -> None:
    assert traces(family.settings())
    lines, done = forget(family, SESSION, THREAD)
    assert lines == [
        "to be forgotten: 6 sessions with 7 turns",
        "  kettle#2 Find the zebra. — 1 turn, and 2 subagents with 3 turns",
        "  kettle#1 Find the zebra. — 1 turn, and 2 subagents with 2 turns",
        "… of 6 sessions the file is still there; it stays where it is, and is not read again",
    ]
    assert done == (6, 7)
    assert ids(family.listed(subagents="include")) == ["other"]
    assert traces(family.settings()) == []
    family.index()
    assert ids(family.listed(subagents="include")) == ["other"]


def test_a_subagent_that_is_named_goes_alone_with_what_it_started(family: Mixed) -> None:
    lines, done = forget(family, CHILD)
    assert lines[:2] == [
        "to be forgotten: 2 sessions with 2 turns",
        f"  {CHILD} Look for {SECRET}. — 1 turn, and 1 subagent with 1 turn",
    ]
    assert done == (2, 2)
    family.index()
    assert THREAD in ids(family.listed())
    assert len(family.listed(subagents="only")) == 2


def test_what_is_named_twice_counts_once(family: Mixed) -> None:
    lines, done = forget(family, OTHER, THREAD, CHILD, "kettle#1")
    assert lines[:2] == [
        "to be forgotten: 3 sessions with 3 turns",
        "  kettle#1 Find the zebra. — 1 turn, and 2 subagents with 2 turns",
    ]
    assert len(lines) == 3
    assert done == (3, 3)


def test_a_session_whose_file_has_long_been_gone_takes_along_subagents_that_have_one(family: Mixed) -> None:
    (family.codex.day / file_name(THREAD)).unlink()
    family.index()
    assert forget(family, deleted_before="90d") == (["to be forgotten: 0 sessions with 0 turns"], (0, 0))
    deleted_earlier(family.settings(), 91 * DAY_SECONDS)
    lines, done = forget(family, deleted_before="90d")
    assert (lines[0], done) == ("to be forgotten: 3 sessions with 3 turns", (3, 3))
    assert lines[-1].startswith("… of 2 sessions the file is still there;")
    family.index()
    assert not {THREAD, CHILD, OTHER} & set(ids(family.listed(subagents="include")))


def test_a_subagent_whose_file_has_long_been_gone_goes_without_its_parent(family: Mixed) -> None:
    (family.codex.day / file_name(CHILD)).unlink()
    family.index()
    deleted_earlier(family.settings(), 91 * DAY_SECONDS)
    lines, done = forget(family, deleted_before="90d")
    assert (lines[0], done) == ("to be forgotten: 2 sessions with 2 turns", (2, 2))
    assert THREAD in ids(family.listed())


def test_history_that_is_not_kept_goes_by_the_file_of_each(family: Mixed, monkeypatch: pytest.MonkeyPatch) -> None:
    family.keeps_deleted = False
    family.claude.path.unlink()
    (family.codex.day / file_name(THREAD)).unlink()
    family.index()
    monkeypatch.setattr(indexer.forget, "GONE_SECONDS", 0.0)
    family.index()
    left = ["other", "agent-a1b2c3d", CHILD, OTHER]
    assert ids(family.listed(subagents="include")) == sorted(left)
    family.index()
    assert ids(family.listed(subagents="include")) == sorted(left)


def test_subagents_that_callers_may_not_see_go_with_the_session_that_started_them(mixed: Mixed) -> None:
    thread(mixed, THREAD, "Find the zebra.")
    elsewhere = meta(
        CHILD, cwd="/home/a/elsewhere", source={"subagent": {"thread_spawn": {"parent_thread_id": THREAD}}}
    )
    mixed.codex.write(elsewhere, *asked("Look."), thread=CHILD)
    mixed.index()
    mixed.allowed = [str(mixed.project)]
    lines, done = forget(mixed, THREAD)
    assert (lines[0], done) == ("to be forgotten: 2 sessions with 2 turns", (2, 2))
    assert not any(CHILD in line for line in lines)
    mixed.allowed = None
    assert mixed.listed(subagents="include") == []


def test_sessions_that_name_each_other_as_parents_go_together(mixed: Mixed) -> None:
    thread(mixed, THREAD, "One.", OTHER)
    thread(mixed, OTHER, "Two.", THREAD)
    mixed.index()
    lines, done = forget(mixed, THREAD, OTHER)
    assert (lines[0], done) == ("to be forgotten: 2 sessions with 2 turns", (2, 2))
    assert mixed.listed(subagents="include") == []


def test_the_subagents_of_a_copy_of_a_session_stay_with_it(mixed: Mixed) -> None:
    mixed.claude.add(user("Find the zebra.", uuid="m1"))
    mixed.subagent("a1b2c3d").add(user("Review it.", uuid="a1"))
    copy = mixed.claude.folder.with_name("-home-b-kettle")
    shutil.copytree(mixed.claude.folder, copy)
    mixed.index()
    assert forget(mixed, "kettle#1")[1] == (2, 2)
    mixed.index()
    assert len(mixed.listed(subagents="include")) == 2
    # What either of them starts from now on belongs to the one beside which it lies.
    for folder in (mixed.claude.folder, copy):
        name = f"{folder.name}/{SESSION}/subagents/agent-{'b' if folder == copy else 'c'}000000.jsonl"
        later = mixed.claude.beside(name, cwd=str(mixed.project), isSidechain=True)
        later.add(user("And this.", uuid=f"later-{folder.name}"))
    mixed.index()
    assert len(mixed.listed(subagents="include")) == 3


# What stays away.


def test_what_a_forgotten_session_starts_later_is_not_read(family: Mixed) -> None:
    forget(family, SESSION, THREAD)
    in_use = index_folder(family.settings())
    family.subagent("later01").add(user(f"Find {SECRET}.", uuid="l1"))
    grandchild = "019adf00-0000-7000-8000-000000000009"
    thread(family, grandchild, f"Find {SECRET}.", OTHER)
    family.index()
    assert ids(family.listed(subagents="include")) == ["other"]
    family.subagent("later01").add(user(f"More {SECRET}.", uuid="l2"))
    family.index()
    family.index()
    assert ids(family.listed(subagents="include")) == ["other"]
    assert traces(family.settings()) == []
    assert index_folder(family.settings()) == in_use  # nothing came that had to be forgotten again


@pytest.mark.parametrize("names", [(THREAD, CHILD, OTHER), (OTHER, CHILD, THREAD), (CHILD, OTHER, THREAD)])
def test_a_family_that_is_found_again_in_any_order_stays_away(family: Mixed, names: Sequence[str]) -> None:
    paths = {name: family.codex.day / file_name(name) for name in names}
    contents = {name: path.read_bytes() for name, path in paths.items()}
    forget(family, THREAD)
    for path in paths.values():
        path.unlink()
    family.index()
    family.codex.archived.mkdir()
    for name in names:
        (family.codex.archived / paths[name].name).write_bytes(contents[name])
        family.index()
    assert not {THREAD, CHILD, OTHER} & set(ids(family.listed(subagents="include")))


@pytest.mark.parametrize("is_elder_first", [True, False])
def test_what_subagents_of_a_forgotten_session_start_stays_away_whichever_is_found_first(
    mixed: Mixed, is_elder_first: bool
) -> None:
    thread(mixed, THREAD, "Find the zebra.")
    thread(mixed, "019adf00-0000-7000-8000-000000000008", "Else.")
    mixed.index()
    forget(mixed, THREAD)
    for id_, parent in ((CHILD, THREAD), (OTHER, CHILD)) if is_elder_first else ((OTHER, CHILD), (CHILD, THREAD)):
        thread(mixed, id_, f"Look for {SECRET}.", parent)
        mixed.index()
    assert len(mixed.listed(subagents="include")) == 1
    assert traces(mixed.settings()) == []


def test_a_family_whose_directory_moves_stays_away(family: Mixed) -> None:
    forget(family, SESSION)
    moved = family.claude.folder.rename(family.claude.folder.with_name("-home-b-kettle"))
    later = f"{moved.name}/{SESSION}/subagents/agent-later01.jsonl"
    family.claude.beside(later, cwd=str(family.project), isSidechain=True).add(user("More.", uuid="l1"))
    family.index()
    assert ids(family.listed(subagents="include")) == sorted(["other", THREAD, CHILD, OTHER])


def test_subagents_that_were_left_of_a_session_forgotten_earlier_are_forgotten(family: Mixed) -> None:
    # As a version did that forgot sessions without what they had started.
    with closing(sqlite3.connect(family.settings().data_dir / STORE_FILE)) as store, store:
        columns = "id, source, key, session_id, x'00', NULL"
        store.execute(f"INSERT INTO tombstones SELECT {columns} FROM sessions WHERE session_id = ?", (THREAD,))
        store.execute("DELETE FROM sessions WHERE session_id = ?", (THREAD,))
    family.index()
    assert not {CHILD, OTHER} & set(ids(family.listed(subagents="include")))


def test_a_key_of_a_session_that_was_never_read_is_given_to_no_other(mixed: Mixed) -> None:
    thread(mixed, THREAD, "Find the zebra.")
    mixed.index()
    forget(mixed, THREAD)
    child = thread(mixed, CHILD, "Look.", THREAD)
    mixed.index()
    mixed.session("other").add(user("A zebra.", uuid="other"))
    mixed.index()
    child.write_bytes(child.read_bytes() + encoded(asked("More."), first=100))
    mixed.index()
    assert mixed.found("zebra", subagents="include") == [("other", 1)]
    assert ids(mixed.listed(subagents="include")) == ["other"]
