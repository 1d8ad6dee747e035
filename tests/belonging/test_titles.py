"""Names of threads that stand beside their files."""

import json

from tests.belonging.mixed import Mixed
from tests.indexer.sources.codex.rollouts import THREAD, meta
from tests.indexer.sources.codex.rollouts import user as asked


def rename(mixed: Mixed, name: str, at: str) -> None:
    line = {"id": THREAD, "thread_name": name, "updated_at": at}
    with (mixed.folder / "codex" / "session_index.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def test_a_thread_that_was_renamed_has_its_new_title_at_the_next_look(mixed: Mixed) -> None:
    mixed.codex.write(meta(cwd=str(mixed.project)), *asked("Find the zebra."))
    mixed.index()
    assert [one.title for one in mixed.listed()] == ["Find the zebra."]
    rename(mixed, "Zebras", "2026-11-30T11:00:00Z")
    mixed.index()
    assert [one.title for one in mixed.listed()] == ["Zebras"]
    rename(mixed, "Okapis", "2026-11-30T12:00:00Z")
    mixed.index()
    assert [(one.title, one.session) for one in mixed.listed()] == [("Okapis", 1)]


def test_a_thread_whose_name_was_taken_away_is_called_by_its_first_message_again(mixed: Mixed) -> None:
    mixed.codex.write(meta(cwd=str(mixed.project)), *asked("Find the zebra."))
    rename(mixed, "Zebras", "2026-11-30T11:00:00Z")
    mixed.index()
    assert [one.title for one in mixed.listed()] == ["Zebras"]
    rename(mixed, "", "2026-11-30T12:00:00Z")
    mixed.index()
    assert [one.title for one in mixed.listed()] == ["Find the zebra."]
