"""Tool calls as a person would write them, and what their outputs say about how they went."""

import re
import shlex
from dataclasses import dataclass
from typing import Any

from indexer.decode import BadJson, decode
from indexer.sources.codex.values import fields, has_image, joined, readable
from indexer.sources.pictures import IMAGE
from schemas.items import Status

PROGRAM = "exec"
"""The tool whose input is a program that calls other tools."""

MCP = "mcp "
"""How labels of tools of MCP servers begin."""

MAX_LABEL_CHARS = 2000
"""A longer command is told by its beginning; the input has all of it."""

_SHELLS = frozenset({"shell", "shell_command", "exec_command", "container.exec", "local_shell", "unified_exec"})
_SHELL_NOISE = frozenset(
    {
        *("cmd", "command", "workdir", "timeout", "timeout_ms", "yield_time_ms", "max_output_tokens", "login", "tty"),
        *("shell", "sandbox_permissions", "with_escalated_permissions", "prefix_rule"),
    }
)
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+?)\s*$", re.MULTILINE)
_HEADER = re.compile(
    r"(?:(?:Chunk ID|Wall time|Process exited with code|Process running with session ID|Exit code|Duration"
    r"|Original token count|Total output lines|Script completed|Script failed|Script terminated"
    r"|Script running with cell ID)[^\n]*\n)+\s*?^Output:[ \t]*(?:\r?\n|\Z)",
    re.MULTILINE,
)
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?[0-9]+)", re.MULTILINE)
_RUNS_ON = re.compile(r"^Process running with session ID (\S+)", re.MULTILINE)
_FAILURES = (
    "execution error",
    "apply_patch verification failed",
    "exec_command failed",
    "write_stdin failed",
    "failed to parse function arguments",
    "unsupported call",
    "aborted by user",
)
"""How the program itself says that a call failed."""

_BASH = re.compile(r"(?:.*/)?(?:ba|z|da)?sh")


@dataclass(frozen=True, slots=True)
class Call:
    """What was asked of a tool."""

    label: str
    input: str | None = None
    process: str | None = None
    """The running process that the call talks to."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answered; `status` is None where the answer has no sign of it."""

    output: str | None
    status: Status | None
    process: str | None = None
    """The process that the call left running."""
    error: str | None = None
    """What went wrong, where that is told apart from the output."""


def call(name: str, namespace: str | None, arguments: Any) -> Call:
    """A call by the tool's name; `arguments` is mostly JSON in a text, or the plain text of a custom tool."""
    given = _given(arguments)
    raw = arguments if isinstance(arguments, str) else readable(arguments) if arguments else ""
    shown = readable(given) if given else "" if raw.strip() == "{}" else raw
    server, tool = _of_server(name, namespace)
    if server is not None:
        return Call(f"{MCP}{server} {tool}", shown or None)
    if tool in _SHELLS:
        command = given.get("cmd", given.get("command"))
        return shell_call(command, given) if command else Call(f"shell: {first_line(raw)}", shown or None)
    match tool:
        case "apply_patch":
            patch = given.get("input")
            return patch_call(patch if isinstance(patch, str) else raw)
        case "exec":
            return Call(_labelled(PROGRAM, first_line(raw)), raw or None)
        case "write_stdin":
            process, chars = _word(given.get("session_id")), given.get("chars")
            typed = chars.strip() if isinstance(chars, str) else ""
            label = _labelled(f"input to {process}", first_line(typed)) if chars else f"poll {process}"
            return Call(label, chars if isinstance(chars, str) and chars else None, process or None)
        case "update_plan":
            return Call("plan", shown or None)
        case "view_image":
            return Call(_labelled(tool, _word(given.get("path"))))
        case "web_search" | "web_search_request":
            return Call(_labelled("web search", _word(given.get("query") or given.get("q"))), shown or None)
    return Call(_labelled(tool, _gist(given) if given else first_line(shown)), shown or None)


