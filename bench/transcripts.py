"""The sessions of an archive, read back from its files without turndex: what the comparison holds to be true."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from schemas.times import to_ms

Json: TypeAlias = dict[str, Any]

OTHER_AGENTS = ("claude", "codex")
"""Folders of an archive."""


@dataclass(frozen=True)
class Transcript:
    """One session; its items are as a turn file has them."""

    path: Path
    key: str
    """The source's own id, which answers give as `session_id`."""
    project: str
    title: str
    started_ms: int
    turns: list[list[Json]]
    turn_ms: list[int]
    """When each turn started, Unix milliseconds."""

    def part(self, start: int, end: int) -> "Transcript":
        """The same with some of its turns only."""
        return replace(self, turns=self.turns[start:end], turn_ms=self.turn_ms[start:end])


def has_other_agents(archive: Path) -> bool:
    """Whether it has transcripts of other agents, which are written and not read back here."""
    return any((archive / name).is_dir() for name in OTHER_AGENTS)


def transcripts(archive: Path) -> Iterator[Transcript]:
    """Every session of an archive that `bench.corpus` made, oldest first, one at a time.

    Raises:
        SystemExit: it has transcripts of other agents, which are written and not read back.
    """
    if has_other_agents(archive):
        raise SystemExit(f"{archive} has transcripts of other agents, which only turndex reads: they are not compared")
    files = [*archive.glob("work/*/.cydonia/sessions/*.json"), *archive.glob("turns/*.turns.jsonl")]
    for _, path in sorted((_started(path), path) for path in files):
        yield _from_record(path) if path.suffix == ".json" else _from_turn_file(path)


def texts_of(item: Json) -> Iterator[str]:
    """The texts of an item that a search through everything looks at."""
    for name in ("text", "label", "command", "output"):
        if item.get(name):
            yield item[name]


def _started(path: Path) -> int:
    """Unix milliseconds: a record is named by them, a turn file says them in its first line."""
    if path.suffix == ".json":
        return int(path.stem)
    with path.open("rb") as file:
        return _at_ms(orjson.loads(file.readline()))


def _at_ms(line: Json) -> int:
    return to_ms(datetime.fromisoformat(line["at"]))


def _from_turn_file(path: Path) -> Transcript:
    header, *items = [orjson.loads(line) for line in path.read_bytes().split(b"\n") if line]
    turns: list[list[Json]] = []
    for item in items:
        if item["type"] == "user":
            turns.append([])
        turns[-1].append(item)
    turn_ms = [_at_ms(turn[0]) for turn in turns]
    return Transcript(path, header["id"], header["project"], header["title"], _at_ms(header), turns, turn_ms)


def _from_record(path: Path) -> Transcript:
    record = orjson.loads(path.read_bytes())
    turns: list[list[Json]] = []
    turn_ms: list[int] = []
    for index, tagged in enumerate(record["items"]):
        item = _item(tagged)
        if item["type"] == "user":
            turns.append([])
            turn_ms.append(record["sent_at"][str(index)] * 1000)
        turns[-1].append(item)
    project = str(path.parent.parent.parent)
    return Transcript(path, path.stem, project, record["title"], int(path.stem), turns, turn_ms)


def _item(tagged: Json) -> Json:
    ((tag, content),) = tagged.items()
    match tag:
        case "Tool":
            status = "ok" if content["status"] == "Success" else "failed"
            return {"type": "tool", **content, "status": status}
        case "Thinking" | "Notice" | "Process":
            return {"type": tag.lower(), **content}
    return {"type": tag.lower(), "text": content}
