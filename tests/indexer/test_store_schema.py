"""A store of an earlier version is brought up to this one, with all that it keeps."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from indexer.store.schema import SCHEMA_VERSION, STORE_FILE, create_or_open, open_for_reading
from schemas.errors import Unavailable
from tests.indexer.archives import Transcripts, found_in, index, sessions_of, user, write_record
from tests.indexer.earlier_stores import make_earlier


def shape_of(data_dir: Path) -> dict[str, set[str]]:
    with closing(sqlite3.connect(data_dir / STORE_FILE)) as store:
        names = [row[0] for row in store.execute("SELECT name FROM sqlite_schema WHERE sql IS NOT NULL")]
        return {name: {row[1] for row in store.execute(f"PRAGMA table_info({name})")} for name in names}


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_a_store_of_an_earlier_version_keeps_what_it_has_and_learns_of_copies(tmp_path: Path, version: int) -> None:
    transcripts = Transcripts(tmp_path)
    settings = transcripts.settings(limits={"min_free_bytes": 0, "min_free_share": 0.0})
    kept = transcripts.turn_file("kept", user("A zebra that was deleted."))
    transcripts.turn_file("other", user("Else."))
    project = transcripts.project("kettle")
    write_record(project, "1790000000100", "A zebra.")
    fork = {"session": "1790000000100", "before": 1}
    write_record(project, "1790000000900", "A zebra.", "An okapi.", fork=fork)
    index(settings)
    kept.unlink()
    index(settings)
    before, shape = sessions_of(settings), shape_of(settings.data_dir)
    make_earlier(settings.data_dir, version)
    with pytest.raises(Unavailable, match=f"has version {version}"):
        open_for_reading(settings.data_dir)
    index(settings)
    assert shape_of(settings.data_dir) == shape
    assert {handle: one.number for handle, one in sessions_of(settings).items()} == {
        handle: one.number for handle, one in before.items()
    }
    assert sorted(found_in(settings, "zebra")) == [("1790000000100", 1), ("kept", 1)]
    assert ("1790000000900", 1) in found_in(settings, "zebra", copies="include")


def test_a_store_of_a_later_version_is_refused(tmp_path: Path) -> None:
    create_or_open(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / STORE_FILE)) as store:
        store.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(Unavailable, match=f"has version {SCHEMA_VERSION + 1}"):
        create_or_open(tmp_path)
