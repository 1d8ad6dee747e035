"""The comparison judges every tool by a scan of all texts, and says what it left out."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench import compare
from bench.claude_corpus import claude_lines, session_uuid, write_claude
from bench.corpus import read_manifest
from bench.peers import PEERS
from bench.plots import COLOURS, is_right
from bench.table import share_found, tables
from bench.transcripts import texts_of, transcripts
from tests.bench.conftest import TURNS, Scanned

IN_PROCESS = ["turndex", "turndex, Claude Code", "FTS5 trigram", "FTS5 unicode61", "plain scan"]


@pytest.fixture(scope="module")
def compared(scanned: Scanned, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return compare.measure(scanned.corpus, tmp_path_factory.mktemp("compare"), only=IN_PROCESS, tell=lambda _: None)


def test_sessions_read_back_have_all_the_text_that_was_written(scanned: Scanned) -> None:
    sessions = list(transcripts(scanned.corpus))
    texts = [text for session in sessions for turn in session.turns for item in turn for text in texts_of(item)]
    manifest = read_manifest(scanned.corpus)
    assert sum(len(text.encode()) for text in texts) == manifest.text_bytes
    assert sum(len(session.turns) for session in sessions) == TURNS
    assert [session.started_ms for session in sessions] == sorted(session.started_ms for session in sessions)


def test_the_claude_form_of_a_session_has_all_its_texts_and_is_the_same_again(scanned: Scanned) -> None:
    for session in transcripts(scanned.corpus):
        lines = list(claude_lines(session))
        said = json.dumps(lines, ensure_ascii=False)
        prompts = [line for line in lines if line["type"] == "user" and "toolUseResult" not in line]
        assert len(prompts) == len(session.turns)
        for turn in session.turns:
            for item in turn:
                # A label `Read src/a.py` is a tool and its file there.
                texts = [text.removeprefix("Read ").removeprefix("Edit ") for text in texts_of(item)]
                assert all(json.dumps(text, ensure_ascii=False)[1:-1] in said for text in texts)
        assert list(claude_lines(session)) == lines


def test_claude_files_lie_where_claude_code_keeps_them(scanned: Scanned, tmp_path: Path) -> None:
    sessions = list(transcripts(scanned.corpus))
    written = write_claude(sessions, tmp_path)
    files = list(tmp_path.glob("projects/*/*.jsonl"))
    assert {path.stem for path in files} == {session_uuid(session.key) for session in sessions}
    assert sum(path.stat().st_size for path in files) == written


def test_a_tool_that_finds_everything_is_told_from_one_that_finds_words(compared: dict[str, Any]) -> None:
    fragment = {name: tool["classes"]["fragment"] for name, tool in compared["tools"].items()}
    for exact in ["turndex", "turndex, Claude Code", "FTS5 trigram", "plain scan"]:
        assert all(map(is_right, compared["tools"][exact]["classes"].values()))
        assert fragment[exact]["literals"]["arse"]["turns"]["found"] == compared["turns_with"]["arse"] > 0
    assert not is_right(fragment["FTS5 unicode61"])
    assert fragment["FTS5 unicode61"]["literals"]["arse"]["turns"]["missed"] == compared["turns_with"]["arse"]


def test_ratios_are_those_of_the_times_and_rates_given(compared: dict[str, Any]) -> None:
    own, trigram = (compared["tools"][name]["index"]["text_mb_per_second"] for name in ("turndex", "FTS5 trigram"))
    assert compared["goals"] == {"times_text_rate_of_trigram": round(own / trigram, 2)}


def test_a_tool_that_is_not_installed_is_left_out_with_the_reason(
    scanned: Scanned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = compare.measure(scanned.corpus, tmp_path, only=["rg -F -i"], tell=lambda _: None)
    assert result["tools"] == {}
    assert result["left_out"] == {"rg -F -i": "not installed: there is no rg on PATH"}


def test_the_tables_name_each_tool_and_round_no_miss_away(compared: dict[str, Any]) -> None:
    machine = {"cores": 2, "processor": "a processor", "system": "Linux 6.1 x86_64"}
    printed = tables({"at": "2026-11-30T10:00:00Z", "machine": machine, "result": compared})
    assert all(f"| {name} " in printed for name in IN_PROCESS)
    assert share_found([{"found": 9999, "missed": 1}]) == "99.9 %"
    assert share_found([{"found": 9999, "missed": 0}, {"found": 1, "missed": None}]) == "all"


def test_every_tool_has_a_colour_of_its_own() -> None:
    assert sorted(COLOURS) == sorted(kind.name for kind in PEERS)
    assert len(set(COLOURS.values())) == len(COLOURS)
