"""Whether searches answer what reading every line does: a crowd of random queries against a scan of all texts.

The scan shares no code with the search: it reads the transcripts themselves (those of other agents from the store),
holds all their texts, folded by Python's own tables, as one run of bytes for each layer, and looks through all of it
for every query.
"""

import multiprocessing
import time
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from bench.corpus import corpus_settings, read_manifest
from bench.results import percentiles
from bench.transcripts import Json
from bench.turns import Turn as StoredTurn
from bench.turns import turns_in_time
from schemas.errors import TurndexError
from schemas.requests import MAX_SEARCH_LIMIT, SearchRequest
from schemas.settings import Settings
from schemas.texts import WHITE_SPACE
from search_api.archive import Archive
from search_api.caller import Caller

PAGES = 4
"""What has more turns than these pages hold is compared on its first page alone, and on there being more,"""

WHOLE_WALK = 200
"""but for one in so many, of which these pages are compared."""

ALL_OF_THEM = {"subagents": "include", "copies": "include"}
"""What a search leaves out otherwise, and a scan of all turns does not."""

MAX_QUERY_CHARS = 400
MAX_SHOWN = 20

Turn = tuple[str, int]
"""A session's id and the number of a turn in it."""

# What the archive does not have, or hardly: folding, marks, scripts, odd characters.
_FOREIGN_WORDS = """
Straße STRASSE İstanbul ſtop \u212aelvin Οδυσσέας ΣΊΣΥΦΟΣ µm ﬀ ǅ e\u0301te\u0301 a\u0345 𠮷野家 ｱｲｳ
ภาษาไทย हिन्दी العربية Привет 𐐀𐐨 Ⅷ Ａｂｃ 𝔸 ² 👩\u200d💻 🇩🇪 ☃\ufe0f \ufffd \u200b
"""
_FOREIGN = _FOREIGN_WORDS.split()
_LAYERS = ("conversation", "detail")


def measure(corpus: Path, data_dir: Path, *, queries: int, seed: int = 1, workers: int = 1) -> dict[str, Any]:
    """Ask so many queries, in several processes if wanted; says which were answered otherwise than by the scan."""
    settings = corpus_settings(corpus, data_dir)
    context = multiprocessing.get_context("spawn")
    started = time.perf_counter()
    running = []
    for worker in range(workers):
        receiver, sender = context.Pipe(duplex=False)
        share = queries // workers + (worker < queries % workers)
        process = context.Process(
            target=_ask_crowd, args=(sender, corpus, data_dir, settings, share, f"{seed}-{worker}")
        )
        process.start()
        sender.close()
        running.append((process, receiver))
    crowds: list[Crowd] = []
    for process, receiver in running:
        try:
            crowds.append(receiver.recv())
        except EOFError:
            raise SystemExit("a worker failed; see above") from None
        process.join()
    differences = [difference for crowd in crowds for difference in crowd.differences]
    search_ms = [took for crowd in crowds for took in crowd.search_ms]
    asked = sum((crowd.asked for crowd in crowds), Counter[str]())
    return {
        "turns": read_manifest(corpus).turns,
        "seed": seed,
        "queries": sum(asked.values()),
        "differences": len(differences),
        "examples": differences[:MAX_SHOWN],
        "asked_for": dict(asked),
        "without_match": sum(crowd.without_match for crowd in crowds),
        "compared_on_all_turns": sum(crowd.compared_whole for crowd in crowds),
        "turns_compared": sum(crowd.turns_compared for crowd in crowds),
        "search_ms": percentiles(search_ms),
        "scan_ms": percentiles([took for crowd in crowds for took in crowd.scan_ms]),
        "seconds": round(time.perf_counter() - started, 1),
    }


