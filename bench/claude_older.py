"""What Claude Code's files have besides their usual lines: the ways of older versions, faults, and copies.

Each function takes the lines of a session and answers other ones that mean the same.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

STEERED_SHARE = 0.1
DOUBLED_SHARE = 0.3


def is_message(line: Json) -> bool:
    """Whether a line is one that a user sent."""
    return (
        line["type"] == "user"
        and "toolUseResult" not in line
        and not line.get("isMeta")
        and not line.get("isSidechain")
    )


def steered(lines: Iterator[Json], random: Random) -> Iterator[Json]:
    """Some messages but the first were typed while the agent worked, as they were told of at different times."""
    is_first = True
    for line in lines:
        if not is_message(line) or line.get("isCompactSummary") or is_first or random.random() >= STEERED_SHARE:
            is_first = is_first and not is_message(line)
            yield line
            continue
        words = line["message"]["content"]
        told = {"type": "queue-operation", "timestamp": line["timestamp"], "sessionId": line["sessionId"]}
        yield {**told, "operation": "enqueue", "content": words}
        if random.random() < 0.5:
            envelope = {key: value for key, value in line.items() if key not in ("message", "permissionMode")}
            attachment = {"type": "queued_command", "prompt": words, "commandMode": "prompt"}
            yield {**envelope, "type": "attachment", "attachment": attachment}
            yield {**told, "operation": "remove", "reason": "absorbed_mid_turn", "content": words}
        else:
            yield {**told, "operation": "remove"}


def doubled(lines: Iterator[Json], random: Random) -> Iterator[Json]:
    """Some lines were written once more, right away or later, with the same uuid."""
    held: list[Json] = []
    for line in lines:
        yield line
        if "uuid" in line and random.random() < DOUBLED_SHARE:
            held.append(line)
        if held and random.random() < 0.2:
            yield from held
            held = []
    yield from held


def resumed(lines: Iterator[Json], _own: str) -> Iterator[Json]:
    """Copies in the file of a session that was resumed by 1.0: as they were, with the other session's id."""
    return ({**line, "version": "1.0.67"} for line in lines)


def handed_over(lines: Iterator[Json], own: str) -> Iterator[Json]:
    """Copies in the file of a session that goes on in the background."""
    return ({**line, "sessionId": own, "sessionKind": "bg"} for line in lines)


def forked(lines: Iterator[Json], own: str) -> Iterator[Json]:
    """Copies in the file of a fork."""
    return (
        {**line, "sessionId": own, "forkedFrom": {"sessionId": line["sessionId"], "messageUuid": line["uuid"]}}
        for line in lines
    )


COPYING: tuple[Callable[[Iterator[Json], str], Iterator[Json]], ...] = (forked, resumed, handed_over)
"""The ways in which a new file begins with lines of an older one; each also says what its own lines have."""