def shell_call(command: Any, arguments: dict[str, Any] | None = None) -> Call:
    """A command of a shell; the input says what the label does not: all of a long one, why it is run."""
    words = command_line(command)
    if isinstance(command, list) and command[:1] == ["apply_patch"] and len(command) > 1:
        return patch_call(str(command[1]))
    more = {key: value for key, value in (arguments or {}).items() if key not in _SHELL_NOISE and value}
    label = f"shell: {words}"
    if len(label) > MAX_LABEL_CHARS:
        label = label[:MAX_LABEL_CHARS] + "…"
        return Call(label, "\n".join([words, *([readable(more)] if more else [])]))
    return Call(label, readable(more) if more else None)


def command_line(command: Any) -> str:
    """A command as it would be typed; of `["bash", "-lc", X]` that is X."""
    if not isinstance(command, list):
        return command if isinstance(command, str) else ""
    words = [word if isinstance(word, str) else str(word) for word in command]
    if len(words) == 3 and _BASH.fullmatch(words[0]) and words[1] in ("-lc", "-c", "-ic", "-l -c"):
        return words[2]
    return shlex.join(words)


def patch_call(patch: str) -> Call:
    files = list(dict.fromkeys(_PATCHED.findall(patch)))
    return Call(_labelled("apply_patch", ", ".join(files)), patch or None)


def changes_call(changes: Any) -> Call:
    """A patch as events tell of it: an object by file, or a list of changes with their paths."""
    if isinstance(changes, dict):
        by_file = {str(path): change for path, change in changes.items()}
    else:
        listed = changes if isinstance(changes, list) else []
        by_file = {str(change["path"]): change for change in listed if isinstance(change, dict) and "path" in change}
    texts = [_change_text(change) for change in by_file.values()]
    return Call(_labelled("apply_patch", ", ".join(by_file)), "\n".join(text for text in texts if text) or None)


def web_search_call(action: Any, query: Any) -> Call:
    does = fields(action)
    match does.get("type"):
        case "open_page":
            return Call(_labelled("open page", _word(does.get("url"))))
        case "find_in_page":
            return Call(_labelled("find in page", f"{_word(does.get('pattern') or query)} in {_word(does.get('url'))}"))
    asked = does.get("query") or query
    queries = [one for one in does.get("queries") or [] if isinstance(one, str)]
    return Call(_labelled("web search", _word(asked) or "; ".join(queries)), "\n".join(queries[1:]) or None)


def mcp_call(server: Any, tool: Any, arguments: Any) -> Call:
    return Call(f"{MCP}{_word(server)} {_word(tool)}", readable(arguments) if arguments else None)


def result(output: Any) -> Result:
    """What an output says: a text, a list of parts, an object, or a text that is JSON of an object."""
    success, code, text = None, None, ""
    if isinstance(output, str):
        text, code = _from_json(output)
    elif isinstance(output, list):
        text = joined(output) or (IMAGE if has_image(output) else "")
    elif isinstance(output, dict):
        content = output.get("content", output.get("output"))
        text, code = _from_json(content) if isinstance(content, str) else (joined(content), None)
        success = output.get("success")
        code = _code(fields(output.get("metadata"))) if code is None else code
    header = _HEADER.match(text)
    process = None
    status = None
    if header is not None:
        told, text = header[0], text[header.end() :]
        exit_code, runs_on = _EXIT_CODE.search(told), _RUNS_ON.search(told)
        code = int(exit_code[1]) if exit_code else code
        if runs_on is not None:
            process, status = runs_on[1], Status.RUNNING
        elif "Script failed" in told:
            status = Status.FAILED
        elif "Script running" in told:
            status = Status.RUNNING
    if code is not None:
        status = Status.OK if code == 0 else Status.FAILED
    elif isinstance(success, bool):
        status = Status.OK if success else Status.FAILED
    elif header is None and text.lstrip().lower().startswith(_FAILURES):
        status = Status.FAILED
    return Result(text or None, status, process)


