"""What every line of a transcript says about itself: its keys, version, time, and where it comes from."""

import re
from typing import Any

from indexer.sources.claude_code.places import Place
from indexer.sources.values import in_calendar, text
from schemas.times import parse_iso

MAX_UUID_CHARS = 128
"""A longer uuid is none."""

TREE_KEYS = frozenset(
    re.findall(
        r"\w+",
        "uuid parentUuid logicalParentUuid timestamp sessionId session_id version entrypoint cwd gitBranch isSidechain"
        " agentId isMeta userType slug forkedFrom type message requestId origin promptSource permissionMode promptId"
        " planContent isCompactSummary isVisibleInTranscriptOnly toolUseResult sourceToolAssistantUUID sourceToolUseID"
        " toolDenialKind isApiErrorMessage error apiErrorStatus errorDetails isAbortedMidStream supersedesUuids subtype"
        " content level toolUseID compactMetadata microcompactMetadata retryInMs retryAttempt maxRetries durationMs"
        " hookInfos hookErrors hookCount hookAdditionalContext preventedContinuation stopReason hasOutput attachment"
        " data parentToolUseID sessionKind teamName agentName thinkingMetadata todos imagePasteIds messageCount cause"
        " mcpMeta",
    )
)
"""Of lines of the tree,"""

SIDECAR_KEYS = TREE_KEYS | frozenset(
    re.findall(r"\w+", "customTitle aiTitle summary leafUuid operation reason prNumber prUrl prRepository")
)
"""and of those beside it that are read."""


def time_of(line: dict[str, Any]) -> int | None:
    """A line's own time in Unix milliseconds; None where it has none, or what is none."""
    written = text(line.get("timestamp"))
    return None if written is None else in_calendar(parse_iso(written))


def uuid_of(line: dict[str, Any]) -> str | None:
    uuid = text(line.get("uuid"))
    return uuid if uuid is not None and len(uuid) <= MAX_UUID_CHARS else None


def origin_of(line: dict[str, Any], uuid: str | None, place: Place) -> tuple[str | None, bool]:
    """The id of a message wherever it stands, and whether its line gives way to another one of that id.

    Copies of a fork name their original. A session that was handed over to the background, or resumed as
    1.0 did, has all lines of the old one with their uuids, and its own in the same way: which of them are
    copies shows only in the other file.
    """
    fork = line.get("forkedFrom")
    if isinstance(fork, dict):
        return text(fork.get("messageUuid")) or uuid, True
    return uuid, line.get("sessionKind") == "bg" or other_session_of(line, place) is not None


def other_session_of(line: dict[str, Any], place: Place) -> str | None:
    """The session that a line says it is of, where that is not the one of its file. A subagent's names its parent."""
    inner = text(line.get("sessionId"))
    return inner if inner is not None and inner != place.id and not place.is_subagent else None


def is_known_version(version: str) -> bool:
    """Whether files of this version of the program were seen: 1.x, 2.0 and 2.1."""
    numbers = version.split(".")
    return numbers[0] in ("0", "1") or (numbers[0] == "2" and len(numbers) > 1 and numbers[1] in ("0", "1"))
