"""Who answers: the archive, in a thread, for the caller that the connection is bound to.

What lists the tools also answers the calls of them, so that a client is never told of a tool, or of a form of its
answers, that its calls then do not find.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, ListToolsResult

from schemas.errors import quoted
from schemas.settings import McpSettings
from search_api.archive import Archive
from search_api.binding import Binding
from search_api.mcp_answers import answer
from search_api.mcp_tools import offered, tool_list

InThread: TypeAlias = Callable[[Callable[[], CallToolResult]], Awaitable[CallToolResult]]
"""Runs a call in a thread, or refuses it where there are too many."""


class Tools(Protocol):
    """What an MCP server offers. It is given the HTTP request that a call came with, if any."""

    async def listed(self) -> ListToolsResult:
        """The tools, as the protocol describes them."""

    async def call(self, name: str, arguments: Mapping[str, Any], request: Any) -> CallToolResult:
        """What a tool answers.

        Raises:
            MCPError: there is no such tool.
            TurndexError: the call is refused, or cannot be answered now.
        """


def no_such_tool(name: str, names: Iterable[str]) -> MCPError:
    """What the protocol has for a call of a tool that is not listed."""
    return MCPError(INVALID_PARAMS, f"there is no tool {quoted(name)}; there are: {', '.join(names) or 'none'}")


class ArchiveTools:
    """Tools that ask the archive; `binding_of` says what the connection of a request is bound to."""

    def __init__(
        self, archive: Archive, settings: McpSettings, in_thread: InThread, binding_of: Callable[[Any], Binding]
    ) -> None:
        self._archive = archive
        self._tools = offered(settings)
        self._listed = ListToolsResult(tools=tool_list(settings))
        self._is_structured = settings.structured
        self._in_thread = in_thread
        self._binding_of = binding_of

    async def listed(self) -> ListToolsResult:
        return self._listed

    async def call(self, name: str, arguments: Mapping[str, Any], request: Any) -> CallToolResult:
        tool = self._tools.get(name)
        if tool is None:
            raise no_such_tool(name, self._tools)
        asked = tool.arguments.read(arguments)
        binding = self._binding_of(request)

        def answered() -> CallToolResult:
            return answer(self._archive, asked, binding.caller(self._archive), is_structured=self._is_structured)

        return await self._in_thread(answered)
