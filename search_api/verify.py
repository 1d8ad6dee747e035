"""Whether and where a turn matches, decided on its text: what the index says is only a hint."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, takewhile

from indexer.store import chunks
from indexer.store.reader import ChunkBody
from schemas.items import CONVERSATION_KINDS, DETAIL_KINDS, Kind, Layer
from schemas.texts import WHITE_SPACE, lines_of
from search_api.finders import Finder

LINE_CHARS = 160
CHARS_BEFORE_MATCH = 40


@dataclass(frozen=True, slots=True)
class Gaze:
    """Which items are looked through, by layer."""

    kinds: dict[Layer, frozenset[Kind]]

    @classmethod
    def of(cls, kinds: Collection[Kind], is_full: bool) -> "Gaze":
        """By the arguments `kind` and `full`: naming a kind of detail looks through it, tools' output needs `full`."""
        wanted = frozenset(kinds or Kind)
        detail = DETAIL_KINDS & wanted if is_full else (DETAIL_KINDS - {Kind.TOOL}) & frozenset(kinds)
        return cls({Layer.CONVERSATION: CONVERSATION_KINDS & wanted, Layer.DETAIL: detail})

    @property
    def selected_kinds(self) -> frozenset[Kind] | None:
        """The kinds that are looked through where that is not all that the layers have."""
        kinds = frozenset[Kind]().union(*self.kinds.values())
        whole = {Layer.CONVERSATION: CONVERSATION_KINDS, Layer.DETAIL: DETAIL_KINDS}
        return None if all(self.kinds[layer] == whole[layer] for layer in self.layers) else kinds

    @property
    def layers(self) -> list[Layer]:
        return [layer for layer, kinds in self.kinds.items() if kinds]


@dataclass(frozen=True, slots=True)
class Match:
    """The first matching line of a turn."""

    kind: Kind
    line: str
    """As answered: stripped, and cut around the first match."""
    spans: list[tuple[int, int]]
    before: list[str] = field(default_factory=list)
    """Lines of the same item before it,"""
    after: list[str] = field(default_factory=list)
    """and after it."""


def first_match(bodies: Iterable[ChunkBody], finder: Finder, gaze: Gaze, context: int = 0) -> Match | None:
    """The first line of a turn that matches, in the order of reading, with `context` lines around it, or None."""
    best: tuple[int, int] | None = None
    found: tuple[Kind, str, int] | None = None
    for body in bodies:
        kinds = gaze.kinds[body.layer]
        json = chunks.json_of(body.body)
        if not finder.prefilter.may_hold(json):
            continue
        rows = [row for row in chunks.rows_of(json) if row[1] in kinds]
        if not finder.may_be_in([text for row in rows for text in chunks.texts_of(row, body.layer)]):
            continue
        for row in rows:
            place = (row[0], int(body.layer))
            if best is not None and place >= best:
                break
            hit = _first_in_row(row, body.layer, finder)
            if hit is not None:
                best, found = place, (Kind(row[1]), *hit)
                break
    if found is None:
        return None
    kind, text, at = found
    line = line_around(text, at)
    return Match(kind, *shown_line(line, finder.spans(line)), *lines_beside(text, at, context))


def _first_in_row(row: chunks.Row, layer: Layer, finder: Finder) -> tuple[str, int] | None:
    for text in chunks.texts_of(row, layer):
        at = finder.find(text)
        if at >= 0:
            return text, at
    return None


def lines_beside(text: str, at: int, count: int) -> tuple[list[str], list[str]]:
    """Up to so many lines before and after the one that offset `at` lies in, cut to 160 characters."""
    if count == 0:
        return [], []
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    before = lines_of(text[:start])[:-1][-count:]
    after = [] if end < 0 else lines_of(text[end + 1 :])[:count]
    return [_cut(line) for line in before], [_cut(line) for line in after]


def _cut(line: str) -> str:
    stripped = line.rstrip(WHITE_SPACE)
    return stripped if len(stripped) <= LINE_CHARS else stripped[:LINE_CHARS] + "…"


def line_around(text: str, at: int) -> str:
    """The line that offset `at` lies in: between `\\n`s, without a `\\r` before the one that ends it."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return text[start:] if end < 0 else text[start:end].removesuffix("\r")


def shown_line(line: str, spans: Iterator[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    """A matching line as answered, with the spans of the matches in it; `spans` are those in the line as written.

    Stripped of white space, then cut to 160 characters: from 40 before the first match, moved so that the
    window stays in the line, with `…` at each cut end. A match longer than that shows its first 160.
    """
    stripped = line.strip(WHITE_SPACE)
    length, lead = len(stripped), len(line) - len(line.lstrip(WHITE_SPACE))
    inner = ((max(at - lead, 0), min(to - lead, length)) for at, to in spans)
    visible = ((at, to) for at, to in inner if at < to)
    first = next(visible, (0, 0))
    start = 0
    if length > LINE_CHARS:
        is_longer = first[1] - first[0] > LINE_CHARS
        start = first[0] if is_longer else max(0, min(first[0] - CHARS_BEFORE_MATCH, length - LINE_CHARS))
    end = min(start + LINE_CHARS, length)
    before = "…" if start > 0 else ""
    after = "…" if end < length else ""
    shift = len(before) - start
    # The rest of a long line may have any number of matches, which nobody sees.
    shown = takewhile(lambda span: span[0] < end, chain([first], visible))
    cut = [(max(at, start) + shift, min(to, end) + shift) for at, to in shown if to > start]
    return before + stripped[start:end] + after, cut