def event_status(event: dict[str, Any]) -> Status | None:
    """How a tool went, as an event about its end says."""
    code, success = event.get("exit_code"), event.get("success")
    if isinstance(code, int) and not isinstance(code, bool):
        return Status.OK if code == 0 else Status.FAILED
    if isinstance(success, bool):
        return Status.OK if success else Status.FAILED
    match str(event.get("status", "")).lower().replace("_", ""):
        case "completed" | "success" | "succeeded":
            return Status.OK
        case "failed" | "declined" | "error" | "errored" | "cancelled" | "interrupted":
            return Status.FAILED
        case "inprogress" | "running":
            return Status.RUNNING
    return None


def mcp_result(event: dict[str, Any]) -> Result:
    """The end of an MCP call: `result` is `{Ok: {content, isError}}`, `{Err: text}`, or the content itself."""
    told = event.get("result")
    if isinstance(told, dict) and "Err" in told:
        return Result(None, Status.FAILED, error=readable(told["Err"]))
    if event.get("error"):
        error = event["error"]
        return Result(None, Status.FAILED, error=_word(fields(error).get("message")) or readable(error))
    answer = fields(fields(told).get("Ok", told))
    is_error = answer.get("isError", answer.get("is_error"))
    status = Status.FAILED if is_error is True else event_status(event) or (Status.OK if told else None)
    return Result(joined(answer.get("content")) or None, status)


def first_line(text: str) -> str:
    """The first line that is not empty, cut where it is endless."""
    line = next((line.strip() for line in text.split("\n") if line.strip()), "")
    return line if len(line) <= MAX_LABEL_CHARS else line[:MAX_LABEL_CHARS] + "…"


def _of_server(name: str, namespace: str | None) -> tuple[str | None, str]:
    """The MCP server that a tool belongs to, if any, and its name there."""
    if namespace:
        server = namespace.removeprefix("mcp__").strip("_")
        if namespace.startswith("mcp__"):
            return server, name.removeprefix(f"mcp__{server}__").removeprefix(f"{server}__")
    server, separator, tool = name.removeprefix("mcp__").partition("__")
    return (server, tool) if separator and server and tool else (None, name)


def _given(arguments: Any) -> dict[str, Any]:
    if isinstance(arguments, str) and arguments.lstrip().startswith("{"):
        try:
            return fields(decode(arguments.encode("utf-8", "replace")))
        except BadJson:
            return {}  # shown raw
    return fields(arguments)


def _labelled(name: str, gist: str) -> str:
    return f"{name}: {gist}" if gist else name


_GIST_KEYS = (
    *("agent_nickname", "nickname", "agent_name", "name", "agent_type", "agent_role", "target", "id", "agent_id"),
    *("task_name", "task", "message", "prompt", "query", "path", "url"),
)


def _gist(arguments: dict[str, Any]) -> str:
    """The arguments that tell most: who, and what; at most two of them."""
    told = [first_line(_word(arguments[key])) for key in _GIST_KEYS if arguments.get(key)]
    if not told:
        told = [first_line(_word(value)) for value in arguments.values() if isinstance(value, str | list) and value]
    return ": ".join([one for one in told if one][:2])


def _word(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_word(one) for one in value)
    if isinstance(value, dict):
        return joined(value)
    return "" if value is None else str(value)


def _change_text(change: Any) -> str:
    told = fields(change)
    inner = [told, *(one for one in told.values() if isinstance(one, dict))]
    found = (one.get(key) for one in inner for key in ("unified_diff", "diff", "content"))
    return next((text for text in found if isinstance(text, str)), "")


def _from_json(text: str) -> tuple[str, int | None]:
    """The output and exit code that a text writes as JSON; the text itself where it is something else."""
    if text.startswith("{") and '"output"' in text:
        try:
            told = fields(decode(text.encode("utf-8", "replace")))
        except BadJson:
            told = {}
        if isinstance(told.get("output"), str) and told.keys() <= {"output", "metadata"}:
            return told["output"], _code(fields(told.get("metadata")))
    return text, None


def _code(metadata: dict[str, Any]) -> int | None:
    code = metadata.get("exit_code")
    return code if isinstance(code, int) and not isinstance(code, bool) else None
