"""Messages that are typed while the agent works: which of them reached it, and where.

What enters the queue is not yet sent. It leaves it as an ordinary message when the agent is idle, back into the
editor, or into the running work, which is told twice by newer versions: by the queue and by an attachment.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any, Self

from indexer.sources.claude_code.users import prompt_of

OPERATIONS = ("enqueue", "dequeue", "remove", "popAll")

MAX_WAITING = 64
MAX_STARTED = 64

_NOTIFICATION = "<task-notification>"
_NOT_TYPED = (_NOTIFICATION, "/")


@dataclass(slots=True)
class Queue:
    """The queue of a session, as JSON between two reads."""

    waiting: list[str] = field(default_factory=list)
    by_removal: list[str] = field(default_factory=list)
    """Hashes of messages that began a turn as they left the queue, and whose attachment may follow;"""
    by_attachment: list[str] = field(default_factory=list)
    """and the other way round."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(**value)

    def operate(self, line: Mapping[str, Any]) -> str | None:
        """Follow a `queue-operation`; the message that begins a turn here, if one does."""
        content = line.get("content")
        words = prompt_of(content) if isinstance(content, (str, list)) else None
        match line.get("operation"):
            case "enqueue":
                self.waiting = [*self.waiting, words or ""][-MAX_WAITING:]
            case "dequeue":
                self._leave(words)  # the ordinary message follows
            case "popAll":
                self.waiting = []
            case "remove":
                left = self._leave(words)
                removed = words or left
                if removed and removed.strip() and not removed.lstrip().startswith(_NOT_TYPED):
                    return self._once(removed, self.by_attachment, self.by_removal)
        return None

    def attach(self, attachment: Mapping[str, Any]) -> str | None:
        """Take a `queued_command`; the message that begins a turn here, if one does."""
        origin = attachment.get("origin")
        is_typed = (
            attachment.get("commandMode") == "prompt"
            and attachment.get("isMeta") is not True
            and (origin is None or (isinstance(origin, dict) and origin.get("kind") in (None, "human")))
        )
        words = prompt_of(attachment.get("prompt"))
        if not is_typed or not words.strip() or words.lstrip().startswith(_NOTIFICATION):
            return None
        return self._once(words, self.by_removal, self.by_attachment)

    def has_begun_with(self, attachment: Mapping[str, Any]) -> bool:
        """Whether the latest message that began a turn as it left the queue is that of an attachment to come."""
        return self.by_removal[-1:] == [_hash(prompt_of(attachment.get("prompt")))]

    def forget_removals(self) -> None:
        """An answer began: the attachment of what left the queue before it would have been written."""
        self.by_removal = []

    def settle(self) -> None:
        """A message was sent to the idle agent: whatever was said twice has been."""
        self.by_removal, self.by_attachment = [], []

    def _leave(self, words: str | None) -> str | None:
        """Take a message out of the queue, that of these words or the oldest."""
        if words is None:
            return self.waiting.pop(0) if self.waiting else None
        same = next((one for one in self.waiting if one.strip() == words.strip()), None)
        if same is not None:
            self.waiting.remove(same)
        return same

    def _once(self, words: str, told: list[str], telling: list[str]) -> str | None:
        """The words, unless the other one of the two records has told of them."""
        hash_ = _hash(words)
        if hash_ in told:
            told.remove(hash_)
            return None
        telling.append(hash_)
        del telling[:-MAX_STARTED]
        return words


def _hash(words: str) -> str:
    return blake2b(words.strip().encode(), digest_size=8).hexdigest()
