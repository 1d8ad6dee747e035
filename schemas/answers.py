"""What comes back: one object a call, of which the JSON form and the text form are two renderings.

Times are ISO 8601 UTC with milliseconds. `project` is a path, `session` a number or null.
"""

from dataclasses import dataclass, field

COPIED_FROM = " · copied from "
"""What stands between the reference of a turn that is a copy and that of its original."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A turn that matches, with its first matching line."""

    reference: str
    link: str | None
    project: str
    project_name: str
    session: int | None
    session_id: str
    turn: int
    title: str
    line: str
    """Stripped, and cut to 160 characters around the first match."""
    spans: list[tuple[int, int]]
    """All matches in `line`, `[from, to)` in code points."""
    kind: str
    source: str
    agent: str | None
    at: str
    archived: bool
    deleted: bool
    copied_from: str | None
    """The reference of the turn that this one is a copy of."""
    before: list[str]
    """Lines of the same item before `line`, as many as were asked for and are there, cut to 160 characters."""
    after: list[str]


@dataclass(frozen=True, slots=True)
class Road:
    """A stretch of turns in the order of answers, and how they were looked for."""

    road: str
    at_most_chunks: int | None
    """What word counts promised for all time; null where the index was not asked, or had no word to go by."""
    turns: int
    """How many turns it named; 0 also where it was considered and another one was taken."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a search was answered, and what that cost."""

    roads: list[Road]
    considered: int
    """Turns that the roads named and the filters let through."""
    loaded: int
    """Chunks that were taken from the store."""
    verified: int
    """Turns whose text was looked through."""
    matched: int
    step_ms: dict[str, float]


@dataclass(frozen=True, slots=True)
class Indexing:
    """How far a first scan or rebuild is; absent when none is running."""

    sessions_done: int
    sessions_total: int
    bytes_done: int
    bytes_total: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that a search over several sessions left out, and the argument that brings it back."""

    what: str
    argument: str


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    query: str
    hits: list[Hit]
    more: bool
    cursor: str | None
    notes: list[str]
    left_out: list[LeftOut]
    indexing: Indexing | None
    took_ms: float
    limit: int = 20
    """How many turns were asked for at most; said where there are more, and not a key of the JSON form."""
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True)
class TurnRange:
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ReadItem:
    """An item as `session_read` answers it. Only what its kind has is set; detail only with `full`."""

    turn: int
    index: int
    kind: str
    text: str | None = None
    label: str | None = None
    status: str | None = None
    input: str | None = None
    output: str | None = None
    command: str | None = None
    at: str | None = None
    is_continued: bool = False
    """Whether the item began in the answer before this one, which was cut inside it."""
    is_cut: bool = False
    """Whether the item goes on in the answer after this one. Its pieces joined are the item's text: a piece
    that was cut at a line end keeps that line's `\\n`, and a tool that was cut between the two has its
    input whole and an empty output."""


@dataclass(frozen=True, slots=True)
class ReadTurn:
    """The part of a turn that one answer holds."""

    turn: int
    reference: str
    is_continued: bool
    """Whether its heading stood in the answer before this one."""
    items: list[ReadItem]
    copied_from: str | None = None
    """The reference of the turn that it is a copy of."""


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    reference: str
    link: str | None
    project: str
    project_name: str
    session: int | None
    session_id: str
    title: str
    source: str
    agent: str | None
    archived: bool
    deleted: bool
    turns: TurnRange | None
    """The turns asked for, cut to those there are; None where the session has none."""
    count: int
    parts: list[ReadTurn]
    is_continuation: bool
    """Whether a cursor was given: the text form then has no header line."""
    max_chars: int | None
    more: bool
    cursor: str | None
    notes: list[str]
    is_full: bool
    """Whether detail was asked for: tools then have `input` and `output`, null where there is nothing."""


@dataclass(frozen=True, slots=True)
class SessionSummary:
    reference: str
    link: str | None
    project: str
    project_name: str
    session: int | None
    session_id: str
    title: str
    source: str
    agent: str | None
    turns: int
    first_at: str | None
    last_at: str | None
    archived: bool
    deleted: bool
    parent: str | None
    forked_from: str | None
    twin_of: str | None


@dataclass(frozen=True, slots=True)
class SessionsAnswer:
    sessions: list[SessionSummary]
    more: bool
    cursor: str | None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ProjectSummary:
    path: str
    name: str
    open: bool
    sources: list[str]
    sessions: int
    turns: int
    last_at: str | None


@dataclass(frozen=True, slots=True)
class ProjectsAnswer:
    projects: list[ProjectSummary]


@dataclass(frozen=True, slots=True)
class SkippedLines:
    """Records or lines that could not be read, of one file and for one reason."""

    file: str
    line: int | None
    """The last line it happened in, counted from 1; None where the format has no lines."""
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class SourceStatus:
    source: str
    files: int
    sessions: int
    turns: int
    bytes: int
    lag_ms: int
    """How long the oldest change that is known and not yet stored has been waiting; 0 without one."""
    unavailable: list[str]
    """Folders that cannot be read now; what was stored from them stays."""
    skipped: dict[str, int]
    """How many records and lines could not be read, by reason."""
    errors: list[SkippedLines]
    """The latest of them."""


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    version: str
    uptime_s: float | None
    """None where no server answers."""
    is_ready: bool
    indexing: Indexing | None
    projects: int
    sessions: int
    turns: int
    chunks: int
    store_bytes: int
    index_bytes: int
    vocabulary_bytes: int
    data_dir: str
    sources: list[SourceStatus] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Problem:
    """RFC 9457 problem details, with a stable code and what can be passed back instead."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    candidates: list[str]
