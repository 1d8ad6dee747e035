"""The turns of an archive in the order of time, read without the index: what searches are compared with.

Those of our own formats are read back from their files. Of other agents' formats there is one reader, turndex's
own, so that their turns are taken from the store as it has them: what is compared then is the search, not the
reading of transcripts.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from bench.transcripts import has_other_agents, transcripts
from indexer.store import chunks
from indexer.store.reader import Condition, StoreReader
from schemas.items import Item, Layer

Json: TypeAlias = dict[str, Any]

_BATCH = 1_000
_TEXTS = ("text", "label", "command", "input", "output")


@dataclass(frozen=True, slots=True)
class Turn:
    session_id: str
    number: int
    items: list[Json]
    """As a turn file has them."""


def turns_in_time(corpus: Path, data_dir: Path) -> Iterator[Turn]:
    """Every turn of an archive that is indexed in `data_dir`, the oldest first."""
    return _of_store(data_dir) if has_other_agents(corpus) else _of_files(corpus)


def _of_files(corpus: Path) -> Iterator[Turn]:
    last_ms = 0
    for transcript in transcripts(corpus):
        for number, (turn, at_ms) in enumerate(zip(transcript.turns, transcript.turn_ms, strict=True), 1):
            # So that the order of sessions is that of times; the generator gives no two turns the same.
            assert at_ms > last_ms, f"{transcript.key}:{number} is not later than the turn before"
            last_ms = at_ms
            yield Turn(transcript.key, number, turn)


def _of_store(data_dir: Path) -> Iterator[Turn]:
    with closing(StoreReader(data_dir)) as store, store.snapshot():
        ids = {session.id: session.session_id for session in store.sessions(Condition())}
        key = (-1, -1, -1)
        while keys := store.turns_past(key, "oldest", _BATCH):
            for _, session, number in keys:
                rows: dict[Layer, list[chunks.Row]] = {layer: [] for layer in Layer}
                for body in store.bodies_of_turn(session, number, list(Layer)):
                    rows[body.layer] += chunks.unpack(body.body)
                items = chunks.merged(rows[Layer.CONVERSATION], rows[Layer.DETAIL])
                yield Turn(ids[session], number, [_json(item) for _, item in items])
            key = keys[-1]


def _json(item: Item) -> Json:
    return {"type": item.kind.value} | {name: text for name in _TEXTS if (text := getattr(item, name)) is not None}