class Scan:
    """All texts of an archive; every turn that has a text is found by looking through all of them."""

    def __init__(self, turns: Iterable[StoredTurn]) -> None:
        """`turns` come in the order of time, the oldest first."""
        self.turns: list[Turn] = []
        """Oldest first."""
        parts: dict[str, list[bytes]] = {layer: [] for layer in _LAYERS}
        self._starts = {layer: array("q") for layer in _LAYERS}
        sizes = dict.fromkeys(_LAYERS, 0)
        for turn in turns:
            self.turns.append((turn.session_id, turn.number))
            for layer in _LAYERS:
                texts = [text for item in turn.items for text in _texts(item, layer)]
                folded = "".join(f"{fold(text)}\n" for text in texts).encode()
                self._starts[layer].append(sizes[layer])
                sizes[layer] += len(folded)
                parts[layer].append(folded)
        self._text = {layer: b"".join(pieces) for layer, pieces in parts.items()}

    def find(self, query: str, *, full: bool) -> list[Turn]:
        """All turns with a line that has the query, oldest first."""
        needle = fold(query.strip(WHITE_SPACE)).encode()
        found = set(self._find(needle, "conversation"))
        if full:
            found.update(self._find(needle, "detail"))
        return [self.turns[index] for index in sorted(found)]

    def _find(self, needle: bytes, layer: str) -> Iterator[int]:
        text, starts = self._text[layer], self._starts[layer]
        at = text.find(needle)
        while at >= 0:
            turn = bisect_right(starts, at) - 1
            yield turn
            at = text.find(needle, starts[turn + 1]) if turn + 1 < len(starts) else -1

    def line(self, random: Random) -> str:
        """A line that is somewhere in the archive, folded, without white space at its ends; it may be empty."""
        text = self._text[random.choice(_LAYERS)] or self._text["conversation"]
        at = random.randrange(len(text))
        start, end = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", at)
        return text[start:end].decode().strip(WHITE_SPACE)


def fold(text: str) -> str:
    """Simple case folding, one character to one character."""
    return text.lower() if text.isascii() else "".join(map(_fold_character, text))


@cache
def _fold_character(char: str) -> str:
    for folded in (char.casefold(), char.lower()):
        if len(folded) == 1:
            return folded
    return char


def _texts(item: Json, layer: str) -> Iterator[str]:
    """The texts of an item that belong to a layer."""
    names: tuple[str, ...]
    match item["type"]:
        case "thinking" | "process":
            names = ("text", "command", "output") if layer == "detail" else ()
        case "tool":
            names = ("label",) if layer == "conversation" else ("input", "output")
        case _:
            names = ("text",) if layer == "conversation" else ()
    for name in names:
        if item.get(name):
            yield item[name]


def random_query(random: Random, scan: Scan) -> tuple[str, str]:
    """What kind of query it is, and its text, which is neither blank nor more than one line."""
    while True:
        kind = random.choice(
            ["cut", "cut", "cut", "words", "words", "fragment", "near miss", "joined", "long", "symbols"]
        )
        kind = "foreign" if random.random() < 0.03 else "one character" if random.random() < 0.05 else kind
        text = _text_of(kind, random, scan)
        if random.random() < 0.25:
            text = "".join(char.swapcase() if random.random() < 0.7 else char for char in text)
        if text.strip(WHITE_SPACE) and "\n" not in text and len(text) <= MAX_QUERY_CHARS:
            return kind, text


def _text_of(kind: str, random: Random, scan: Scan) -> str:
    line = scan.line(random)
    if not line:
        return ""
    match kind:
        case "cut":
            return _cut(random, line, random.choice([2, 3, 5, 8, 13, 30]))
        case "words":
            words = line.split(" ")
            start = random.randrange(len(words))
            return " ".join(words[start : start + random.randint(1, 4)])
        case "fragment":
            word = random.choice(line.split(" "))
            return _cut(random, word, random.randint(1, 6)) if word else ""
        case "near miss":
            text = _cut(random, line, random.randint(3, 20))
            at = random.randrange(len(text) + 1)
            inserted = random.choice(["", " ", "  ", "_", "e", "x", "7", ".", "(", "错", "\t", random.choice(_FOREIGN)])
            return text[:at] + inserted + text[at + random.randint(0, 1) :]
        case "joined":
            return _cut(random, line, 8) + random.choice(["", " ", "/", "."]) + _cut(random, scan.line(random), 8)
        case "long":
            return _cut(random, line, MAX_QUERY_CHARS)
        case "symbols":
            return "".join(random.choices("(){}[]<>=-+*/.,:;|&!?\"'#_ ", k=random.randint(1, 4)))
        case "one character":
            return random.choice(line)
    return random.choice(
        [random.choice(_FOREIGN), chr(random.choice([*range(0x80, 0xD800), *range(0x1F300, 0x1F700)]))]
    )


