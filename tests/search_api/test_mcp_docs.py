"""What docs/mcp.md, the README and server.json say of MCP is so."""

import json
import re
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from indexer.service import index_once
from schemas.settings import McpSettings, Settings
from search_api.archive import Archive
from search_api.binding import Binding
from search_api.demo import demo_archive
from search_api.mcp_answers import DEFAULT_MAX_CHARS, LAST_NOTE
from search_api.mcp_tools import TOOLS
from tests.mcp_clients import text_of
from tests.search_api.calling_mcp import call_tool

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_tool_setting_and_header_is_documented() -> None:
    headers = Binding(project="/p", session="s").headers()
    for word in (*(tool.name for tool in TOOLS), *headers, *(name.replace("turndex", "cydonia") for name in headers)):
        assert word in DOCS
    assert {name for name in McpSettings.model_fields if name not in DOCS} == set()
    assert f"cut at {DEFAULT_MAX_CHARS:,} characters" in DOCS


def test_the_example_is_what_the_demo_archive_answers() -> None:
    with demo_archive(Settings()) as settings:
        index_once(settings, lambda _: None)
        with closing(Archive.open(settings)) as archive:
            (project,) = [one.path for one in archive.projects().projects if one.name == "lighthouse"]
            calls = re.findall(r"^(session_[a-z]+) (\{.*\})\n\n((?:.+\n|\n(?!session_))*)", DOCS, re.MULTILINE)
            assert [tool for tool, *_ in calls] == ["session_search", "session_read"]
            for tool, arguments, shown in calls:
                answer = text_of(call_tool(archive, tool, json.loads(arguments), Binding(project=project)))
                begun = shown.partition("```")[0].strip().removesuffix("\n…")
                assert answer.startswith(begun)
            assert LAST_NOTE in DOCS


def test_the_readme_has_the_line_for_clients() -> None:
    for line in (
        "claude mcp add --transport http turndex http://127.0.0.1:7480/mcp",
        "claude mcp add turndex -- turndex mcp",
    ):
        assert line in README
        assert line in DOCS


@pytest.fixture
def manifest() -> dict[str, Any]:
    value: dict[str, Any] = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    return value


def test_the_manifest_is_of_this_version_and_short_enough_for_a_registry(manifest: dict[str, Any]) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    (package,) = manifest["packages"]
    assert manifest["version"] == package["version"] == version
    assert len(manifest["description"]) <= 100
    # A registry takes a package as its server's only if the package's own description says so.
    assert f"mcp-name: {manifest['name']}" in README
