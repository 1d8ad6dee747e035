import errno
import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from schemas.answers import Indexing
from schemas.errors import Ambiguous, Unavailable
from schemas.items import Kind
from schemas.requests import ReadRequest, SearchRequest, SessionsRequest
from schemas.settings import Settings
from search_api import cli
from search_api.archive import Archive
from search_api.caller import Caller
from search_api.progress import shown_progress
from search_api.render import json_form, text_form
from search_api.terminal import visible
from search_api.version import VERSION
from tests.search_api.answers import PROJECTS, READ, SEARCHED, STATUS, USER, FakeArchive

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "command-line.md"


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch) -> FakeArchive:
    """What every command opens; the index behind it is fresh."""
    fake = FakeArchive()
    monkeypatch.setattr(Archive, "open", lambda settings: fake)
    monkeypatch.setattr(cli, "bring_up_to_date", lambda settings: None)
    return fake


def run(*words: str, env: Mapping[str, str] | None = None) -> Result:
    return CliRunner(env=env).invoke(cli.main, list(words))


def test_a_search_prints_its_text_form_and_exits_with_0(archive: FakeArchive) -> None:
    result = run("search", "off by one")
    assert (result.exit_code, result.stdout, result.stderr) == (0, text_form(SEARCHED) + "\n", "")
    assert archive.calls == [(SearchRequest(query="off by one"), Caller())]


def test_a_search_that_finds_nothing_exits_with_1(archive: FakeArchive) -> None:
    archive.searched = replace(SEARCHED, hits=[])
    result = run("search", "off by one")
    assert (result.exit_code, result.stdout) == (1, "nothing matches off by one\n")


def test_json_is_the_json_form(archive: FakeArchive) -> None:
    assert run("search", "--json", "x").stdout_bytes == json_form(SEARCHED) + b"\n"
    assert run("read", "43", "--json").stdout_bytes == json_form(READ) + b"\n"
    assert run("projects", "--json").stdout_bytes == json_form(PROJECTS) + b"\n"
    assert json.loads(run("status", "--json").stdout)["uptime_s"] is None


def test_options_have_the_arguments_names(archive: FakeArchive) -> None:
    words = "--session #43 --full --kind user,tool --kind notice --agent codex --limit 3 --archived only --since 7d"
    assert run("search", *words.split(), "--", "--> None").exit_code == 0
    assert run("read", "--max-chars", "5000", "--turns", "5-7", "43").exit_code == 0
    assert run("read", "--max_chars", "5000", "43").exit_code == 0
    assert run("sessions", "--title", "parser", "--closed", "include").exit_code == 0
    assert [request for request, _ in archive.calls] == [
        SearchRequest(
            query="--> None",
            session="#43",
            full=True,
            kind=[Kind.USER, Kind.TOOL, Kind.NOTICE],
            agent=["codex"],
            limit=3,
            archived="only",
            since="7d",
        ),
        ReadRequest(session="43", max_chars=5000, turns="5-7"),
        ReadRequest(session="43", max_chars=5000),
        SessionsRequest(title="parser", closed="include"),
    ]


def test_a_read_is_not_cut_unless_it_says_so(archive: FakeArchive) -> None:
    run("read", "43")
    assert archive.calls[0][0].max_chars is None


def test_the_call_is_about_the_project_around_the_working_directory(archive: FakeArchive) -> None:
    archive.enclosing = "/home/a/lighthouse"
    run("search", "x")
    run("search", "x", "--project", "*")
    assert [(request.project, caller) for request, caller in archive.calls] == [
        (None, Caller("/home/a/lighthouse")),
        ("*", Caller()),
    ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["search"], "QUERY"),
        (["search", "x", "y"], "y"),
        (["search", "x", "--colour", "red"], "colour"),
        (["search", "x", "--limit", "21"], "20"),
        (["search", "x", "--limit", "many"], "limit"),
        (["search", "x", "--order", "newest", "--order", "oldest"], "2 times"),
        (["read"], "REF"),
        (["find", "x"], "find"),
        ([], "command"),
        (["serve", "--port", "x"], "port"),
        (["search", "x", "--config", "/nowhere/config.toml"], "config.toml"),
    ],
)
def test_a_call_that_is_off_is_one_line_and_exit_code_2(archive: FakeArchive, words: list[str], says: str) -> None:
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error (invalid_argument): ")
    assert result.stderr.count("\n") == 1
    assert says in result.stderr


def test_a_refusal_is_one_line_with_its_candidates(archive: FakeArchive) -> None:
    archive.was_read = Ambiguous("#1 is in several projects", ["a#1", "b#1"])
    result = run("read", "#1")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "Error (ambiguous): #1 is in several projects; one of: a#1, b#1\n"


def test_a_fault_of_ours_is_not_taken_for_nothing_found(archive: FakeArchive) -> None:
    archive.searched = ZeroDivisionError("in a test")
    result = run("search", "x")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error (internal): a fault of ours (ZeroDivisionError)" in result.stderr


def test_an_interrupted_command_exits_with_130(archive: FakeArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(settings: Settings) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "bring_up_to_date", interrupted)
    result = run("search", "x")
    assert (result.exit_code, result.output.strip()) == (130, "")


def test_standard_error_says_how_old_the_index_is(archive: FakeArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "bring_up_to_date", lambda settings: "the index is 3 min old")
    result = run("search", "x")
    assert (result.exit_code, result.stderr) == (0, "… the index is 3 min old\n")