def _cut(random: Random, text: str, longest: int) -> str:
    if not text:
        return ""
    start = random.randrange(len(text))
    return text[start : start + random.randint(1, longest)]


@dataclass
class Crowd:
    """What came of one process's queries."""

    asked: Counter[str]
    differences: list[dict[str, Any]]
    search_ms: list[float]
    """Of first pages."""
    scan_ms: list[float]
    without_match: int = 0
    compared_whole: int = 0
    turns_compared: int = 0


def _ask_crowd(sender: Connection, corpus: Path, data_dir: Path, settings: Settings, queries: int, seed: str) -> None:
    random = Random(seed)
    scan = Scan(turns_in_time(corpus, data_dir))
    archive = Archive.open(settings)
    crowd = Crowd(Counter(), [], [], [])
    for _ in range(queries):
        kind, text = random_query(random, scan)
        crowd.asked[kind] += 1
        order, full = random.choice(["newest", "oldest"]), random.random() < 0.5
        started = time.perf_counter()
        expected = scan.find(text, full=full)
        crowd.scan_ms.append((time.perf_counter() - started) * 1000)
        if order == "newest":
            expected.reverse()
        crowd.without_match += not expected
        is_few = len(expected) <= PAGES * MAX_SEARCH_LIMIT
        pages = PAGES + 1 if is_few else PAGES if random.randrange(WHOLE_WALK) == 0 else 1
        crowd.compared_whole += is_few
        arguments = {"query": text, "project": "*", "order": order, "full": full, **ALL_OF_THEM}
        try:
            found, has_more = _walk(archive, arguments, pages, crowd.search_ms)
        except TurndexError as refused:
            crowd.differences.append({**arguments, "refused": str(refused)})
            continue
        wanted = expected if is_few else expected[: pages * MAX_SEARCH_LIMIT]
        crowd.turns_compared += len(wanted)
        if found != wanted or has_more == is_few:
            crowd.differences.append(_difference(arguments, found, wanted, has_more=has_more))
    archive.close()
    sender.send(crowd)
    sender.close()


def _walk(archive: Archive, arguments: dict[str, Any], pages: int, search_ms: list[float]) -> tuple[list[Turn], bool]:
    """The turns of up to so many pages, and whether there are more."""
    found: list[Turn] = []
    cursor: str | None = None
    for page in range(pages):
        request = SearchRequest.read({**arguments, "cursor": cursor})
        started = time.perf_counter()
        answer = archive.search(request, Caller())
        if page == 0:
            search_ms.append((time.perf_counter() - started) * 1000)
        found += [(hit.session_id, hit.turn) for hit in answer.hits]
        cursor = answer.cursor
        if cursor is None:
            break
    return found, cursor is not None


def _difference(arguments: dict[str, Any], found: list[Turn], wanted: list[Turn], *, has_more: bool) -> dict[str, Any]:
    return {
        **arguments,
        "missed": [f"{key}:{turn}" for key, turn in wanted if (key, turn) not in found][:MAX_SHOWN],
        "invented": [f"{key}:{turn}" for key, turn in found if (key, turn) not in wanted][:MAX_SHOWN],
        "found": len(found),
        "expected": len(wanted),
        "more": has_more,
    }
