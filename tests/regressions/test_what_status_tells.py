"""Transcripts that are expected and cannot be read are told of in `/status`."""

from pathlib import Path
from typing import Any

import pytest

from schemas.settings import Settings, load_settings
from tests.indexer.archives import Transcripts, append, index, line_of, user
from tests.regressions.asking import answered

HEAD = {"type": "session", "version": 1, "id": "a", "project": "/home/a/kettle"}


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    return Transcripts(tmp_path)


def turn_files(settings: Settings) -> dict[str, Any]:
    """What `/status` says of turn files."""
    (source,) = [one for one in answered(settings, "/status")["sources"] if one["source"] == "turn-file"]
    return dict(source)


@pytest.mark.parametrize(
    ("first_line", "reason"),
    [
        ({"type": "session", "id": "a"}, 'a session line without "id" and "project"'),
        (HEAD | {"project": "kettle"}, '"project" is not an absolute path'),
        (HEAD | {"id": ""}, '"id" is not 1 to 128 characters'),
        (user("hello"), "before the session line"),
        (b"hello\n", "not JSON"),
    ],
)
def test_a_turn_file_without_a_session_line_is_named_with_line_and_reason(
    transcripts: Transcripts, first_line: dict[str, object] | bytes, reason: str
) -> None:
    settings = transcripts.settings()
    path = transcripts.turns / "a.turns.jsonl"
    path.write_bytes(line_of(first_line))
    index(settings)
    told = turn_files(settings)
    assert (told["files"], told["sessions"]) == (1, 0)
    assert {"file": str(path), "line": 1, "reason": reason, "count": 1} in told["errors"]
    append(path, HEAD, user("hello"))
    index(settings)
    told = turn_files(settings)
    assert (told["files"], told["sessions"], told["turns"]) == (1, 1, 1)


def test_a_folder_of_turn_files_that_was_named_and_is_not_there_is_told(transcripts: Transcripts) -> None:
    transcripts.turns.rmdir()
    index(transcripts.settings())
    assert turn_files(transcripts.settings())["unavailable"] == [f"{transcripts.turns}: No such file or directory"]
    transcripts.turns.mkdir()
    index(transcripts.settings())
    assert turn_files(transcripts.settings())["unavailable"] == []


def test_the_default_folder_of_turn_files_need_not_be_there(tmp_path: Path) -> None:
    settings = load_settings(flags={"data_dir": str(tmp_path / "data")})
    index(settings)
    assert turn_files(settings)["unavailable"] == []
