import json
from typing import Any

import pytest

from indexer.sources.claude_code import seen as seen_module
from tests.indexer.sources.claude_code.written import SESSION, Written, agent, sidecar, user

CUSTOM = sidecar("custom-title", customTitle="Mine", sessionId=SESSION)
AI = sidecar("ai-title", aiTitle="Generated", sessionId=SESSION)
SUMMARY = sidecar("summary", summary="Summed up", leafUuid="u0")
NAME = sidecar("agent-name", agentName="crew", sessionId=SESSION)


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        ([CUSTOM, AI, SUMMARY, NAME], "Mine"),
        ([AI, SUMMARY, NAME], "Generated"),
        ([SUMMARY, NAME], "Summed up"),
        ([NAME], "first line"),
        ([sidecar("custom-title", customTitle="Old"), AI, CUSTOM], "Mine"),
        ([sidecar("ai-title", aiTitle="Old"), AI], "Generated"),
        ([CUSTOM, sidecar("custom-title", customTitle="")], "first line"),
        ([CUSTOM, sidecar("custom-title", customTitle=None)], "Mine"),
        ([sidecar("custom-title")], "first line"),
        ([sidecar("summary", summary="Of another", leafUuid="elsewhere")], "first line"),
        ([sidecar("summary", summary="Of none")], "first line"),
    ],
)
def test_the_last_title_of_the_best_kind_is_it(written: Written, lines: list[dict[str, Any]], title: str) -> None:
    session = written.read(user("\n first line \nsecond line"), agent("a"), *lines)
    assert session.the_facts.title == title


def test_a_summary_may_stand_before_the_line_it_is_about(written: Written) -> None:
    session = written.read(
        sidecar("summary", summary="Summed up", leafUuid="leaf"),
        sidecar("summary", summary="Of another", leafUuid="elsewhere"),
        user("u"),
        agent("a", uuid="leaf"),
    )
    assert session.the_facts.title == "Summed up"


def test_a_summary_may_be_about_a_line_long_ago(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_module, "KEPT", 16)
    session = written.read(*[user(f"{number}") for number in range(40)], SUMMARY)
    assert session.the_facts.title == "Summed up"


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        ([user("<command-name>/model</command-name>"), user("Fix it")], "Fix it"),
        ([user("Warmup"), agent("Ready."), user("Fix it")], "Fix it"),
        ([user("This session is being continued from a previous conversation."), user("Fix it")], "Fix it"),
        ([user("[Request interrupted by user]"), user("Fix it")], "Fix it"),
        ([user([{"type": "image", "source": {}}]), user("Fix it")], "Fix it"),
        ([user("<command-message>review</command-message><command-args>12</command-args>")], "/review 12"),
        ([user("<ide_opened_file>a</ide_opened_file>\nFix it")], "Fix it"),
        ([user("<agent-message>Done</agent-message>\nFix it")], "Done"),
        ([user("<ticket id='7'>\nFix it\n</ticket>")], "Fix it"),
        ([user("<div>")], "<div>"),
        ([user([{"type": "image", "source": {}}])], ""),
        ([user("x" * 5000)], "x" * 1000),
        ([agent("only an answer")], ""),
    ],
)
def test_without_any_the_first_message_is_the_title(written: Written, lines: list[Any], title: str) -> None:
    assert written.read(*lines).the_facts.title == title


def test_a_name_of_the_agent_is_better_than_none(written: Written) -> None:
    assert written.read(agent("only an answer"), NAME).the_facts.title == "crew"


@pytest.mark.parametrize(
    ("index", "title"),
    [
        ({"version": 1, "entries": [{"sessionId": SESSION, "summary": "From the index"}]}, "From the index"),
        ({"entries": [{"sessionId": "other", "summary": "Of another"}, 7, None]}, "u"),
        ({"entries": [{"sessionId": SESSION, "summary": None}]}, "u"),
        ({"entries": 7}, "u"),
        ([], "u"),
    ],
)
def test_the_programs_own_index_is_a_hint(written: Written, index: Any, title: str) -> None:
    written.folder.mkdir(parents=True)
    (written.folder / "sessions-index.json").write_text(json.dumps(index))
    assert written.read(user("u")).the_facts.title == title
    written.add(AI)
    assert written.read().the_facts.title == "Generated"


def test_an_index_that_changes_is_read_again(written: Written) -> None:
    written.folder.mkdir(parents=True)
    index = written.folder / "sessions-index.json"
    for summary in ("One", "Another"):
        index.write_text(json.dumps({"entries": [{"sessionId": SESSION, "summary": summary}]}))
        assert written.read(user("u")).the_facts.title == summary


def test_a_broken_index_says_nothing(written: Written) -> None:
    written.folder.mkdir(parents=True)
    (written.folder / "sessions-index.json").write_text('{"entries": [{')
    assert written.read(user("u")).the_facts.title == "u"


def test_a_title_that_comes_later_is_the_sessions(written: Written) -> None:
    session = written.read(user("u"))
    written.add(CUSTOM)
    written.read_on(session)
    assert session.the_facts.title == "Mine"
    assert session.texts == [["u"]]


def test_a_fork_has_the_title_that_it_brought_along_until_it_gets_another(written: Written) -> None:
    fork = {"sessionId": "another", "messageUuid": "u0"}
    session = written.read(CUSTOM, user("u", forkedFrom=fork), agent("a", forkedFrom=fork))
    assert session.the_facts.title == "Mine"
    written.add(sidecar("custom-title", customTitle="Branched"), user("v"))
    assert written.read_on(session).the_facts.title == "Branched"
