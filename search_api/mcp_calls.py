"""Who answers a tool's call: the archive, in a thread, for the caller that the connection is bound to."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from mcp_types import CallToolResult

from schemas.settings import McpSettings
from search_api.archive import Archive
from search_api.binding import Binding
from search_api.mcp_answers import answer
from search_api.mcp_tools import ToolDescription

Call: TypeAlias = Callable[[ToolDescription, dict[str, Any], Any], Awaitable[CallToolResult]]
"""Answers a tool's call: its description, its arguments, and the HTTP request that it came with, if any.

It may raise a `TurndexError` where the call is refused.
"""

InThread: TypeAlias = Callable[[Callable[[], CallToolResult]], Awaitable[CallToolResult]]
"""Runs a call in a thread, or refuses it where there are too many."""


def asking(archive: Archive, settings: McpSettings, in_thread: InThread, binding_of: Callable[[Any], Binding]) -> Call:
    """Calls that ask the archive; `binding_of` says what the connection of a request is bound to."""

    async def call(tool: ToolDescription, arguments: dict[str, Any], request: Any) -> CallToolResult:
        asked = tool.arguments.read(arguments)
        binding = binding_of(request)

        def answered() -> CallToolResult:
            return answer(archive, asked, binding.caller(archive), is_structured=settings.structured)

        return await in_thread(answered)

    return call
