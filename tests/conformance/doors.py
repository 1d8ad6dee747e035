"""The ways in: each takes a call and answers what came back, in one shape for all of them."""

import asyncio
import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import httpx
from click.testing import CliRunner
from mcp_types import CallToolResult

from schemas.settings import load_settings
from search_api.archive import Archive
from search_api.binding import Binding
from search_api.cli import main
from search_api.mcp_answers import LAST_NOTE
from search_api.mcp_calls import ArchiveTools
from search_api.mcp_server import mcp_server
from tests.home import home_environment
from tests.mcp_clients import connected, text_of
from tests.served import COMMAND

_ERROR_LINE = re.compile(r"Error \((?P<code>[a-z_]+)\): (?P<detail>.*)", re.DOTALL)
_COMMANDS = {"session_search": ("search", "query"), "session_read": ("read", "session")}
"""The command of a tool, and the argument that stands there without its name."""

_LAST_LINE = f"\n… {LAST_NOTE}"


@dataclass(frozen=True)
class Answered:
    """What came back: a JSON form or a text form, or a refusal."""

    json: Mapping[str, Any] | None = None
    text: str | None = None
    code: str | None = None
    refusal: str = ""
    """Of a refusal, the words and the candidates."""


Door: TypeAlias = Callable[[str, Mapping[str, Any]], Answered]
"""Takes a tool's name and its arguments, `project` among them."""


def http_json(client: httpx.Client) -> Door:
    """`POST` with the arguments as JSON."""
    return lambda tool, arguments: _of_json(client.post(f"/{tool}", json=arguments))


def http_query(client: httpx.Client) -> Door:
    """`GET` with the arguments as words, answered as JSON."""
    return lambda tool, arguments: _of_json(client.get(f"/{tool}", params=_words(arguments)))


def http_text(client: httpx.Client) -> Door:
    """`GET` with the arguments as words, answered as text."""

    def call(tool: str, arguments: Mapping[str, Any]) -> Answered:
        response = client.get(f"/{tool}", params={**_words(arguments), "format": "text"})
        assert response.headers["content-type"] == "text/plain; charset=utf-8"
        return Answered(text=response.text) if response.is_success else _of_error_line(response.text)

    return call


def command_line(config: Path, *, as_json: bool) -> Door:
    """The command line, run in this process."""

    def call(tool: str, arguments: Mapping[str, Any]) -> Answered:
        result = CliRunner().invoke(main, _command_words(tool, arguments, config, as_json=as_json))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return _of_command(result.exit_code, result.stdout, result.stderr, as_json=as_json)

    return call


def command_process(config: Path, home: Path, *, as_json: bool) -> Door:
    """The command line as a shell runs it."""

    def call(tool: str, arguments: Mapping[str, Any]) -> Answered:
        words = [COMMAND, *_command_words(tool, arguments, config, as_json=as_json)]
        done = subprocess.run(
            words, env=home_environment(home), cwd=home, capture_output=True, text=True, timeout=60, check=False
        )
        return _of_command(done.returncode, done.stdout, done.stderr, as_json=as_json)

    return call


@contextmanager
def mcp(server: Any, mode: str) -> Iterator[Door]:
    """The tools, of what `connected` connects to."""
    with connected(server, mode) as call:
        yield lambda tool, arguments: _of_result(call(tool, arguments))


@contextmanager
def mcp_in_memory(config: Path, mode: str) -> Iterator[Door]:
    """The tools on an archive, without a transport."""
    settings = load_settings(config)
    with closing(Archive.open(settings)) as archive:
        tools = ArchiveTools(archive, settings.mcp, asyncio.to_thread, lambda _: Binding())
        with mcp(mcp_server(tools), mode) as door:
            yield door


def _of_result(result: CallToolResult) -> Answered:
    text = text_of(result)
    if result.is_error:
        return _of_error_line(text)
    assert text.endswith(_LAST_LINE)
    return Answered(text=text.removesuffix(_LAST_LINE))


def _words(arguments: Mapping[str, Any]) -> dict[str, str]:
    return {name: _word(value) for name, value in arguments.items()}


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _command_words(tool: str, arguments: Mapping[str, Any], config: Path, *, as_json: bool) -> list[str]:
    command, positional = _COMMANDS[tool]
    words = [command, "--config", str(config)]
    if as_json:
        words.append("--json")
    for name, value in arguments.items():
        if name == positional or value is False:
            continue
        option = f"--{name.replace('_', '-')}"
        words += [option] if value is True else [option, str(value)]
    return [*words, "--", arguments[positional]] if positional in arguments else words


def _of_json(response: httpx.Response) -> Answered:
    body = response.json()
    if response.is_success:
        assert response.headers["content-type"] == "application/json"
        return Answered(json=body)
    assert response.headers["content-type"] == "application/problem+json"
    assert body["status"] == response.status_code
    return Answered(code=body["code"], refusal="\n".join([body["detail"], *body["candidates"]]))


def _of_command(exit_code: int, stdout: str, stderr: str, *, as_json: bool) -> Answered:
    if exit_code == 2:
        assert stdout == ""
        return _of_error_line(stderr)
    answered = Answered(json=json.loads(stdout)) if as_json else Answered(text=stdout)
    found_nothing = answered.json is not None and answered.json.get("hits") == []
    found_nothing = found_nothing or (answered.text or "").startswith("nothing matches ")
    assert exit_code == (1 if found_nothing else 0)
    return answered


def _of_error_line(text: str) -> Answered:
    match = _ERROR_LINE.fullmatch(text.removesuffix("\n"))
    assert match is not None, f"{text!r} is no refusal"
    return Answered(code=match["code"], refusal=match["detail"])
