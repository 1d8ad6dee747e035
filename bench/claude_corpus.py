"""Writes sessions as Claude Code keeps them, for the tools that read nothing else.

    ROOT/projects/<project's path, other characters than letters and digits as ->/<uuid>.jsonl

One line a block: prompts, thinking, texts, tool calls and their results (twice, as `tool_result` and as
`toolUseResult`, as in real files), notices and what hooks printed. The same session gives the same lines.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias
from uuid import NAMESPACE_URL, UUID, uuid5

import orjson

from bench.transcripts import Transcript
from schemas.times import iso_utc

Json: TypeAlias = dict[str, Any]

VERSION = "2.1.250"
_READS = re.compile(r"(Read|Edit) (\S+)")


def write_claude(transcripts: Iterable[Transcript], root: Path) -> int:
    """Write each session below `root`, an agent's folder such as `~/.claude`; answers the bytes written."""
    written = 0
    for transcript in transcripts:
        folder = root / "projects" / re.sub("[^A-Za-z0-9]", "-", transcript.project)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{session_uuid(transcript.key)}.jsonl").open("wb") as file:
            for line in claude_lines(transcript):
                written += file.write(orjson.dumps(line) + b"\n")
    return written


def session_uuid(key: str) -> str:
    """The session id, and the stem of its file, that a session has here."""
    return str(uuid5(NAMESPACE_URL, f"turndex-bench:{key}"))


def claude_lines(transcript: Transcript) -> Iterator[Json]:
    """The lines of a session, in the order of its file."""
    session = session_uuid(transcript.key)
    base = uuid5(NAMESPACE_URL, f"turndex-bench-line:{transcript.key}").int & ~0xFFFFFFFF
    number = 0
    parent: str | None = None
    for turn, at_ms in zip(transcript.turns, transcript.turn_ms, strict=True):
        for index, item in enumerate(turn):
            for content in _contents(item, f"toolu_{number:012d}"):
                own = str(UUID(int=base + number))
                yield {
                    "parentUuid": parent,
                    "isSidechain": False,
                    "userType": "external",
                    "cwd": transcript.project,
                    "sessionId": session,
                    "version": VERSION,
                    "gitBranch": "main",
                    **content,
                    "uuid": own,
                    # A turn has a minute; however many items it has, they keep their order within it.
                    "timestamp": iso_utc(at_ms + min(index * 10, 59_990)),
                }
                parent = own
                number += 1
    yield {"type": "ai-title", "aiTitle": transcript.title, "sessionId": session}


def _contents(item: Json, tool_id: str) -> Iterator[Json]:
    """What differs from line to line; a tool is two of them."""
    match item["type"]:
        case "user":
            yield {"type": "user", "message": {"role": "user", "content": item["text"]}, "permissionMode": "default"}
        case "agent":
            yield _assistant({"type": "text", "text": item["text"]}, tool_id)
        case "thinking":
            yield _assistant({"type": "thinking", "thinking": item["text"], "signature": ""}, tool_id)
        case "tool":
            yield from _tool(item, tool_id)
        case "notice":
            yield {"type": "system", "subtype": "informational", "content": item["text"], "level": "warning"}
        case "process":
            hook = {"type": "hook_non_blocking_error", "hookName": "Stop", "command": item["command"]}
            yield {"type": "attachment", "attachment": {**hook, "stderr": item["output"], "exitCode": 1}}


def _tool(item: Json, tool_id: str) -> Iterator[Json]:
    output = item["output"]
    read = _READS.fullmatch(item["label"])
    if read is None:
        name, arguments = "Bash", {"command": item["label"]}
        result = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
    else:
        name, arguments = read[1], {"file_path": read[2]}
        result = {"type": "text", "file": {"filePath": read[2], "content": output}}
    yield _assistant({"type": "tool_use", "id": tool_id, "name": name, "input": arguments}, tool_id)
    block = {"type": "tool_result", "tool_use_id": tool_id, "content": output, "is_error": item["status"] == "failed"}
    yield {"type": "user", "message": {"role": "user", "content": [block]}, "toolUseResult": result}


def _assistant(block: Json, tool_id: str) -> Json:
    usage = {"input_tokens": 10, "output_tokens": 100}
    message = {
        "id": tool_id.replace("toolu", "msg"),
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [block],
        "stop_reason": None,
        "usage": usage,
    }
    return {"type": "assistant", "message": message}
