"""Every case of `cases.json` through every door."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from schemas.texts import printable
from tests.conformance.archive import build
from tests.conformance.doors import (
    Answered,
    Door,
    command_line,
    command_process,
    http_json,
    http_query,
    http_text,
    mcp,
    mcp_in_memory,
)
from tests.mcp_clients import turndex_mcp
from tests.served import served

Case: TypeAlias = dict[str, Any]

CASES: list[Case] = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))

AS_PROCESSES = {
    "inside a word, any case",
    "spaces inside the query count",
    "an arrow",
    "missing query",
    "a run of turns",
    "past the end",
    "pages: every match once",
}
"""Cases that are run as a shell would, too; the others only in this process, which is a second less each."""

_CURSOR_NOTE = re.compile(r"^… .*cursor=(\S+)$", re.MULTILINE)
_DOORS = [
    "http_json",
    "http_query",
    "http_text",
    "command_line_json",
    "command_line_text",
    "mcp_in_memory",
    "mcp_in_memory_legacy",
    "mcp_http",
    "mcp_http_legacy",
    "mcp_stdio",
    "mcp_stdio_legacy",
]


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Door]]:
    """The conformance archive behind a running server; the command line reads beside it."""
    home = tmp_path_factory.mktemp("conformance")
    state_file = build(home)
    config = home / "config.toml"
    config.write_text(
        f"data_dir = {json.dumps(str(home / 'data'))}\n[sources.cydonia]\nstate_file = {json.dumps(str(state_file))}\n",
        encoding="utf-8",
    )
    with ExitStack() as stack:
        client = stack.enter_context(served(home, ["--config", str(config)]))
        url, program = f"{client.base_url}/mcp", turndex_mcp(home, "--config", str(config))
        opened = {
            "http_json": http_json(client),
            "http_query": http_query(client),
            "http_text": http_text(client),
            "command_line_json": command_line(config, as_json=True),
            "command_line_text": command_line(config, as_json=False),
            "command_process_json": command_process(config, home, as_json=True),
            "command_process_text": command_process(config, home, as_json=False),
        }
        for suffix, mode in (("", "auto"), ("_legacy", "legacy")):
            opened[f"mcp_in_memory{suffix}"] = stack.enter_context(mcp_in_memory(config, mode))
            opened[f"mcp_http{suffix}"] = stack.enter_context(mcp(url, mode))
            opened[f"mcp_stdio{suffix}"] = stack.enter_context(mcp(program, mode))
        work = home / "work"
        yield {name: _about_projects_in(work, door) for name, door in opened.items()}


def _about_projects_in(work: Path, door: Door) -> Door:
    def call(tool: str, arguments: Mapping[str, Any]) -> Answered:
        project = arguments["project"]
        return door(tool, {**arguments, "project": project if project == "*" else str(work / project)})

    return call


@pytest.mark.parametrize("door", _DOORS)
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_case_is_answered_as_written(doors: dict[str, Door], door: str, case: Case) -> None:
    check(case, doors[door])


@pytest.mark.parametrize("door", ["command_process_json", "command_process_text"])
@pytest.mark.parametrize("case", [case for case in CASES if case["name"] in AS_PROCESSES], ids=lambda c: c["name"])
def test_a_case_is_answered_as_written_to_a_shell(doors: dict[str, Door], door: str, case: Case) -> None:
    check(case, doors[door])


def test_the_cases_are_all_there() -> None:
    assert len(CASES) == 129
    assert {case["name"] for case in CASES} >= AS_PROCESSES


def check(case: Case, door: Door) -> None:
    """Call, and compare with everything that the case says about this form of the answer."""
    expected = case["expect"]
    arguments = {"project": case["project"], **case["args"]}
    answered = door(case["tool"], arguments)
    assert answered.code == expected.get("error"), answered.refusal
    if answered.code is not None:
        for piece in expected.get("contains", []):
            assert piece in answered.refusal
    elif answered.json is not None:
        _check_json(expected, answered.json)
    else:
        _check_text(expected, answered.text or "", is_search=case["tool"] == "session_search")
    if "pages" in expected:
        assert _walk(case["tool"], arguments, door) == expected["pages"]


def _check_json(expected: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    if "references" in expected:
        references = [hit["reference"] for hit in answer["hits"]]
        if expected.get("any_order"):
            references, wanted = sorted(references), sorted(expected["references"])
        else:
            wanted = expected["references"]
        assert references == wanted
    if "lines" in expected:
        assert [hit["line"] for hit in answer["hits"]] == expected["lines"]
    if "spans" in expected:
        assert [hit["spans"] for hit in answer["hits"]] == expected["spans"]
    for field in ("more", "turns", "count"):
        if field in expected:
            assert answer[field] == expected[field]
    assert (answer["cursor"] is not None) == answer["more"]


def _check_text(expected: Mapping[str, Any], text: str, *, is_search: bool) -> None:
    whole = text.removesuffix("\n")
    if "text" in expected:
        assert (whole.split("\n")[0] if is_search else whole) == expected["text"]
    for piece in expected.get("contains", []):
        assert piece in whole
    for piece in expected.get("lacks", []):
        assert piece not in whole
    if "references" in expected:
        references = _references(whole)
        if expected.get("any_order"):
            assert sorted(references) == sorted(expected["references"])
        else:
            assert references == expected["references"]
    if "lines" in expected:
        hits = _hit_lines(whole)
        assert [hit[-len(line) :] for hit, line in zip(hits, expected["lines"], strict=True)] == [
            printable(line) for line in expected["lines"]
        ]
    if "more" in expected:
        assert (_cursor(whole) is not None) == expected["more"]


def _walk(tool: str, arguments: Mapping[str, Any], door: Door) -> list[list[str]]:
    """The references of each page, following cursors until there is none."""
    pages = []
    cursor: str | None = None
    while True:
        answered = door(tool, arguments if cursor is None else {**arguments, "cursor": cursor})
        if answered.json is not None:
            pages.append([hit["reference"] for hit in answered.json["hits"]])
            cursor = answered.json["cursor"]
        else:
            assert answered.text is not None, answered.refusal
            pages.append(_references(answered.text))
            cursor = _cursor(answered.text)
        if cursor is None:
            return pages


def _hit_lines(text: str) -> list[str]:
    """The lines that are hits; none where nothing matches, as all that follows then says why."""
    if text.startswith("nothing matches "):
        return []
    return [line for line in text.split("\n") if line and not line.startswith("… ")]


def _references(text: str) -> list[str]:
    return [line.split(" ", 1)[0] for line in _hit_lines(text)]


def _cursor(text: str) -> str | None:
    match = _CURSOR_NOTE.search(text)
    return None if match is None else match[1]
