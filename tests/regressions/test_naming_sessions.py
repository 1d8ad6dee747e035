"""The words that name a session mean what a caller would expect, and where they name none it is said why."""

from pathlib import Path

import pytest

from schemas.settings import Settings
from tests.indexer.archives import Transcripts, index, user, write_record
from tests.regressions.asking import answered, asked, config_file, refused, run, session_named, write_registry

MORE_THAN_CANDIDATES = 51


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    return Transcripts(tmp_path)


@pytest.fixture
def settings(transcripts: Transcripts) -> Settings:
    return transcripts.settings()


def test_the_beginning_of_an_id_that_many_others_share_names_the_one_of_the_calls_project(
    transcripts: Transcripts, settings: Settings
) -> None:
    for number in range(MORE_THAN_CANDIDATES):
        transcripts.turn_file(f"a{number:02}", user("hello"), id=f"0198f3c2-a{number:02}", project="/home/a/pan")
    transcripts.turn_file("z", user("hello"), id="0198f3c2-z", project="/home/a/kettle")
    index(settings)
    assert session_named(settings, "0198f3c2", project="kettle") == "0198f3c2-z"
    assert refused(settings, "/session_read", session="0198f3c2")[0] == "ambiguous"


@pytest.mark.parametrize("tail", ["0", "x", "3-2", "-1", "", "1:2"])
def test_a_session_id_with_something_behind_it_that_is_no_turns_says_so(
    transcripts: Transcripts, settings: Settings, tail: str
) -> None:
    transcripts.turn_file("0198f3c2-a", user("hello"))
    index(settings)
    code, detail = refused(settings, "/session_read", session=f"0198f3c2-a:{tail}")
    assert code == "invalid_reference"
    assert f"{tail} is not turns of 0198f3c2-a" in detail


def test_a_title_may_begin_like_another_sessions_id(transcripts: Transcripts, settings: Settings) -> None:
    transcripts.turn_file("fix", user("hello"))
    transcripts.turn_file("other", user("hello"), title="fix: the lid")
    index(settings)
    assert session_named(settings, "Fix: the lid") == "other"
    assert refused(settings, "/session_read", session="fix: the spout")[0] == "invalid_reference"


def test_a_projects_name_in_place_of_a_session_says_that_it_is_a_project(
    transcripts: Transcripts, settings: Settings
) -> None:
    transcripts.turn_file("kettle", user("hello"), id="0198f3c2-a")
    index(settings)
    code, detail = refused(settings, "/session_read", session="kettle")
    assert code == "not_found"
    assert detail.startswith("kettle is a project; a session in it is written kettle#43")


def test_a_search_that_includes_closed_projects_takes_their_names_and_titles(
    transcripts: Transcripts, settings: Settings
) -> None:
    kettle = transcripts.project("kettle")
    write_record(kettle, "1790000000000", "hello", title="The lid")
    write_registry(kettle, (2, "session", "1790000000000"))
    index(settings)
    transcripts.list_projects([])
    index(settings)
    for session in ("kettle#2", "the lid"):
        included = answered(settings, "/session_search", q="hello", session=session, closed="include")
        assert [hit["session_id"] for hit in included["hits"]] == ["1790000000000"]
        assert asked(settings, "/session_search", q="hello", session=session).status_code == 404


@pytest.mark.parametrize(("directory", "project"), [("kettle", "."), ("kettle/spout", "..")])
def test_a_project_of_dots_is_a_path_on_the_command_line(
    transcripts: Transcripts, settings: Settings, monkeypatch: pytest.MonkeyPatch, directory: str, project: str
) -> None:
    kettle = transcripts.folder / "kettle"
    (kettle / "spout").mkdir(parents=True)
    transcripts.turn_file("kettle", user("hello"), project=str(kettle))
    transcripts.turn_file("pan", user("hello"))
    index(settings)
    monkeypatch.chdir(transcripts.folder / directory)
    result = run("search", "hello", "--project", project, "--config", str(config_file(transcripts)))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "#1:1 (untitled) — hello\n", "")
