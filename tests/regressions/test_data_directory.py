"""The data directory: how it is named, whose it is, and what happens when it goes away."""

import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from schemas.settings import Settings, default_data_dir
from search_api.archive import Archive
from search_api.http import create_app
from search_api.write_side import indexing
from tests.indexer.archives import Transcripts, append, found_in, index, user
from tests.regressions.asking import run
from tests.search_api.calling import get
from tests.waiting import wait_for

NEVER_FREE = 2**60
"""More bytes than any disk has."""

REMOVED = "the data directory was removed or replaced; restart the server"


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    transcripts = Transcripts(tmp_path)
    transcripts.turn_file("a", user("hello"))
    return transcripts


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("command", [["index"], ["search", "hello"], ["status"]], ids=" ".join)
def test_an_empty_data_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    by_flag = run(*command, "--data-dir", "")
    monkeypatch.setenv("TURNDEX_DATA_DIR", "")
    by_environment = run(*command)
    for result in (by_flag, by_environment):
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("Error (invalid_argument): setting data_dir: ")
    assert list(tmp_path.iterdir()) == []


def test_a_data_directory_that_was_named_and_is_there_keeps_its_mode(transcripts: Transcripts) -> None:
    settings = transcripts.settings()
    settings.data_dir.mkdir()
    settings.data_dir.chmod(0o755)
    index(settings)
    assert mode_of(settings.data_dir) == 0o755
    assert found_in(settings, "hello") == [("a", 1)]


def test_a_data_directory_that_was_named_and_is_made_is_the_users_alone(transcripts: Transcripts) -> None:
    settings = transcripts.settings()
    index(settings)
    assert mode_of(settings.data_dir) == 0o700


def test_the_default_data_directory_is_the_users_alone_whoever_made_it() -> None:
    default_data_dir().mkdir(parents=True)
    default_data_dir().chmod(0o755)
    assert run("index").exit_code == 0
    assert mode_of(default_data_dir()) == 0o700


@contextmanager
def serving(settings: Settings) -> Iterator[FastAPI]:
    """The HTTP application of a server that indexes meanwhile."""
    with indexing(settings) as status_of, closing(Archive.open(settings)) as archive:
        yield create_app(archive, settings, lambda: status_of(archive))


@pytest.mark.parametrize("is_made_again", [False, True], ids=["removed", "replaced"])
def test_indexing_ends_and_says_so_when_its_data_directory_goes(
    transcripts: Transcripts, caplog: pytest.LogCaptureFixture, is_made_again: bool
) -> None:
    settings = transcripts.settings()
    with serving(settings) as app:
        wait_for(lambda: get(app, "/readyz").is_success, "the first scan is done")
        (thread,) = (one for one in threading.enumerate() if one.name == "turndex-indexer")
        shutil.rmtree(settings.data_dir)
        if is_made_again:
            settings.data_dir.mkdir()
        append(transcripts.turns / "a.turns.jsonl", user("after the end"))
        wait_for(lambda: get(app, "/status").json()["notes"] == [REMOVED], "it is said")
        assert get(app, "/readyz").status_code == 503
        wait_for(lambda: not thread.is_alive(), "it ends")
    tries = [record for record in caplog.records if "it is tried again" in record.message]
    assert len(tries) <= 1, "a write that was under way may fail; after it nothing is tried"
    assert settings.data_dir.exists() is is_made_again
    index(settings)
    assert found_in(settings, "after the end") == [("a", 2)]


def test_a_first_scan_without_room_is_said_to_be_behind(transcripts: Transcripts) -> None:
    size = (transcripts.turns / "a.turns.jsonl").stat().st_size
    with serving(transcripts.settings(limits={"min_free_bytes": NEVER_FREE})) as app:

        def told() -> Any:
            """How far the scan is, once it is known how much there is."""
            indexing = get(app, "/session_search", params={"q": "hello"}).json()["indexing"]
            return indexing if indexing and indexing["sessions_total"] else None

        scan = wait_for(told, "it is told")
        assert scan == {"sessions_done": 0, "sessions_total": 1, "bytes_done": 0, "bytes_total": size}
        wait_for(lambda: lags(get(app, "/status").json())["turn-file"] > 0, "it lags")
        status = get(app, "/status").json()
        assert status["indexing"] == scan
        assert lags(status)["cydonia"] == 0
        assert status["notes"][0].startswith("indexing stands still: ")


def lags(status: dict[str, Any]) -> dict[str, int]:
    """By source, how many milliseconds it is behind."""
    return {source["source"]: source["lag_ms"] for source in status["sources"]}
