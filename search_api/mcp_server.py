"""The MCP server that both transports run: lists the tools, and passes calls on to whoever answers them.

It is the SDK's low-level server: the high-level one drops arguments that it does not know, and answers those of a
wrong type with an error that no model can act upon. What we refuse is an answer of the tool, marked as an error; an
error of the protocol is only what the protocol says, such as a tool that there is not.
"""

import logging
import secrets
from collections.abc import Mapping
from typing import Any

from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams

from schemas.errors import Internal, TurndexError, quoted
from schemas.texts import without_surrogates
from search_api.mcp_answers import refused
from search_api.mcp_calls import Tools
from search_api.mcp_tools import INSTRUCTIONS
from search_api.version import VERSION

_log = logging.getLogger(__name__)


def mcp_server(tools: Tools) -> Server[Any]:
    """A server of these tools."""

    async def list_tools(_: Any, __: PaginatedRequestParams | None) -> ListToolsResult:
        return await tools.listed()

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        try:
            return await tools.call(params.name, _cleaned(params.arguments or {}), context.request)
        except TurndexError as error:
            return refused(error)
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001  the last resort, as at every door: the caller and the log are told
            incident = secrets.token_hex(6)
            _log.exception("internal error %s in %s", incident, quoted(params.name))
            return refused(
                Internal(f"a fault of ours ({type(error).__name__}); the log has it under the id {incident}")
            )

    return Server(
        "turndex",
        version=VERSION,
        title="turndex",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        # Without it every call of the stateless protocol lists the tools first, to look for arguments sent as headers.
        get_tool_input_schema=lambda _: None,
    )


def _cleaned(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments without halves of surrogate pairs, which callers cut out of texts now and then."""
    return {name: _without_halves(value) for name, value in arguments.items()}


def _without_halves(value: Any) -> Any:
    if isinstance(value, list):
        return [without_surrogates(one) if isinstance(one, str) else one for one in value]
    return without_surrogates(value) if isinstance(value, str) else value
