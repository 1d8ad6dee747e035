"""The data directory: how it is named, whose it is, and what happens when it goes away."""

import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from indexer.service import Indexer
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


@pytest.mark.parametrize("command", [["index"], ["search", "hello"], ["status"]])
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
def running(settings: Settings) -> Iterator[Indexer]:
    """An indexer that is ready."""
    indexer = Indexer(settings)
    indexer.start()
    try:
        wait_for(lambda: indexer.status().is_ready, "the first scan is done")
        yield indexer
    finally:
        indexer.stop()


@pytest.mark.parametrize("is_made_again", [False, True])
def test_indexing_ends_and_says_so_when_its_data_directory_is_removed(
    transcripts: Transcripts, caplog: pytest.LogCaptureFixture, is_made_again: bool
) -> None:
    settings = transcripts.settings()
    with running(settings) as indexer, closing(Archive.open(settings)):
        threads = [thread for thread in threading.enumerate() if thread.name == "turndex-indexer"]
        shutil.rmtree(settings.data_dir)
        if is_made_again:
            settings.data_dir.mkdir()
        append(transcripts.turns / "a.turns.jsonl", user("after the end"))
        wait_for(lambda: indexer.status().notes == [REMOVED], "it is said")
        wait_for(lambda: not any(thread.is_alive() for thread in threads), "it ends")
        assert not indexer.status().is_ready
    assert [record.message for record in caplog.records if "it is tried again" in record.message][1:] == []
    assert settings.data_dir.exists() is is_made_again
    index(settings)
    assert found_in(settings, "after the end") == [("a", 2)]


def test_a_first_scan_without_room_is_said_to_be_behind(transcripts: Transcripts) -> None:
    settings = transcripts.settings(limits={"min_free_bytes": NEVER_FREE})
    with indexing(settings) as status_of, closing(Archive.open(settings)) as archive:
        app = create_app(archive, settings, lambda: status_of(archive))
        waiting = {"sessions_done": 0, "sessions_total": 1, "bytes_done": 0}
        scan = wait_for(lambda: get(app, "/session_search", params={"q": "hello"}).json()["indexing"], "it is told")
        assert scan == {**waiting, "bytes_total": (transcripts.turns / "a.turns.jsonl").stat().st_size}
        wait_for(lambda: lags(get(app, "/status").json())["turn-file"] > 0, "it lags")
        status = get(app, "/status").json()
        assert status["indexing"] == scan
        assert lags(status)["cydonia"] == 0
        assert "indexing stands still" in status["notes"][0]


def lags(status: dict[str, list[dict[str, object]]]) -> dict[object, int]:
    return {source["source"]: int(str(source["lag_ms"])) for source in status["sources"]}
