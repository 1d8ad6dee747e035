"""Agents at work: transcripts that are written in every way that happens, without a pause."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from schemas.times import iso_utc
from tests.indexer.archives import FIRST_STAMP, Transcripts, line_of, user

WORDS = ["parser", "Span", "off", "by-one", "=>", "错误", "é", "naïve", "-7", "range", "x" * 70, "Straße", "🎉"]
QUERIES = ["parser", "arse", "r s", "=>", "误", "é", "x" * 40, "off by-one", "STRASSE", "straße", "🎉", "-7"]

_PAUSE_SECONDS = 0.003


def random_text(random: Random, words: int = 12) -> str:
    return "".join(random.choice(WORDS) + random.choice(" \n  ") for _ in range(random.randint(1, words)))


class TurnFileAgent:
    """Appends to a turn file, mostly whole lines; now and then moves it, or starts it over with fewer turns."""

    def __init__(self, random: Random, transcripts: Transcripts, name: str, project: Path) -> None:
        self._random = random
        self._turn = 0
        self._open: list[str] = []
        self._moves = 0
        self._name = name
        started = {"at": iso_utc(FIRST_STAMP), "project": str(project), "title": f"Session {name}"}
        self.path = transcripts.turn_file(name, **started)

    def write(self) -> None:
        random = self._random
        roll = random.random()
        if roll < 0.02:
            self._moves += 1
            self.path = self.path.rename(self.path.with_name(f"{self._name}-{self._moves}.turns.jsonl"))
        elif roll < 0.05:
            self._start_over()
        else:
            raw = b"".join(line_of(self._line()) for _ in range(random.randint(1, 4)))
            cut = random.randint(0, len(raw)) if random.random() < 0.3 else len(raw)
            with self.path.open("ab", buffering=0) as file:
                file.write(raw[:cut])
                if cut < len(raw):
                    file.write(raw[cut:])

    def _start_over(self) -> None:
        lines = self.path.read_bytes().splitlines(keepends=True)
        kept = lines[: self._random.randint(1, len(lines))]
        self._turn = sum(b'"type": "user"' in line for line in kept)
        self._open.clear()
        if not self._turn:
            kept = kept[:1]
        if self._random.random() < 0.5:
            other = self.path.with_suffix(".new")
            other.write_bytes(b"".join(kept))
            other.rename(self.path)
        else:
            self.path.write_bytes(b"".join(kept))

    def _line(self) -> dict[str, Any]:
        random = self._random
        roll = random.random()
        if roll < 0.3 or not self._turn:
            self._turn += 1
            # Its time follows from its number: of a turn that was replaced by another one the first time stays.
            return user(random_text(random), iso_utc(FIRST_STAMP + self._turn * 1000))
        if roll < 0.5:
            return {"type": "agent", "text": random_text(random, 12 if random.random() < 0.9 else 3000)}
        if roll < 0.6:
            return {"type": "thinking", "text": random_text(random)}
        if roll < 0.7 and self._open:
            id_ = self._open.pop(random.randrange(len(self._open)))
            return {"type": "tool", "id": id_, "status": "ok", "output": random_text(random, 200)}
        if roll < 0.95:
            id_ = f"t{random.getrandbits(60)}"
            self._open.append(id_)
            return {"type": "tool", "id": id_, "label": random_text(random, 3), "input": random_text(random)}
        return {"type": "title", "text": f"Title {random.randrange(100)}"}


class RecordAgent:
    """Rewrites a Cydonia record over itself, in pieces, with items that come, change and go."""

    def __init__(self, random: Random, project: Path, stamp: int) -> None:
        self._random = random
        self.path = project / ".cydonia" / "sessions" / f"{stamp}.json"
        self._items: list[dict[str, Any]] = []
        self.write()

    def write(self) -> None:
        random, items = self._random, self._items
        roll = random.random()
        if roll < 0.1 and items:
            items[random.randrange(len(items))] = {"Agent": random_text(random)}
        elif roll < 0.15:
            del items[random.randint(0, len(items)) :]
        elif roll < 0.2 and items:
            items[-1] = {"Thinking": {"text": random_text(random, 2000), "done": True}}
        items.append({random.choice(["User", "Agent", "Agent"]): random_text(random)})
        items.append({"Tool": {"id": "t", "label": "make", "status": "Success", "output": random_text(random, 40)}})
        self._rewrite()

    def _rewrite(self) -> None:
        record = {"agent": "Claude Agent", "title": f"Title {self._random.randrange(100)}", "items": self._items}
        raw = json.dumps(record, indent=2, ensure_ascii=False).encode()
        cut = self._random.randint(0, len(raw))
        with self.path.open("wb", buffering=0) as file:
            file.write(raw[:cut])
            file.write(raw[cut:])


@contextmanager
def at_work(random: Random, agents: list[TurnFileAgent | RecordAgent]) -> Iterator[None]:
    """Have them write one after the other, in any order, until the block ends; then all that they wrote is whole."""
    is_over = threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            while not is_over.wait(_PAUSE_SECONDS):
                random.choice(agents).write()
        except BaseException as error:
            failures.append(error)
            raise

    thread = threading.Thread(target=work, name="agents at work")
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
    assert not failures
