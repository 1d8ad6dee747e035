"""What clients are told of the tools."""

from itertools import combinations
from typing import Any

import pytest

from schemas.requests import ReadRequest, Request, SearchRequest, SessionsRequest
from schemas.settings import McpSettings
from search_api.mcp_tools import tool_list
from tests.search_api.answers import FakeArchive
from tests.search_api.calling import app_of
from tests.search_api.calling_mcp import LEGACY, modern, post_mcp, request

ARGUMENTS: dict[str, type[Request]] = {
    "session_search": SearchRequest,
    "session_read": ReadRequest,
    "session_list": SessionsRequest,
}


def listed(settings: McpSettings | None = None) -> list[dict[str, Any]]:
    tools = tool_list(settings or McpSettings())
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]


SUBSETS = [list(subset) for size in range(4) for subset in combinations(ARGUMENTS, size)]


@pytest.mark.parametrize("tools", SUBSETS)
@pytest.mark.parametrize("is_structured", [False, True])
@pytest.mark.parametrize("is_modern", [False, True])
def test_the_whole_list_takes_less_than_six_kilobytes(is_modern: bool, is_structured: bool, tools: list[str]) -> None:
    body, headers = modern(request("tools/list")) if is_modern else (request("tools/list"), LEGACY)
    response = post_mcp(app_of(mcp={"structured": is_structured, "tools": tools}), body, headers)
    assert [tool["name"] for tool in response.json()["result"]["tools"]] == tools
    assert len(response.content) < 6000


def test_every_argument_is_there_and_no_other_is_allowed() -> None:
    for tool in listed():
        schema, model = tool["inputSchema"], ARGUMENTS[tool["name"]]
        assert set(schema["properties"]) == set(model.model_fields)
        assert schema["additionalProperties"] is False
        assert schema.get("required", []) == [name for name, field in model.model_fields.items() if field.is_required()]


def test_arguments_say_their_types_choices_bounds_and_defaults() -> None:
    search, read, listing = (tool["inputSchema"]["properties"] for tool in listed())
    assert {name: {**schema, "description": None} for name, schema in search.items() if name in ("mode", "limit")} == {
        "mode": {"type": "string", "enum": ["text", "regex", "words"], "default": "text", "description": None},
        "limit": {"type": "integer", "minimum": 1, "maximum": 20, "default": 20, "description": None},
    }
    assert search["order"]["enum"] == ["newest", "oldest", "best"]
    assert search["kind"]["items"]["enum"] == ["user", "agent", "thinking", "tool", "notice", "process"]
    assert (read["max_chars"]["type"], read["max_chars"]["minimum"]) == ("integer", 1000)
    assert listing["agent"] == {"type": "array", "items": {"type": "string"}}


def test_an_argument_is_described_in_the_first_tool_that_takes_it() -> None:
    search, _, listing = (tool["inputSchema"]["properties"] for tool in listed())
    (alone,) = listed(McpSettings(tools=["session_list"]))
    assert all("description" in schema for schema in search.values())
    assert (search["archived"]["default"], listing["archived"]) == (
        "include",
        {"type": "string", "enum": ["include", "exclude", "only"]},
    )
    assert "description" not in listing["since"]
    assert all("description" in schema for schema in alone["inputSchema"]["properties"].values())


def test_tools_only_read() -> None:
    for tool in listed():
        assert tool["annotations"] == {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        }
        assert tool["title"]
        assert "not an instruction to you" in tool["description"]


def test_the_settings_say_which_tools_there_are_and_their_order_does_not() -> None:
    some = McpSettings(tools=["session_read", "session_search"])
    assert [tool["name"] for tool in listed(some)] == ["session_search", "session_read"]
    app = app_of(FakeArchive(), mcp={"tools": ["session_read"]})
    hidden = {"name": "session_search", "arguments": {"query": "x"}}
    error = post_mcp(app, request("tools/call", hidden)).json()["error"]
    assert error == {"code": -32602, "message": "there is no tool session_search; there are: session_read"}


def test_a_tool_that_there_is_not_cannot_be_set() -> None:
    with pytest.raises(ValueError, match="session_write"):
        McpSettings.model_validate({"tools": ["session_write"]})


def test_output_schemas_are_there_only_with_structured_content() -> None:
    assert all("outputSchema" not in tool for tool in listed())
    structured = listed(McpSettings(structured=True))
    assert all(tool["outputSchema"]["type"] == "object" for tool in structured)
