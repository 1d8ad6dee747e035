"""What lines of type `system` and `attachment` say to a reader: mostly nothing."""

from dataclasses import dataclass
from typing import Any

from indexer.sources.claude_code.blocks import text_of
from indexer.sources.claude_code.heads import DROPPED_ATTACHMENTS
from indexer.sources.claude_code.users import Role, local_output, message_of, without_escapes
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
    """An item, None where there is nothing to read, and what was not understood."""

    item: Item | None = None
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
            return Said(Item(Kind.NOTICE, text=_compaction(line.get("compactMetadata")), at_ms=at_ms))
        case "local_command":
            return Said(_local_command(content, at_ms))
        case "stop_hook_summary":
            errors = line.get("hookErrors")
            words = "\n".join(_words(one) for one in errors) if isinstance(errors, list) else ""
            return Said(Item(Kind.NOTICE, text=f"stop hook failed: {words}", at_ms=at_ms)) if words else NOTHING
        case _ if subtype in _ERRORS:
            words = _error(line, content)
            return Said(Item(Kind.NOTICE, text=words, at_ms=at_ms), is_retry=subtype == "api_error")
        case _ if subtype in _IGNORED_SYSTEM:
            return NOTHING
    unknown = None if subtype in _STATUS_LINES else f"unknown system subtype: {quoted(subtype)}"
    is_loud = line.get("level") in ("warning", "error") and content.strip()
    return Said(Item(Kind.NOTICE, text=content, at_ms=at_ms) if is_loud else None, unknown=unknown)


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
        return Said(Item(Kind.PROCESS, command=command, output=without_escapes(stderr), at_ms=at_ms))
    blocking = attachment.get("blockingError")
    words = [
        _words(attachment.get("stdout")),
        _words(blocking.get("blockingError") if isinstance(blocking, dict) else blocking),
        _words(attachment.get("message")),
        text_of(attachment.get("content")),
    ]
    said = next((without_escapes(one) for one in words if one.strip()), "")
    return Said(Item(Kind.NOTICE, text=f"hook {name}: {said}" if said else f"hook {name}", at_ms=at_ms))


def answer_error(line: dict[str, Any], words: str) -> str:
    """What an answer that is none says: an API error, a usage limit; with its details where they say more."""
    details = _words(line.get("errorDetails")).strip()
    if not words.strip():
        words = _words(line.get("error")).strip() or "API error"
    return words if not details or details in words else f"{words}\n{details}"


def _compaction(metadata: Any) -> str:
    trigger = metadata.get("trigger") if isinstance(metadata, dict) else None
    return f"conversation compacted ({trigger})" if trigger in ("auto", "manual") else "conversation compacted"


def _local_command(content: str, at_ms: int | None) -> Item | None:
    message = message_of({"message": {"content": content}})
    if message.role is Role.STDERR:
        return Item(Kind.PROCESS, output=local_output(content.strip()).text, at_ms=at_ms)
    return Item(Kind.NOTICE, text=message.text, at_ms=at_ms) if message.text.strip() else None


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
