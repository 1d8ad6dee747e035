import json
import os
from pathlib import Path

import pytest

from indexer.sources.base import Unreadable, Unsettled
from schemas.items import Kind, Status
from tests.indexer.sources.codex.rollouts import START, THREAD, CodexHome, ReadSession, encoded

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
