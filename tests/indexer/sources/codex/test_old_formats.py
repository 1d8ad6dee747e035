import json
import os
from pathlib import Path

import pytest

from indexer.sources.base import Unreadable, Unsettled
from indexer.sources.codex import directory
from schemas.items import Kind, Status
from tests.indexer.sources.codex.rollouts import (
    START,
    THREAD,
    CodexHome,
    Line,
    ReadSession,
    context,
    encoded,
    meta,
    user,
)
from tests.indexer.sources.model import transcript_of

HEADER = {"id": THREAD, "timestamp": "2026-11-30T10:00:00.000Z", "instructions": None, "git": {"branch": "main"}}


def said(role: str, text: str) -> dict[str, object]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


ITEMS: list[dict[str, object]] = [
    said(
        "user", "<environment_context>\nCurrent working directory: /home/a/kettle\nShell: bash\n</environment_context>"
    ),
    said("user", "Fix the parser"),
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Plan"}]},
    {"type": "function_call", "name": "shell", "call_id": "c1", "arguments": '{"command":["ls"]}'},
    {
        "type": "function_call_output",
        "call_id": "c1",
        "output": json.dumps({"output": "a.rs", "metadata": {"exit_code": 0}}),
    },
    said("assistant", "Fixed"),
]


def check(session: ReadSession) -> None:
    assert session.texts == [["Fix the parser", "Plan", "shell: ls", "Fixed"]]
    assert session.turns[0].at_ms == START
    assert session.tools == [("shell: ls", Status.OK)]
    assert session.of(Kind.TOOL)[0].output == "a.rs"
    assert session.facts is not None
    assert (session.facts.key, session.facts.started_ms) == (THREAD, START)
    assert (session.facts.project, session.facts.title) == (Path("/home/a/kettle"), "Fix the parser")
    assert session.skipped == []


def test_lines_of_bare_items(codex: CodexHome) -> None:
    state = {"record_type": "state"}
    path = codex.write()
    path.write_bytes(encoded([HEADER, state, *[one for item in ITEMS for one in (item, state)]]))
    check(codex.read(path))


def test_a_directory_may_stand_in_a_tag(codex: CodexHome) -> None:
    context = said("user", "<environment_context>\n  <cwd>/home/a/pot</cwd>\n</environment_context>")
    path = codex.write()
    path.write_bytes(encoded([HEADER, context, *ITEMS[1:]]))
    facts = codex.read(path).facts
    assert facts is not None and facts.project == Path("/home/a/pot")


def test_without_any_directory_the_home_stands_for_the_project(codex: CodexHome) -> None:
    path = codex.write()
    path.write_bytes(encoded([HEADER, *ITEMS[1:]]))
    facts = codex.read(path).facts
    assert facts is not None and facts.project == codex.path


def test_bare_items_without_any_time_have_that_of_the_file(codex: CodexHome) -> None:
    path = codex.write(thread="x", stamp="2026")
    path.write_bytes(encoded(ITEMS))
    os.utime(path, ns=(START * 1_000_000, START * 1_000_000))
    assert codex.read(path).turns[0].at_ms == START


def test_one_document(codex: CodexHome) -> None:
    path = codex.sessions / f"rollout-2026-11-30-{THREAD}.json"
    path.write_text(json.dumps({"session": HEADER, "items": ITEMS}, indent=2))
    assert codex.listed() == [path]
    session = codex.read(path)
    check(session)
    assert codex.read_on(path, session) == 0


def test_a_document_that_is_cut_changes_nothing(codex: CodexHome) -> None:
    path = codex.sessions / f"rollout-2026-11-30-{THREAD}.json"
    path.write_text(json.dumps({"session": HEADER, "items": ITEMS})[:-9])
    with pytest.raises(Unsettled):
        codex.read_on(path, ReadSession(), settle_ms=60_000)
    with pytest.raises(Unreadable):
        codex.read(path)


def test_the_head_of_a_file_tells_a_directory_that_stands_in_its_first_message(codex: CodexHome) -> None:
    path = codex.write()
    path.write_bytes(encoded([HEADER, *ITEMS]))
    assert head_of(codex, path) == (THREAD, Path("/home/a/kettle"), START)


def test_the_head_of_a_file_that_nowhere_tells_a_directory_says_so(codex: CodexHome) -> None:
    path = codex.write()
    path.write_bytes(encoded([HEADER, *ITEMS[1:]]))
    assert head_of(codex, path) == (THREAD, codex.path, START)


@pytest.mark.parametrize("before", [[ITEMS[-1]] * directory.MAX_LINES, [said("assistant", "x" * directory.MAX_BYTES)]])
def test_a_directory_that_stands_far_behind_is_not_told_by_the_head(
    codex: CodexHome, before: list[dict[str, object]]
) -> None:
    path = codex.write()
    path.write_bytes(encoded([HEADER, *before, *ITEMS]))
    assert head_of(codex, path) is None
    path.write_bytes(encoded([HEADER, *before, *ITEMS[1:]]))
    assert head_of(codex, path) is None


@pytest.mark.parametrize("head", [[], [meta(cwd=None)]], ids=["no header", "a header without one"])
@pytest.mark.parametrize("turn_id", ["n1", None])
def test_where_the_header_tells_no_directory_the_first_turn_does(
    codex: CodexHome, head: list[Line], turn_id: str | None
) -> None:
    path = codex.write(*head, context(turn_id, cwd="/home/a/pot"), *user("One"), context("n2", cwd="/home/a/lid"))
    facts = codex.read(path).facts
    assert facts is not None
    assert (facts.project, facts.title) == (Path("/home/a/pot"), "One")
    assert head_of(codex, path) == (THREAD, Path("/home/a/pot"), facts.started_ms)


@pytest.mark.parametrize("broken", [b"not JSON", b"[]", b"7", b'{"type":"message","role":"user","content":7}'])
def test_a_broken_line_does_not_hide_the_directory_behind_it(codex: CodexHome, broken: bytes) -> None:
    path = codex.write()
    path.write_bytes(encoded([HEADER, broken, *ITEMS]))
    assert head_of(codex, path) == (THREAD, Path("/home/a/kettle"), START)


def test_the_head_of_a_file_without_header_is_told_by_its_name_and_first_message(codex: CodexHome) -> None:
    path = codex.write()
    path.write_bytes(encoded([*ITEMS]))
    facts = codex.read(path).facts
    assert facts is not None
    assert head_of(codex, path) == (THREAD, Path("/home/a/kettle"), facts.started_ms)


def test_a_document_tells_its_directory_and_start_before_it_is_read(codex: CodexHome) -> None:
    path = codex.sessions / f"rollout-2025-04-30-{THREAD}.json"
    path.write_text(json.dumps({"session": HEADER, "items": ITEMS}), encoding="utf-8")
    assert head_of(codex, path) == (THREAD, Path("/home/a/kettle"), START)
    for content in ("not JSON", "{}", '{"session": 7, "items": 7}'):
        path.write_text(content, encoding="utf-8")
        told = head_of(codex, path)
        assert told is None or told[:2] == (THREAD, codex.path)


def head_of(codex: CodexHome, path: Path) -> tuple[str, Path, int | None] | None:
    """Identity, project and start, as the head of a file tells them."""
    facts = codex.source.facts(transcript_of(path, codex.root_of(path)))
    return None if facts is None else (facts.key, facts.project, facts.started_ms)
