"""Text in the content of a message: a string, or a list of blocks."""

from collections.abc import Iterator
from typing import Any

from indexer.sources.pictures import DOCUMENT, IMAGE

MAX_DEPTH = 8
"""How deep blocks may lie in blocks."""

_PLACEHOLDERS = {"image": IMAGE, "document": DOCUMENT}


def blocks_of(content: Any) -> list[dict[str, Any]]:
    """The blocks; a string is one block of text, and what is neither is none."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def raw_content(line: dict[str, Any]) -> Any:
    """The content of a line's message, whatever it is."""
    message = line.get("message")
    return message.get("content") if isinstance(message, dict) else None


def content_of(line: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks of a line's message."""
    return blocks_of(raw_content(line))


def text_of(content: Any) -> str:
    """The text blocks, each on lines of its own. Pictures and documents have none."""
    if isinstance(content, str):
        return content
    return "\n".join(_texts(content))


def attached(content: Any) -> str:
    """What stands for pictures and documents, each on a line of its own; empty where there are none."""
    return "\n".join(_PLACEHOLDERS[type_] for block in blocks_of(content) if (type_ := _type(block)) in _PLACEHOLDERS)


def output_of(content: Any) -> str:
    """The text of a tool's result; a reference is its name, a picture is only said to be there."""
    if isinstance(content, str):
        return content
    return "\n".join(_outputs(content, MAX_DEPTH))


def _type(block: dict[str, Any]) -> str:
    type_ = block.get("type")
    return type_ if isinstance(type_, str) else ""


def _texts(content: Any) -> Iterator[str]:
    for block in blocks_of(content):
        if block.get("type") == "text" and isinstance(text := block.get("text"), str):
            yield text


def _outputs(content: Any, depth: int) -> Iterator[str]:
    blocks = [content] if isinstance(content, dict) else blocks_of(content)
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)}:
                yield text
            case {"type": "image" | "document" as type_}:
                yield _PLACEHOLDERS[type_]
            case {"type": "tool_reference", "tool_name": str(name)}:
                yield name
            case {"type": "web_search_result", "url": str(url)}:
                yield f"{title}: {url}" if isinstance(title := block.get("title"), str) and title else url
            case {"error_code": str(code)}:
                yield code
            case {"content": [*_] | str() | dict() as inner} if depth:
                yield from [inner] if isinstance(inner, str) else _outputs(inner, depth - 1)
            case {"stdout": str(stdout)}:
                yield stdout
                if isinstance(stderr := block.get("stderr"), str) and stderr:
                    yield stderr
