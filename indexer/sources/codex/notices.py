"""What is told of a thread besides what was said in it, in words."""

import re
from typing import Any

from indexer.decode import BadJson, decode
from indexer.sources.codex.values import fields, joined
from indexer.sources.values import text
from schemas.texts import counted

_ENCRYPTED = re.compile(r"[A-Za-z0-9+/_-]{40,}={0,2}")


def notice(event: dict[str, Any]) -> str | None:
    """The words for an event that is but told; None for one that is not worth it."""
    match str(event.get("type")):
        case "error":
            return f"error: {text(event.get('message')) or 'unknown'}"
        case "guardian_assessment":
            return _assessment(event)
        case "entered_review_mode" | "EnteredReviewMode":
            subject = text(event.get("user_facing_hint")) or text(event.get("review")) or text(event.get("prompt"))
            return f"review started: {subject}" if subject else "review started"
        case "exited_review_mode" | "ExitedReviewMode":
            return _review(event.get("review_output") or event.get("review"))
        case "thread_rolled_back":
            count = event.get("num_turns")
            # The turns themselves stay: what the user wrote in them is still what he once wrote.
            return (
                f"rolled back: the last {counted(count, 'turn')} before this are no longer part of the thread"
                if (isinstance(count, int))
                else "rolled back"
            )
    return None


def aborted(event: dict[str, Any]) -> str:
    reason = text(event.get("reason"))
    return "stopped by the user" if reason == "interrupted" else f"stopped: {(reason or 'aborted').replace('_', ' ')}"


def between_agents(author: str | None, recipient: str | None, words: str) -> str:
    return f"message from {author or 'an agent'} to {recipient or 'an agent'}: {words}"


def is_encrypted(words: str) -> bool:
    """Whether a message between agents is one that nobody else can read: one word of base64."""
    return _ENCRYPTED.fullmatch(words) is not None


def started_agent(output: Any) -> str | None:
    """The thread that a call started, as its output says."""
    if not isinstance(output, str) or not output.lstrip().startswith("{"):
        return None
    try:
        told = fields(decode(output.encode("utf-8", "replace")))
    except BadJson:
        return None
    return text(told.get("agent_id")) or text(told.get("thread_id")) or text(told.get("new_thread_id"))


def _assessment(event: dict[str, Any]) -> str | None:
    status = (text(event.get("status")) or "").replace("_", " ")
    if status in ("", "in progress"):
        return None
    rationale = text(event.get("rationale"))
    return f"guardian: {status}" + (f": {rationale}" if rationale else "")


def _review(output: Any) -> str:
    if isinstance(output, str):
        return f"review ended: {output}" if output else "review ended"
    told = fields(output)
    lines = [text(told.get("overall_explanation")) or ""]
    for finding in told.get("findings") or []:
        lines += [text(fields(finding).get("title")) or "", joined(fields(finding).get("body"))]
    words = "\n".join(line for line in lines if line)
    return f"review ended: {words}" if words else "review ended"
