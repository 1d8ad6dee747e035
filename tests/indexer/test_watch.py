import os
import shutil
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from indexer import watch
from indexer.watch import Watcher
from tests.waiting import wait_for


class Heard:
    """A watcher, and what it told."""

    def __init__(self) -> None:
        self.paths: set[Path] = set()
        self.restarts = 0
        self.watcher = Watcher(self._on_change, self._on_restart)

    def _on_change(self, paths: Collection[Path]) -> None:
        self.paths |= set(paths)

    def _on_restart(self) -> None:
        self.restarts += 1

    def wait_for(self, path: Path) -> None:
        wait_for(lambda: path in self.paths, f"{path} is told of")


@pytest.fixture
def heard() -> Iterator[Heard]:
    heard = Heard()
    yield heard
    heard.watcher.stop()


def test_files_at_any_depth_are_told_of_in_a_folder_that_is_watched_with_all_below_it(
    tmp_path: Path, heard: Heard
) -> None:
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    heard.watcher.watch([tmp_path], [])
    for path in (tmp_path / "a", tmp_path / "deep" / "deeper" / "b", tmp_path / "deep" / ".git"):
        path.write_text("x", encoding="utf-8")
        heard.wait_for(path)


def test_nothing_below_a_folder_that_is_watched_by_itself_is_told_of(tmp_path: Path, heard: Heard) -> None:
    (tmp_path / "deep").mkdir()
    heard.watcher.watch([], [tmp_path])
    (tmp_path / "deep" / "a").write_text("x", encoding="utf-8")
    (tmp_path / "b").write_text("x", encoding="utf-8")
    heard.wait_for(tmp_path / "b")
    assert tmp_path / "deep" / "a" not in heard.paths


def test_what_is_written_as_soon_as_a_folder_is_watched_is_told_of(tmp_path: Path, heard: Heard) -> None:
    for n in range(20):
        folder = tmp_path / str(n)
        folder.mkdir()
        heard.watcher.watch([folder], [])
        (folder / "a").write_text("x", encoding="utf-8")
        heard.wait_for(folder / "a")


def test_folders_that_are_made_later_are_watched_too(tmp_path: Path, heard: Heard) -> None:
    heard.watcher.watch([tmp_path], [])
    (tmp_path / "new").mkdir()
    heard.wait_for(tmp_path / "new")
    (tmp_path / "new" / "a").write_text("x", encoding="utf-8")
    heard.wait_for(tmp_path / "new" / "a")


@pytest.mark.parametrize("is_deep", [True, False])
def test_a_folder_that_is_deleted_and_made_again_is_watched_again(tmp_path: Path, heard: Heard, is_deep: bool) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    deep, flat = ([folder], []) if is_deep else ([], [folder])
    heard.watcher.watch(deep, flat)
    shutil.rmtree(folder)
    heard.wait_for(folder)
    folder.mkdir()
    heard.watcher.watch(deep, flat)
    (folder / "a").write_text("x", encoding="utf-8")
    heard.wait_for(folder / "a")


def test_a_file_whose_name_is_no_utf_8_makes_the_watch_start_again(
    tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "RETRY_SECONDS", 0.01)
    heard.watcher.watch([tmp_path], [])
    os.close(os.open(os.fsencode(tmp_path) + b"/caf\xe9", os.O_CREAT | os.O_WRONLY))
    wait_for(lambda: heard.restarts, "the watch starts again")
    path = tmp_path / "a"

    def is_heard() -> bool:
        # Written until it is told of: the watch may only be about to start.
        path.write_text("x", encoding="utf-8")
        return path in heard.paths

    wait_for(is_heard, f"{path} is told of")
    assert heard.watcher.failure is None


def test_a_folder_whose_name_is_no_utf_8_leaves_it_to_whoever_listens_to_look(
    tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "RETRY_SECONDS", 0.01)
    os.mkdir(os.fsencode(tmp_path) + b"/caf\xe9")
    heard.watcher.watch([tmp_path], [])
    wait_for(lambda: heard.restarts > 3, "the watch starts again and again")
    assert heard.watcher.failure is not None


def test_a_watcher_that_is_stopped_leaves_no_thread(tmp_path: Path, heard: Heard) -> None:
    heard.watcher.watch([tmp_path], [tmp_path])
    assert [thread.name for thread in threading.enumerate()].count("turndex-watch") == 2
    heard.watcher.stop()
    assert "turndex-watch" not in [thread.name for thread in threading.enumerate()]
