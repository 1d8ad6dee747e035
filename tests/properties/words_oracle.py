"""What a search by words must answer, found by cutting every line into words: slow, plain, and sharing no code."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from tests.properties import oracle
from tests.properties.oracle import BEFORE, WINDOW, Entry, Found, Turn

# Scripts that write no spaces: each letter is a word. The ranges are those that docs/words-mode.md names.
SPACELESS = [
    (0x0E00, 0x109F),
    (0x1780, 0x17FF),
    (0x1950, 0x19DF),
    (0x1A20, 0x1AAF),
    (0xA9E0, 0xA9FF),
    (0xAA60, 0xAADF),
    (0x2E80, 0x2FDF),
    (0x3005, 0x3007),
    (0x3021, 0x3029),
    (0x3038, 0x303B),
    (0x3041, 0x312F),
    (0x31A0, 0x31BF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),
]


@dataclass(frozen=True)
class Words:
    """These words side by side in one line; `is_open`: the last of them may go on."""

    words: tuple[str, ...]
    is_open: bool = False


@dataclass(frozen=True)
class Not:
    part: "Query"


@dataclass(frozen=True)
class And:
    parts: tuple["Query", ...]


@dataclass(frozen=True)
class Or:
    parts: tuple["Query", ...]


Query = Words | Not | And | Or


@dataclass(frozen=True)
class Token:
    word: str
    start: int
    end: int


def search(sessions: Sequence[oracle.Session], query: Query, filters: oracle.Query) -> dict[tuple[str, int], Found]:
    """Every turn that matches, by session id and number; `filters` are those of a text search."""
    found: dict[tuple[str, int], Found] = {}
    for session in sessions:
        if oracle._is_asked_for(session, filters):
            for turn in session.turns:
                if oracle._is_in_range(turn, filters):
                    hit = _match(turn, query, filters)
                    if hit is not None:
                        found[session.id, turn.number] = hit
    return found


def _match(turn: Turn, query: Query, filters: oracle.Query) -> Found | None:
    lines = [(entry, line) for entry in turn.entries for line in oracle._lines_looked_through(entry, filters)]
    everything = {words for words, _ in _words_in(query, False)}
    present = {words for words in everything if any(_spans(line.text, words) for _, line in lines)}
    if not _holds(query, present):
        return None
    wanted = {words for words, is_negated in _words_in(query, False) if not is_negated}
    best: tuple[int, Entry, str] | None = None
    for entry, line in lines:
        weight = sum(len(words.words) for words in wanted if _spans(line.text, words))
        if weight and (best is None or weight > best[0]):
            best = weight, entry, line.text
    assert best is not None
    _, entry, text = best
    return Found(turn.session.id, turn.number, entry.kind, *_shown(text, wanted))


def _holds(query: Query, present: set[Words]) -> bool:
    match query:
        case Words():
            return query in present
        case Not(part):
            return not _holds(part, present)
        case And(parts):
            return all(_holds(part, present) for part in parts)
        case Or(parts):
            return any(_holds(part, present) for part in parts)


def _words_in(query: Query, is_negated: bool) -> list[tuple[Words, bool]]:
    match query:
        case Words():
            return [(query, is_negated)]
        case Not(part):
            return _words_in(part, not is_negated)
        case And(parts) | Or(parts):
            return [found for part in parts for found in _words_in(part, is_negated)]


def _spans(line: str, words: Words) -> list[tuple[int, int]]:
    """The matches in a line from left to right, none beginning before the last has ended."""
    tokens = tokens_of(line)
    size = len(words.words)
    spans: list[tuple[int, int]] = []
    for place in range(len(tokens) - size + 1):
        run = tokens[place : place + size]
        if spans and run[0].start < spans[-1][1]:
            continue
        *whole, last = (token.word for token in run)
        ends = last.startswith(words.words[-1]) if words.is_open else last == words.words[-1]
        if ends and tuple(whole) == words.words[:-1]:
            spans.append((run[0].start, run[-1].end))
    return spans


@cache
def tokens_of(line: str) -> list[Token]:
    tokens: list[Token] = []
    for at, char in enumerate(oracle.fold(line)):
        if not char.isalnum():
            continue
        last = tokens[-1] if tokens else None
        if last is None or last.end < at or is_spaceless(char) or is_spaceless(last.word[-1]):
            tokens.append(Token(char, at, at + 1))
        else:
            tokens[-1] = Token(last.word + char, last.start, at + 1)
    return tokens


def is_spaceless(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in SPACELESS)


def _shown(line: str, wanted: set[Words]) -> tuple[str, list[tuple[int, int]]]:
    line = line.strip(oracle._SPACES)
    covered: set[int] = set()
    starts: set[int] = set()
    for words in wanted:
        for start, end in _spans(line, words):
            if start not in covered:
                starts.add(start)
            starts -= set(range(start + 1, end))
            covered |= set(range(start, end))
    matches: list[tuple[int, int]] = []
    for at in sorted(covered):
        if at in starts or not matches or matches[-1][1] < at:
            matches.append((at, at + 1))
        else:
            matches[-1] = (matches[-1][0], at + 1)
    start, end = 0, len(line)
    if end > WINDOW:
        first, first_end = matches[0]
        start = first if first_end - first > WINDOW else max(0, first - BEFORE)
        start = min(start, len(line) - WINDOW)
        end = start + WINDOW
    before, after = "…" if start > 0 else "", "…" if end < len(line) else ""
    spans = [
        (max(first, start) - start + len(before), min(last, end) - start + len(before))
        for first, last in matches
        if first < end and last > start
    ]
    return before + line[start:end] + after, spans
