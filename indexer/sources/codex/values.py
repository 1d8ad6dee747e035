"""Small shapes that come again and again in rollouts."""

import json
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any


def fields(value: Any) -> dict[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def texts(value: Any) -> Iterator[str]:
    """The texts of a message's content: a text, or a list of texts and of parts that have one."""
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            found = part.get("text")
            if not isinstance(found, str):
                found = part.get("refusal")
            if isinstance(found, str):
                yield found


def joined(value: Any, separator: str = "\n") -> str:
    return separator.join(text for text in texts(value) if text)


def has_image(value: Any) -> bool:
    """Whether a message's content has a picture."""
    return isinstance(value, list) and any("image" in str(fields(part).get("type", "")).lower() for part in value)


def readable(value: Any) -> str:
    """JSON as a person reads it best: an object's members line by line, texts as they are."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(f"{key}: {one if isinstance(one, str) else _compact(one)}" for key, one in value.items())
    return _compact(value)


def digest(words: str) -> str:
    """Stands for a text where only its sameness matters."""
    return blake2b(words.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
