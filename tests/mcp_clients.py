"""Clients of the MCP door, of the SDK, for tests that are not asynchronous themselves."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import CallToolResult, TextContent

from tests.home import home_environment
from tests.served import COMMAND

CallTool: TypeAlias = Callable[[str, Mapping[str, Any]], CallToolResult]
"""Calls a tool by its name, with its arguments."""


@contextmanager
def connected(server: Any, mode: str = "auto") -> Iterator[CallTool]:
    """A client of a server in this process, of a URL, or of a program that it starts.

    `mode` says for which protocol era: `legacy` shakes hands, `auto` is the current revision.
    """
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(server, mode=mode, read_timeout_seconds=60)) as client,
    ):
        yield lambda tool, arguments: portal.call(client.call_tool, tool, dict(arguments))


def turndex_mcp(home: Path, *words: str, **environment: str) -> StdioServerParameters:
    """`turndex mcp` as a client in `home` starts it."""
    env = {**home_environment(home), **environment}
    return StdioServerParameters(command=COMMAND, args=["mcp", *words], env=env, cwd=home)


def text_of(result: CallToolResult) -> str:
    """The text of a tool's answer, which is all of it."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text
