"""What lines of type `system` and `attachment` say to a reader: mostly nothing."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from indexer.sources.claude_code.blocks import text_of
from indexer.sources.claude_code.heads import DROPPED_ATTACHMENTS
from indexer.sources.claude_code.users import Message, message_of, without_escapes
from indexer.sources.values import text
from schemas.errors import quoted
from schemas.items import Item, Kind

_ERRORS = frozenset({"api_error", "error", "api_refusal", "model_refusal_fallback"})
_STATUS_LINES = frozenset(
    {"informational", "away_summary", "scheduled_task_fire", "bridge_status", "session_start", ""}
)
_IGNORED_SYSTEM = frozenset({"microcompact_boundary", "turn_duration"})


@dataclass(frozen=True, slots=True)
class Said:
    """Items, none where there is nothing to read, and what was not understood."""

    items: tuple[Item, ...] = ()
    is_retry: bool = False
    """Whether it is one of a burst of failed tries, of which the last is shown."""
    unknown: str | None = None


NOTHING = Said()


def system_item(line: dict[str, Any], at_ms: int | None) -> Said:
    """What a `system` line says."""
    subtype = text(line.get("subtype")) or ""
    content = without_escapes(text(line.get("content")) or "")
    match subtype:
        case "compact_boundary":
            return _said(_compaction(line.get("compactMetadata")), at_ms)
        case "local_command":
            return Said(tuple(output_items(message_of({"message": {"content": content}}), at_ms)))
        case "stop_hook_summary":
            errors = line.get("hookErrors")
            if not errors:
                return NOTHING
            said = map(_words, errors) if isinstance(errors, list) else [_words(errors)]
            words = "\n".join(filter(None, said))
            return _said(f"stop hook failed: {words}" if words else "stop hook failed", at_ms)
        case _ if subtype in _ERRORS:
            return replace(_said(_error(line, content), at_ms), is_retry=subtype == "api_error")
        case _ if subtype in _IGNORED_SYSTEM:
            return NOTHING
    unknown = None if subtype in _STATUS_LINES else f"unknown system subtype: {quoted(subtype)}"
    is_loud = line.get("level") in ("warning", "error") and content.strip()
    return replace(_said(content, at_ms) if is_loud else NOTHING, unknown=unknown)


def hook_item(attachment: dict[str, Any], at_ms: int | None) -> Said:
    """What an `attachment` says that is no queued message: only failed hooks say something."""
    type_ = text(attachment.get("type")) or ""
    if type_.encode() in DROPPED_ATTACHMENTS:
        return NOTHING
    if not type_.startswith("hook_"):
        is_known = "_reminder" in type_ or type_.startswith("ultra")
        return NOTHING if is_known else Said(unknown=f"unknown attachment: {quoted(type_)}")
    name = text(attachment.get("hookName")) or type_
    stderr = _words(attachment.get("stderr"))
    if stderr.strip():
        command = text(attachment.get("command")) or name
        return Said((Item(Kind.PROCESS, command=command, output=without_escapes(stderr), at_ms=at_ms),))
    blocking = attachment.get("blockingError")
    words = [
        _words(attachment.get("stdout")),
        _words(blocking.get("blockingError") if isinstance(blocking, dict) else blocking),
        _words(attachment.get("message")),
        text_of(attachment.get("content")),
    ]
    said = next((without_escapes(one) for one in words if one.strip()), "")
    return _said(f"hook {name}: {said}" if said else f"hook {name}", at_ms)


def output_items(message: Message, at_ms: int | None) -> Iterator[Item]:
    """What a local command, or the program about it, says: a notice, and what went to standard error a process."""
    if message.text.strip():
        yield Item(Kind.NOTICE, text=message.text, at_ms=at_ms)
    if message.stderr.strip():
        yield Item(Kind.PROCESS, output=message.stderr, at_ms=at_ms)


def answer_error(line: dict[str, Any], words: str) -> str:
    """What an answer that is none says: an API error, a usage limit; with its details where they say more."""
    details = _words(line.get("errorDetails")).strip()
    if not words.strip():
        words = _words(line.get("error")).strip() or "API error"
    return words if not details or details in words else f"{words}\n{details}"


def _said(words: str, at_ms: int | None) -> Said:
    return Said((Item(Kind.NOTICE, text=words, at_ms=at_ms),))


def _compaction(metadata: Any) -> str:
    trigger = metadata.get("trigger") if isinstance(metadata, dict) else None
    return f"conversation compacted ({trigger})" if trigger in ("auto", "manual") else "conversation compacted"


def _error(line: dict[str, Any], content: str) -> str:
    words = content.strip() or _words(line.get("error")).strip() or "error"
    attempt, most = line.get("retryAttempt"), line.get("maxRetries")
    if isinstance(attempt, int) and isinstance(most, int):
        return f"{words} (try {attempt} of {most})"
    return words


def _words(value: Any) -> str:
    """The words of an error in whatever shape it comes: a text, an object with a message, or one within it."""
    while isinstance(value, dict):
        value = next((value[key] for key in ("message", "error", "cause", "code") if value.get(key)), None)
    return value if isinstance(value, str) else ""
