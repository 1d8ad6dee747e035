"""The contract of a source: it knows one transcript format, and nothing else.

A source says where its transcripts are and turns their bytes into sessions, turns and items. It only
ever reads. It knows no number of ours, no database and no index; what it must remember of a
transcript between two reads is its own checkpoint, opaque to everyone else.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias

from schemas.items import Item, Status

Checkpoint: TypeAlias = Mapping[str, Any]
"""How far a transcript was read: JSON that only its source understands."""


@dataclass(frozen=True, slots=True)
class Root:
    """A folder that holds transcripts of one source."""

    path: Path
    project: Path | None = None
    """The project that all its transcripts belong to, where the folder says so."""
    is_recursive: bool = True
    is_named: bool = False
    """Whether the user named it, so that it is worth telling if it is not there."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One file of a root, as its folder lists it."""

    file: str
    """Its path: a look at ten thousand files compares these, and makes a `path` of the few that are read."""
    root: Root
    size: int
    mtime_ns: int
    inode: int
    device: int

    @property
    def path(self) -> Path:
        return Path(self.file)

    @property
    def signature(self) -> tuple[int, int, int, int]:
        """Changes when the file does."""
        return self.size, self.mtime_ns, self.inode, self.device


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What a transcript says about its session, all of it each time."""

    key: str
    """The session's identity within its source, the same wherever its file moves, as far as the format allows."""
    session_id: str
    """The source's own id of the session."""
    project: Path
    title: str
    agent: str | None = None
    agent_id: str | None = None
    is_archived: bool = False
    started_ms: int | None = None
    forked_from: str | None = None
    """The id of the session that this one was forked from, in the same project."""
    agent_session: str | None = None
    """The agent's own id of the session, which links a record to its twin."""
    parent_id: str | None = None
    """The source's own id of the session that started this one, a subagent, in the same project."""
    parent_call: str | None = None
    """The id of the tool call in the parent that started it, where the format tells."""
    aliases: tuple[str, ...] = ()
    """Other ids that the transcript says it has. They name the session where no session has that id itself."""


@dataclass(frozen=True, slots=True)
class Append:
    """Items of a turn, from index `first` on: they replace what stands there and follow what stands before."""

    turn: int
    at_ms: int
    """The turn's time; it counts only the first time the turn is stored."""
    first: int
    items: tuple[Item, ...]
    is_whole: bool = False
    """Whether the turn has no items but those before `first` and these."""
    origin: str | None = None
    """The source's own id of the message that began the turn; a copy of the turn in another session has the same."""
    is_copy: bool = False
    """Whether the format says that the turn was brought along from another session."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A tool item that was completed where it stands; None leaves what it had."""

    turn: int
    index: int
    label: str | None = None
    status: Status | None = None
    input: str | None = None
    output: str | None = None


Change: TypeAlias = Append | Patch


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that starts a subagent, and where its item stands, so that the item can name the subagent."""

    id: str
    turn: int
    index: int
    session_id: str | None = None
    """The source's own id of the subagent's session, where the parent's transcript tells; it may come later."""


@dataclass(frozen=True, slots=True)
class Side:
    """What a piece of a transcript says of another session that lies in the same file: a subagent's."""

    facts: SessionFacts
    changes: Sequence[Change]
    turns: int | None = None
    """As in `Part`."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record or line that could not be read; what follows it was."""

    reason: str
    line: int | None = None
    """Counted from 1 where it is known."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a transcript that is stored in one transaction together with its checkpoint."""

    facts: SessionFacts
    changes: Sequence[Change]
    checkpoint: Checkpoint
    skipped: Sequence[Skipped] = field(default_factory=tuple)
    turns: int | None = None
    """Where set, the session has just this many turns, and any beyond them are removed."""
    is_from_start: bool = False
    """Whether reading began at the transcript's beginning here, so that what was skipped is counted anew."""
    calls: Sequence[Call] = ()
    """Calls of subagents that this piece brought, or of which it told more; the last word on an id counts."""
    sides: Sequence[Side] = ()
    """Sessions that lie in the same file, stored in the same transaction. They have no checkpoint of their own."""
    supersedes: Sequence[Path] = ()
    """Files that may still lie there, but whose session goes on in this one."""


class Unsettled(Exception):
    """The transcript was caught in the middle of a write; it says nothing yet, read it again soon."""


class Waiting(Exception):
    """The transcript is not yet one, as its header is not there; it is read when it changes.

    `skipped` is what was there instead, to be told, as it may be meant as a header.
    """

    def __init__(self, skipped: Sequence[Skipped] = ()) -> None:
        super().__init__()
        self.skipped = skipped


class Unreadable(Exception):
    """The transcript is broken, and at rest: it changes nothing, and is counted with its `reason`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Source(Protocol):
    """A transcript format."""

    name: ClassVar[str]
    """As callers write it: `cydonia`, `turn-file`."""
    is_whole_record: ClassVar[bool]
    """Whether every change rewrites the whole file, so that reads are rationed (5 a second a file)."""

    quiet_seconds: ClassVar[int | None]
    """What runs in a transcript was interrupted when it was not written to for so long, as who wrote it is taken for
    dead: it is read once more then. None where only the transcript itself says how something ended."""

    def roots(self) -> Sequence[Root]:
        """The folders to read now. They may come and go; one that is missing is still named."""

    def state_files(self) -> Sequence[Path]:
        """Files whose change may change `roots` or `titles`; watched like transcripts."""

    def listed_projects(self) -> Sequence[Path] | None:
        """Projects that the source itself lists as open; None where it keeps no such list."""

    def transcripts(self, root: Root) -> Iterator[Transcript]:
        """The transcripts of a root, by listing it.

        Raises:
            OSError: the root or a folder in it cannot be read; nothing is known about what it holds.
                It comes after every transcript that could be listed.
        """

    def owns(self, root: Root, path: Path) -> bool:
        """Whether a path below a root has the name of a transcript. Asked on the thread that events come on."""

    def titles(self) -> Mapping[str, str]:
        """Titles that stand beside the transcripts, in the state files, by the source's own id of the session.

        An empty one was taken away: the transcript tells what the title is then.
        """

    def text_bytes(self, transcript: Transcript) -> int:
        """About how many bytes of a transcript are text that is kept, by its size and name alone: what it will cost."""

    def recorded_session(self, transcript: Transcript) -> str | None:
        """The agent's own id of the session that this one records, as the head of the transcript tells, cheaply."""

    def facts(self, transcript: Transcript) -> SessionFacts | None:
        """What the head of a transcript says, cheaply; None where only a read of the whole would tell.

        Its project and start decide which number the session gets, so they are those that reading tells, too.

        Raises:
            OSError: the file cannot be read.
        """

    def read(self, transcript: Transcript, since: Checkpoint | None, *, settle_ms: int = 2000) -> Iterator[Part]:
        """Read what was added or changed since a checkpoint, or the whole without one.

        Parts come in order, each small enough for one transaction (about 4 MB), and the last one leaves
        the session as its file is. With nothing new there are none. A file that was replaced, cut or
        rewritten is read from its beginning; where it has been quiet for `quiet_seconds`, what runs in it has ended,
        and that is news, too. A torn end waits; one that has been quiet for
        `settle_ms` and is complete but for its line end is read.

        Raises:
            Unsettled: caught in the middle of a write. Parts that came before it stand: what was
                complete was read, and the torn end behind it is to be read again soon.
            Waiting: not yet a transcript.
            Unreadable: broken, and not being written.
            OSError: the file cannot be read.
        """
