"""When the registry of a project is read again."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from indexer.registries import AGAIN_SECONDS, Registries
from indexer.store.writer import StoreWriter
from tests.indexer.test_store_writer import FACTS, LIVE


def write_row(project: Path, number: int, session_id: str) -> None:
    with closing(sqlite3.connect(project / ".cydonia" / "state.db")) as registry, registry:
        registry.execute("CREATE TABLE IF NOT EXISTS entries (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT)")
        registry.execute("INSERT INTO entries VALUES (?, 'session', ?)", (number, session_id))


@pytest.mark.parametrize("looks", range(len(AGAIN_SECONDS) + 1))
def test_a_session_without_a_number_has_its_row_waited_for_with_growing_patience(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    now = 1000.0
    monkeypatch.setattr("indexer.registries.time.monotonic", lambda: now)
    project = tmp_path / "kettle"
    (project / ".cydonia").mkdir(parents=True)
    write_row(project, 1, "another")
    with closing(StoreWriter(tmp_path)) as store:
        with store.transaction():
            facts = replace(FACTS, project=project)
            session = store.put_session("cydonia", facts, None, key=facts.key, lane=LIVE)
        reading = Registries(store, tmp_path / "scratch")
        reading.expect(project)
        for seconds in AGAIN_SECONDS[:looks]:
            reading.step()
            due = reading.next_due()
            assert due == now + seconds
            now = due
        write_row(project, 7, facts.session_id)
        reading.step()
        number = store.connection.execute("SELECT number FROM sessions WHERE id = ?", (session,)).fetchone()[0]
        assert (number, reading.next_due()) == (7, None)


def test_a_row_that_never_comes_is_waited_for_no_longer_than_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("indexer.registries.time.monotonic", lambda: now)
    project = tmp_path / "kettle"
    with closing(StoreWriter(tmp_path)) as store:
        with store.transaction():
            store.put_session("cydonia", replace(FACTS, project=project), None, key="one", lane=LIVE)
        reading = Registries(store, tmp_path / "scratch")
        reading.expect(project)
        looks = 0
        while (due := reading.next_due()) is not None:
            now = due
            reading.step()
            looks += 1
        assert looks == len(AGAIN_SECONDS) + 1
        assert now == 1000.0 + sum(AGAIN_SECONDS)