def test_control_characters_of_transcripts_are_shown_as_symbols(archive: FakeArchive) -> None:
    text = "red \x1b[31m\tx\r\ny\x7f\x9b\x00\rz"
    archive.was_read = replace(READ, parts=[replace(READ.parts[0], items=[replace(USER, text=text)])])
    assert "user: red ␛[31m\tx\ny␡\ufffd␀␍z\n" in run("read", "43").stdout
    as_json = run("read", "43", "--json").stdout
    assert not set(as_json[:-1]) & {chr(code) for code in [*range(0x20), *range(0x7F, 0xA0)]}
    assert json.loads(as_json)["items"][0]["text"] == text


def test_an_error_has_no_control_characters(archive: FakeArchive) -> None:
    assert "\x1b" not in run("search", "x", "--colour\x1b[2J").stderr


def test_help_names_what_can_be_done_and_version_says_which_it_is() -> None:
    assert run("--version").stdout == f"turndex {VERSION}\n"
    assert "--max-chars" in run("read", "--help").stdout
    assert run("-h").exit_code == 0


def test_doctor_says_what_is_amiss(archive: FakeArchive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    well = run("doctor", "--data-dir", str(tmp_path))
    assert (well.exit_code, well.stdout.split("\n")[2]) == (0, "ok: store and index: 3 sessions, 40 turns")

    def broken(settings: Settings) -> Archive:
        raise Unavailable("the store cannot be opened")

    monkeypatch.setattr(Archive, "open", broken)
    tmp_path.chmod(0o755)
    ill = run("doctor", "--data-dir", str(tmp_path))
    assert ill.exit_code == 2
    assert "amiss: data directory: " in ill.stdout
    assert "amiss: store and index: the store cannot be opened" in ill.stdout


def test_progress_is_a_line_for_every_tenth_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress() as tell:
        for done in range(0, 101, 4):
            tell(Indexing(sessions_done=done, sessions_total=100, bytes_done=done, bytes_total=100))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "12 %: 12 of 100 sessions"
    assert [line.split(" ")[0] for line in lines] == ["12", "20", "32", "40", "52", "60", "72", "80", "92", "100"]


PROGRAM = """
import sys
from dataclasses import replace
from search_api import cli
from search_api.archive import Archive
from tests.search_api.answers import SEARCHED, HIT, FakeArchive
many = replace(SEARCHED, hits=[replace(HIT, title='Straße 解析器')] * int(sys.argv.pop(1)))
Archive.open = lambda settings: FakeArchive(searched=many)
cli.bring_up_to_date = lambda settings: None
try:
    cli.main()
finally:
    HEAVY = {'fastapi', 'httpx2', 'mcp', 'rich', 'starlette', 'uvicorn', 'watchfiles'}
    loaded = {name.partition('.')[0] for name in sys.modules}
    sys.stderr.write(' '.join(sorted(loaded & HEAVY)))
"""


def program(hits: int, *words: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, str(hits), *words]


def environment(**changes: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if name not in ("LANG", "LC_ALL", "LC_CTYPE", "PYTHONUTF8")
    }
    return {**kept, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]), **changes}


@pytest.mark.parametrize("locale", [{"LANG": "C"}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"}])
def test_output_is_utf_8_whatever_the_locale(locale: dict[str, str]) -> None:
    done = subprocess.run(program(1, "search", "x"), env=environment(**locale), capture_output=True, check=True)
    assert done.stdout.decode() == "#43:5 Straße 解析器 — the span is off by one\n"


def test_a_search_loads_neither_the_server_nor_the_progress_bar() -> None:
    done = subprocess.run(program(1, "search", "x"), env=environment(), capture_output=True, check=True)
    assert done.stderr == b""


def test_a_closed_pipe_ends_it_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        program(50_000, "search", "x"), env=environment(), stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_matches_are_highlighted_on_a_terminal_only() -> None:
    highlighted = "the span is \x1b[1;33moff by one\x1b[0m"
    assert highlighted in _on_a_terminal(program(1, "search", "x"), environment(TERM="xterm"))
    assert "\x1b" not in _on_a_terminal(program(1, "search", "x"), environment(TERM="xterm", NO_COLOR="1"))
    done = subprocess.run(program(1, "search", "x"), env=environment(TERM="xterm"), capture_output=True, check=True)
    assert b"\x1b" not in done.stdout


def _on_a_terminal(words: list[str], env: dict[str, str]) -> str:
    master, slave = pty.openpty()
    try:
        with subprocess.Popen(words, env=env, stdout=slave, stderr=subprocess.DEVNULL) as process:
            os.close(slave)
            chunks = []
            try:
                while chunk := os.read(master, 4096):
                    chunks.append(chunk)
            except OSError as error:
                # Linux says EIO, where others say end of file, when nobody holds the other end any more.
                assert error.errno == errno.EIO
            assert process.wait(30) == 0
    finally:
        os.close(master)
    return b"".join(chunks).decode()


def test_what_is_visible_keeps_line_breaks_and_tabs() -> None:
    assert visible("a\tb\nc\u2028") == "a\tb\nc\u2028"


def test_every_command_and_option_is_documented() -> None:
    text = DOCS.read_text(encoding="utf-8")
    wanted = {"--version"}
    for name, command in cli.main.commands.items():
        wanted.add(f"turndex {name}")
        options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
        assert all(option.help for option in options)
        wanted |= {option.opts[0] for option in options}
    assert {name for name in wanted if f"`{name}`" not in text} == set()


def test_the_status_command_asks_nobody_where_no_server_runs(archive: FakeArchive, tmp_path: Path) -> None:
    result = run("status", "--data-dir", str(tmp_path))
    assert result.stdout == text_form(replace(STATUS, uptime_s=None)) + "\n"
