"""Arguments that are off are refused by name, at every door, and never a fault of ours."""

from pathlib import Path

import pytest

from schemas.settings import Settings
from tests.indexer.archives import Transcripts, index, user
from tests.regressions.asking import app_on, asked, config_file, refusal_of, refused, run
from tests.search_api.calling import post


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    transcripts = Transcripts(tmp_path)
    transcripts.turn_file("kettle", user("hello"))
    return transcripts


@pytest.fixture
def settings(transcripts: Transcripts) -> Settings:
    settings = transcripts.settings()
    index(settings)
    return settings


@pytest.mark.parametrize(
    ("path", "words", "name"),
    [
        ("/session_search", {"q": "hello", "limit": "--5"}, "limit"),
        ("/session_search", {"q": "hello", "context": "--5"}, "context"),
        ("/session_read", {"session": "1", "max_chars": "--5"}, "max_chars"),
        ("/sessions", {"limit": "--5"}, "limit"),
    ],
)
def test_a_number_with_two_signs_in_a_url_is_refused(
    settings: Settings, path: str, words: dict[str, str], name: str
) -> None:
    code, detail = refused(settings, path, **words)
    assert code == "invalid_argument"
    assert detail.startswith(f"{name} takes a whole number")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["search", "hello", "--limit=--5"], "limit"),
        (["read", "1", "--max-chars=--5"], "max_chars"),
        (["sessions", "--limit=--5"], "limit"),
    ],
)
def test_a_number_with_two_signs_on_the_command_line_is_refused(
    transcripts: Transcripts, words: list[str], name: str
) -> None:
    result = run(*words, "--config", str(config_file(transcripts)))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error (invalid_argument): {name} takes a whole number")


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"query": "hello", "query": "hello"}', "query"),
        (b'{"query": "hello", "limit": 1, "limit": 2}', "limit"),
        (b'{"query": "cut \\ud83d", "format": "json", "format": "text"}', "format"),
    ],
)
def test_a_body_that_gives_a_name_twice_is_refused(settings: Settings, body: bytes, name: str) -> None:
    with app_on(settings) as app:
        response = post(app, "/session_search", content=body, headers={"content-type": "application/json"})
    code, detail = refusal_of(response)
    assert code == "invalid_argument"
    assert name in detail
    assert "twice" in detail


@pytest.mark.parametrize("written", ["TRUE", "True", "FALSE", "yes", ""])
def test_a_boolean_in_a_url_is_written_in_small_letters(settings: Settings, written: str) -> None:
    code, detail = refused(settings, "/session_search", q="hello", full=written)
    assert code == "invalid_argument"
    assert detail.startswith("full takes true, false, 1 or 0")


@pytest.mark.parametrize("name", ["q", "query"])
def test_a_blank_query_in_a_url_says_how_to_write_a_number_sign(settings: Settings, name: str) -> None:
    code, detail = refused(settings, "/session_search", **{name: ""})
    assert code == "invalid_query"
    assert "%23" in detail
    assert asked(settings, "/session_search", **{name: "#"}).is_success
