"""What a search must answer, found by looking at every line: slow, plain, and sharing no code with the product.

A session here is as its transcript says; `search` reads all of it for each query.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

WINDOW = 160
"""Characters of a line that a hit shows."""
BEFORE = 40
"""Of them, those before the first match."""

_SPACES = "\t\n\v\f\r\x20\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


@dataclass(frozen=True)
class Line:
    text: str

    @cached_property
    def folded(self) -> str:
        return fold(self.text)


@dataclass(frozen=True)
class Entry:
    """An item: its kind, and its texts by the name of their field, in the order in which they are read."""

    kind: str
    texts: dict[str, str]
    status: str | None = None
    at_ms: int | None = None

    @cached_property
    def lines(self) -> dict[str, list[Line]]:
        return {name: [Line(line) for line in lines_of(text)] for name, text in self.texts.items()}


@dataclass(frozen=True)
class Session:
    """All entries in order, those that belong to no turn among them."""

    id: str
    source: str
    project: str
    title: str
    agent: str
    entries: list[Entry]
    at_ms: int
    """The time of what has none of its own and none before it."""
    is_archived: bool = False

    @cached_property
    def turns(self) -> list["Turn"]:
        """Runs that start at a user entry (what comes before the first is one too) and are not processes alone."""
        runs: list[list[Entry]] = [[]]
        for entry in self.entries:
            if entry.kind == "user":
                runs.append([])
            runs[-1].append(entry)
        turns: list[Turn] = []
        at_ms = self.at_ms
        for run in runs:
            starts = at_ms
            for index, entry in enumerate(run):
                at_ms = at_ms if entry.at_ms is None else entry.at_ms
                starts = at_ms if index == 0 else starts
            if any(entry.kind != "process" for entry in run):
                turns.append(Turn(self, len(turns) + 1, starts, run))
        return turns


@dataclass(frozen=True)
class Turn:
    session: Session
    number: int
    at_ms: int
    entries: list[Entry]


@dataclass(frozen=True)
class Query:
    """The arguments of a search that the oracle knows; None and empty mean no restriction."""

    query: str
    full: bool = False
    kind: tuple[str, ...] = ()
    order: str = "newest"
    project: str | None = None
    source: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    title: str | None = None
    archived: str = "include"
    since_ms: int | None = None
    until_ms: int | None = None
    session: str | None = None
    turns: tuple[int, int] | None = None


@dataclass(frozen=True)
class Found:
    """A hit, as far as the oracle can tell."""

    session_id: str
    turn: int
    kind: str
    line: str
    spans: list[tuple[int, int]] = field(default_factory=list)


def search(sessions: Sequence[Session], query: Query) -> list[Found]:
    """Every turn that matches, in order. `sessions` come in the order in which they were first seen."""
    needle = fold(query.query.strip(_SPACES))
    found = [
        (turn.at_ms, seen, turn.number, hit)
        for seen, session in enumerate(sessions)
        if _is_asked_for(session, query)
        for turn in session.turns
        if _is_in_range(turn, query)
        if (hit := _first_match(turn, query, needle)) is not None
    ]
    found.sort(key=lambda row: row[:3], reverse=query.order == "newest")
    return [hit for *_, hit in found]


def _is_asked_for(session: Session, query: Query) -> bool:
    return (
        (query.session is None or session.id == query.session)
        and (query.project is None or session.project == query.project)
        and (not query.source or session.source in query.source)
        and (not query.agent or fold(session.agent) in map(fold, query.agent))
        and (query.title is None or fold(query.title) in fold(session.title))
        and {"include": True, "exclude": not session.is_archived, "only": session.is_archived}[query.archived]
    )


def _is_in_range(turn: Turn, query: Query) -> bool:
    first, last = query.turns or (1, turn.number)
    return (
        first <= turn.number <= last
        and (query.since_ms is None or query.since_ms <= turn.at_ms)
        and (query.until_ms is None or turn.at_ms <= query.until_ms)
    )


def _first_match(turn: Turn, query: Query, needle: str) -> Found | None:
    for entry in turn.entries:
        for line in _lines_looked_through(entry, query):
            if needle in line.folded:
                shown, spans = _shown(line.text, needle)
                return Found(turn.session.id, turn.number, entry.kind, shown, spans)
    return None


def _lines_looked_through(entry: Entry, query: Query) -> Iterator[Line]:
    if query.kind and entry.kind not in query.kind:
        return
    for name, lines in entry.lines.items():
        if entry.kind in ("thinking", "process"):
            is_looked_through = query.full or entry.kind in query.kind
        elif name == "input":
            said = entry.texts[name].strip()
            is_looked_through = query.full and said not in ("", entry.texts.get("label", "").strip())
        else:
            is_looked_through = query.full or name != "output"
        if is_looked_through:
            yield from lines


def _shown(line: str, needle: str) -> tuple[str, list[tuple[int, int]]]:
    """The part of the line around its first match, and all matches in that part."""
    line = line.strip(_SPACES)
    folded = fold(line)
    matches = []
    at = folded.find(needle)
    while at >= 0:
        matches.append((at, at + len(needle)))
        at = folded.find(needle, at + len(needle))
    start, end = 0, len(line)
    if end > WINDOW:
        first = matches[0][0]
        start = first if len(needle) > WINDOW else max(0, first - BEFORE)
        start = min(start, len(line) - WINDOW)
        end = start + WINDOW
    before, after = "…" if start > 0 else "", "…" if end < len(line) else ""
    spans = [
        (max(first, start) - start + len(before), min(last, end) - start + len(before))
        for first, last in matches
        if first < end and last > start
    ]
    return before + line[start:end] + after, spans


def lines_of(text: str) -> list[str]:
    """What stands between line feeds, without a carriage return before one."""
    *ended, last = text.split("\n")
    return [line[:-1] if line.endswith("\r") else line for line in ended] + [last]


def fold(text: str) -> str:
    return "".join(map(_fold_character, text))


@cache
def _fold_character(char: str) -> str:
    """Simple case folding of one character, by what the standard library knows of the full one."""
    for folded in (char.casefold(), char.lower()):
        if len(folded) == 1:
            return folded
    return char
