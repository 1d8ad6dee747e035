"""Asking an archive through its doors: the HTTP application and the command line, both in this process."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
from click.testing import CliRunner, Result
from fastapi import FastAPI

from schemas.settings import Settings
from search_api.archive import Archive
from search_api.cli import main
from search_api.http import create_app
from tests.indexer.archives import Transcripts
from tests.search_api.calling import get

TABLE = "CREATE TABLE IF NOT EXISTS entries (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT)"


@contextmanager
def app_on(settings: Settings) -> Iterator[FastAPI]:
    """The HTTP application on what is indexed; nothing indexes meanwhile."""
    with closing(Archive.open(settings)) as archive:
        yield create_app(archive, settings, archive.status)


def asked(settings: Settings, path: str, **words: str) -> httpx.Response:
    """What a GET answers."""
    with app_on(settings) as app:
        return get(app, path, params=words)


def answered(settings: Settings, path: str, **words: str) -> dict[str, Any]:
    """The JSON form of an answer that is no refusal."""
    answer: dict[str, Any] = asked(settings, path, **words).raise_for_status().json()
    return answer


def refused(settings: Settings, path: str, **words: str) -> tuple[str, str]:
    """Code and detail of a refusal."""
    response = asked(settings, path, **words)
    assert not response.is_success, response.text
    return refusal_of(response)


def refusal_of(response: httpx.Response) -> tuple[str, str]:
    problem = response.json()
    return problem["code"], problem["detail"]


def session_named(settings: Settings, words: str, **more: str) -> str:
    """The id of the session that the words name."""
    return str(answered(settings, "/session_read", session=words, **more)["session_id"])


def run(*words: str) -> Result:
    """A command, as the shell would run it."""
    return CliRunner().invoke(main, list(words))


def config_file(transcripts: Transcripts) -> Path:
    """A settings file that says what `transcripts.settings()` does."""
    path = transcripts.folder / "config.toml"
    path.write_text(
        f"data_dir = {json.dumps(str(transcripts.folder / 'data'))}\n"
        f"[sources.cydonia]\nstate_file = {json.dumps(str(transcripts.state_file))}\n"
        f"[sources.turn-file]\nfolders = [{json.dumps(str(transcripts.turns))}]\n",
        encoding="utf-8",
    )
    return path


def write_registry(project: Path, *entries: tuple[int, str, str | None]) -> None:
    """Make these all that the project's own registry says; an id of None is a tombstone."""
    (project / ".cydonia").mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(project / ".cydonia" / "state.db")) as registry, registry:
        registry.execute(TABLE)
        registry.execute("DELETE FROM entries")
        registry.executemany("INSERT INTO entries VALUES (?, ?, ?)", entries)
