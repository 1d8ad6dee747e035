"""Tool calls as a person would write them down, and what came of them."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from indexer.sources.claude_code.blocks import output_of
from indexer.sources.values import text
from schemas.items import Item, Kind, Status

MAX_LABEL_CHARS = 1000
"""A longer label is cut, and what it was made of stands in the call's input as well."""

TASK_TOOLS = frozenset({"Task", "Agent"})

_Label = tuple[str, frozenset[str]]
"""A label, and the keys of the input of which it tells all."""


def call_item(name: str, given: Any, cwd: str | None, at_ms: int | None) -> Item:
    """The item of a call: its label, and as input what the label leaves out. `cwd` is the session's directory."""
    fields = given if isinstance(given, dict) else {}
    label, told = _label(name, fields, cwd)
    if len(label) > MAX_LABEL_CHARS:
        label, told = label[:MAX_LABEL_CHARS].rstrip() + "…", frozenset()
    rest = {key: value for key, value in fields.items() if key not in told}
    written = "\n".join(_written(rest))
    if not isinstance(given, dict) and given is not None:
        written = _as_text(given)
    return Item(Kind.TOOL, label=label, status=Status.RUNNING, input=written or None, at_ms=at_ms)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a call."""

    status: Status
    output: str
    stderr: str = ""
    agent_id: str | None = None
    """The subagent that did the work."""


def result_of(block: dict[str, Any], more: Any) -> Result:
    """The result in a block; `more` is what the line tells of it beside the block, where it has but one."""
    output = output_of(block.get("content"))
    fields = more if isinstance(more, dict) else {}
    if not output and isinstance(more, str):
        output = more
    if not output:
        output = "\n".join(part for key in ("stdout", "stderr") if (part := text(fields.get(key))))
    is_failed = block.get("is_error") is True or fields.get("interrupted") is True
    stripped = output.strip()
    if stripped.startswith("<tool_use_error>"):
        output = stripped.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
    return Result(
        Status.FAILED if is_failed else Status.OK,
        output,
        text(fields.get("stderr")) or "",
        text(fields.get("agentId")),
    )


def _label(name: str, given: dict[str, Any], cwd: str | None) -> _Label:
    if name.startswith("mcp__"):
        return _mcp(name, given)
    make = _LABELS.get(name)
    label = make(name, given, cwd) if make is not None else None
    return (name, frozenset()) if label is None else label


def _command(name: str, given: dict[str, Any], cwd: str | None) -> _Label | None:
    command = text(given.get("command"))
    if command is None or not command.strip():
        return None
    # A label is one line: of a longer command it has the beginning, and the input all of it.
    first, _, more = command.strip().partition("\n")
    return f"{name}: {first.rstrip()}", frozenset({"timeout"} if more else {"command", "timeout"})


def _read(name: str, given: dict[str, Any], cwd: str | None) -> _Label | None:
    path = _path(given, cwd)
    if path is None:
        return None
    offset, limit, pages = given.get("offset"), given.get("limit"), text(given.get("pages"))
    if isinstance(offset, int) or isinstance(limit, int):
        start = offset if isinstance(offset, int) and offset > 0 else 1
        path += f":{start}-{start + limit - 1}" if isinstance(limit, int) and limit > 0 else f":{start}-"
    elif pages:
        path += f":{pages}"
    return f"{name} {path}", frozenset({"file_path", "offset", "limit", "pages"})


def _file(name: str, given: dict[str, Any], cwd: str | None) -> _Label | None:
    path = _path(given, cwd)
    return None if path is None else (f"{name} {path}", frozenset({"file_path", "notebook_path"}))


def _pattern(name: str, given: dict[str, Any], cwd: str | None) -> _Label | None:
    pattern, path = text(given.get("pattern")), text(given.get("path"))
    if pattern is None:
        return None
    where = f" in {relative(path, cwd)}" if path else ""
    return f"{name} {pattern}{where}", frozenset({"pattern", "path"})


def _task(name: str, given: dict[str, Any], cwd: str | None) -> _Label | None:
    description, kind = text(given.get("description")), text(given.get("subagent_type"))
    if description is None:
        return None
    return f"Task: {description}" + (f" ({kind})" if kind else ""), frozenset({"description", "subagent_type"})


def _todos(name: str, given: dict[str, Any], cwd: str | None) -> _Label | None:
    todos = given.get("todos")
    entries = [entry for entry in todos if isinstance(entry, dict)] if isinstance(todos, list) else []
    said = [content for entry in entries if (content := text(entry.get("content")))]
    return (f"{name}: {'; '.join(said)}", frozenset()) if said else None


def _question(name: str, given: dict[str, Any], cwd: str | None) -> _Label | None:
    questions = given.get("questions")
    first = questions[0] if isinstance(questions, list) and questions else given
    question = text(first.get("question")) if isinstance(first, dict) else None
    return None if question is None else (f"{name}: {question}", frozenset())


def _plan(name: str, given: dict[str, Any], cwd: str | None) -> _Label | None:
    return "plan", frozenset()


def _after_colon(*keys: str) -> Callable[[str, dict[str, Any], str | None], _Label | None]:
    """Labels such as `WebFetch: https://…`, of the first of the keys that is given."""

    def make(name: str, given: dict[str, Any], cwd: str | None) -> _Label | None:
        found = _first_scalar({key: given.get(key) for key in keys})
        return None if found is None else (f"{name}: {found[1]}", frozenset({found[0]}))

    return make


def _mcp(name: str, given: dict[str, Any]) -> _Label:
    """`mcp github create_issue`, and the first argument that fits behind it."""
    server, _, tool = name.removeprefix("mcp__").partition("__")
    label = f"mcp {server} {tool}".rstrip()
    found = _first_scalar(given)
    return (label, frozenset()) if found is None else (f"{label}: {found[1]}", frozenset({found[0]}))


def _first_scalar(given: dict[str, Any]) -> tuple[str, str] | None:
    """Key and value of the first text of one line, or number."""
    for key, value in given.items():
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            written = str(value).strip()
            if written and "\n" not in written:
                return key, written
    return None


_LABELS: dict[str, Callable[[str, dict[str, Any], str | None], _Label | None]] = {
    "Bash": _command,
    "PowerShell": _command,
    "Read": _read,
    "Edit": _file,
    "MultiEdit": _file,
    "Write": _file,
    "NotebookEdit": _file,
    "NotebookRead": _file,
    "Grep": _pattern,
    "Glob": _pattern,
    "LS": lambda name, given, cwd: (
        (f"{name} {relative(path, cwd)}", frozenset({"path"})) if (path := text(given.get("path"))) else None
    ),
    "WebFetch": _after_colon("url"),
    "WebSearch": _after_colon("query"),
    "web_search": _after_colon("query"),
    "web_fetch": _after_colon("url"),
    "Task": _task,
    "Agent": _task,
    "TodoWrite": _todos,
    "TaskCreate": _after_colon("subject", "description"),
    "TaskUpdate": _after_colon("taskId"),
    "TaskGet": _after_colon("taskId"),
    "TaskOutput": _after_colon("task_id"),
    "TaskStop": _after_colon("task_id"),
    "BashOutput": _after_colon("bash_id"),
    "KillShell": _after_colon("shell_id"),
    "AskUserQuestion": _question,
    "ExitPlanMode": _plan,
    "Skill": _after_colon("skill", "command"),
    "SlashCommand": _after_colon("command"),
    "ToolSearch": _after_colon("query"),
}


def relative(path: str, cwd: str | None) -> str:
    """A path as it is called in the session's directory."""
    if cwd is None or cwd == "/":
        return path
    if path.rstrip("/") == cwd.rstrip("/"):
        return "."
    return path.removeprefix(cwd.rstrip("/\\") + ("\\" if "\\" in cwd and "/" not in cwd else "/"))


def _path(given: dict[str, Any], cwd: str | None) -> str | None:
    path = text(given.get("file_path")) or text(given.get("notebook_path"))
    return None if path is None else relative(os.path.normpath(path) if "//" in path else path, cwd)


def _written(given: dict[str, Any]) -> Iterator[str]:
    """`key: value` for each key; the only one of a call, where it is a text, stands by itself."""
    if len(given) == 1 and isinstance(only := next(iter(given.values())), str):
        yield only
        return
    for key, value in given.items():
        yield f"{key}: {_as_text(value)}"


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return "(nested too deep)"
