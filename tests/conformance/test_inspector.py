"""The reference inspector lists and calls the tools, over HTTP and stdio."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.conformance.inspector import inspected
from tests.indexer.archives import line_of, user
from tests.served import COMMAND, served

HEAD = {"type": "session", "version": 1, "id": "a", "project": "/home/a/kettle", "title": "The lid"}


@pytest.fixture(scope="module")
def inspector_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("inspector")
    turns = home / ".local" / "share" / "turndex" / "turns"
    turns.mkdir(parents=True)
    (turns / "a.turns.jsonl").write_bytes(line_of(HEAD) + line_of(user("the lid is off")))
    return home


@pytest.fixture(scope="module")
def servers(inspector_home: Path) -> Iterator[Mapping[str, Sequence[str]]]:
    with served(inspector_home) as client:
        yield {
            "http": [f"{client.base_url}/mcp", "--transport", "http"],
            "stdio": [COMMAND, "mcp", "--project", "kettle"],
        }


@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_the_inspector_lists_and_calls_the_tools(
    inspector_home: Path, servers: Mapping[str, Sequence[str]], transport: str
) -> None:
    server = servers[transport]
    tools = inspected(inspector_home, server, "--method", "tools/list")["tools"]
    assert [tool["name"] for tool in tools] == ["session_search", "session_read", "session_list"]

    call = ("--method", "tools/call", "--tool-name", "session_search", "--tool-arg")
    found = inspected(inspector_home, server, *call, "query=lid is off", "limit=3", "project=kettle")
    assert found["isError"] is False
    assert found["content"][0]["text"].startswith("#1:1 The lid — the lid is off\n")

    refused = inspected(inspector_home, server, *call, "query=lid", "limit=0")
    assert refused["isError"] is True
    assert refused["content"][0]["text"].startswith("Error (invalid_argument): limit: ")
