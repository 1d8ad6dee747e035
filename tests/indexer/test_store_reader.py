"""What a reader of the store tells of its sessions."""

from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

from indexer.store.reader import Condition, StoreReader
from tests.indexer.archives import Transcripts, append, index, user

CONDITIONS = [
    Condition(),
    Condition("s.is_archived"),
    Condition("NOT s.is_archived"),
    Condition("s.title = ?", ("kettle",)),
    Condition("s.title IN (?, ?)", ("kettle", "lid")) & Condition("s.turns > ?", (1,)),
    Condition("s.parent_id = ?", ("one that is not there",)),
    Condition("0"),
]


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    made = Transcripts(tmp_path)
    for number, (project, title, turns) in enumerate(product("abc", ("kettle", "lid", "spout"), (1, 2))):
        path = made.turn_file(
            f"{number}", *(user(f"text {n}") for n in range(turns)), project=f"/home/a/{project}", title=title
        )
        if number % 4 == 0:
            append(path, {"type": "archived", "value": True})
    return made


@pytest.mark.parametrize("allowed", [None, ["/home/a/a", "/home/a/c"], []], ids=["all", "some", "none"])
def test_a_choice_tells_the_sessions_that_a_condition_lets_through_and_that_may_be_seen(
    transcripts: Transcripts, allowed: list[str] | None
) -> None:
    index(transcripts.settings())
    with closing(StoreReader(transcripts.settings().data_dir)) as everything:
        projects = {one.id: set[int]() for one in everything.all_projects()}
        for session in everything.sessions(Condition()):
            projects[session.project.id].add(session.id)
    everyone = set[int]().union(*projects.values())
    with closing(StoreReader(transcripts.settings().data_dir, allowed)) as store:
        for condition in CONDITIONS:
            fitting = {session.id for session in store.sessions(condition)}
            for project, keys in [(None, everyone), *projects.items()]:
                among = Condition() if project is None else Condition("s.project = ?", (project,))
                choice = store.choice(among, condition)
                chosen = keys if choice.only is None else set(choice.only)
                assert chosen - set(choice.without) == fitting & keys, (project, condition)
                assert len(choice.only or ()) + len(choice.without) <= len(keys) / 2


def test_a_choice_is_made_anew_once_the_store_has_changed(transcripts: Transcripts) -> None:
    settings = transcripts.settings()
    index(settings)
    with closing(StoreReader(settings.data_dir)) as store:
        before = store.choice(Condition(), Condition("s.is_archived"))
        assert store.choice(Condition(), Condition("s.is_archived")) is before
        append(transcripts.turns / "1.turns.jsonl", {"type": "archived", "value": True})
        index(settings)
        after = store.choice(Condition(), Condition("s.is_archived"))
        assert before.only is not None
        assert after.only is not None
        assert len(after.only) == len(before.only) + 1
