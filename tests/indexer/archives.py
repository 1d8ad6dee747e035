"""Transcripts that a test writes, the settings that index them, and what the store and a search then have of them."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexer.pipeline import Pipeline
from indexer.service import index_once
from indexer.store import chunks
from indexer.store.reader import Condition, StoreReader
from indexer.store.reader import Session as StoredSession
from schemas.answers import Hit, StatusAnswer
from schemas.items import Item, Layer
from schemas.requests import MAX_SEARCH_LIMIT, SearchRequest
from schemas.settings import Settings, load_settings
from search_api.archive import Archive
from search_api.caller import Caller

FIRST_STAMP = 1_790_000_000_000


class Transcripts:
    """A folder of turn files, some Cydonia projects, and a state file that lists these."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.turns = folder / "turns"
        self.turns.mkdir(parents=True)
        self.state_file = folder / "state.toml"
        self._listed: list[Path] = []
        self.list_projects([])

    def settings(self, data: str = "data", **flags: Any) -> Settings:
        """Settings that find nothing else; `data` names the data directory."""
        sources = {"cydonia": {"state_file": str(self.state_file)}, "turn_file": {"folders": [str(self.turns)]}}
        return load_settings(
            flags={"discover": False, "data_dir": str(self.folder / data), "sources": sources, **flags}
        )

    def project(self, name: str) -> Path:
        """A Cydonia project that the state file lists."""
        path = self.folder / "work" / name
        (path / ".cydonia" / "sessions").mkdir(parents=True)
        self.list_projects([*self._listed, path])
        return path

    def list_projects(self, projects: Sequence[Path]) -> None:
        self._listed = list(projects)
        self.state_file.write_text(f"projects = {json.dumps([str(path) for path in projects])}\n", encoding="utf-8")

    def turn_file(self, name: str, *lines: dict[str, Any] | bytes, id: str | None = None, **head: Any) -> Path:
        """A new turn file; its session is in the project `/home/a/<name>` unless `project` says otherwise."""
        path = self.turns / f"{name}.turns.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        first = {"type": "session", "version": 1, "id": id or name, "project": f"/home/a/{name}", **head}
        path.write_bytes(b"".join(map(line_of, (first, *lines))))
        return path


def line_of(line: dict[str, Any] | bytes) -> bytes:
    return line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"


def append(path: Path, *lines: dict[str, Any] | bytes) -> None:
    with path.open("ab") as file:
        file.write(b"".join(map(line_of, lines)))


def user(text: str, at: str | None = None) -> dict[str, Any]:
    return {"type": "user", "text": text, **({} if at is None else {"at": at})}


def agent(text: str) -> dict[str, Any]:
    return {"type": "agent", "text": text}


def write_record(project: Path, stem: str, *texts: str, **more: Any) -> Path:
    """A Cydonia record in which a user says the texts, each in a turn of its own; `items` says otherwise."""
    path = project / ".cydonia" / "sessions" / f"{stem}.json"
    record = {"id": stem, "agent": "Claude Agent", "title": f"Session {stem}", "updated": 1_790_000_500}
    path.write_text(json.dumps({**record, "items": [{"User": text} for text in texts], **more}), encoding="utf-8")
    return path


@dataclass(frozen=True)
class Kept:
    """A session as the store has it."""

    title: str
    is_archived: bool
    is_deleted: bool
    turns: list[tuple[int, list[tuple[int, Item]]]]
    """Each turn's time, and its items with their indexes."""


def index(settings: Settings) -> None:
    index_once(settings, lambda _: None)


def read_heads(pipeline: Pipeline) -> None:
    """Have what a look found known and numbered, and nothing of its content read."""
    while pipeline.are_heads_due:
        assert pipeline.step()


@contextmanager
def reading(settings: Settings) -> Iterator[StoreReader]:
    with closing(StoreReader(settings.data_dir)) as store, store.snapshot():
        yield store


def sessions_of(settings: Settings) -> dict[str, StoredSession]:
    """All sessions by their handle, which is their identity."""
    with reading(settings) as store:
        return {session.handle: session for session in store.sessions(Condition(), "ORDER BY s.id")}


def session_of(settings: Settings, session_id: str) -> StoredSession:
    """The one session with this id."""
    (found,) = [one for one in sessions_of(settings).values() if one.session_id == session_id]
    return found


def contents(settings: Settings) -> dict[str, Kept]:
    """Everything that the store has, by handle."""
    with reading(settings) as store:
        return {one.handle: kept(store, one) for one in store.sessions(Condition(), "ORDER BY s.id")}


def kept(store: StoreReader, session: StoredSession) -> Kept:
    turns = []
    for at_ms, _, turn in store.turns_past((-1, -1, -1), "oldest", 2**31, session.id):
        rows: dict[Layer, list[chunks.Row]] = {layer: [] for layer in Layer}
        for body in store.bodies_of_turn(session.id, turn, list(Layer)):
            rows[body.layer] += chunks.unpack(body.body)
        turns.append((turn, at_ms, chunks.merged(rows[Layer.CONVERSATION], rows[Layer.DETAIL])))
    turns.sort(key=lambda row: row[0])
    assert [turn for turn, *_ in turns] == list(range(1, session.turns + 1))
    return Kept(session.title, session.is_archived, session.is_deleted, [(at_ms, items) for _, at_ms, items in turns])


def texts_of(settings: Settings, session_id: str) -> list[list[str | None]]:
    """For each turn of a session what its items say, in a word: text, label or command."""
    stored = contents(settings)[session_of(settings, session_id).handle]
    return [[item.text or item.label or item.command for _, item in items] for _, items in stored.turns]


def hits(settings: Settings, query: str, **arguments: Any) -> list[Hit]:
    """All hits of a search, in order, page by page."""
    with closing(Archive.open(settings)) as archive:
        return all_hits(archive, query, **arguments)


def all_hits(archive: Archive, query: str, **arguments: Any) -> list[Hit]:
    found: list[Hit] = []
    page: dict[str, Any] = {"query": query, "limit": MAX_SEARCH_LIMIT, **arguments}
    while True:
        answer = archive.search(SearchRequest.read(page), Caller())
        found += answer.hits
        if answer.cursor is None:
            return found
        page["cursor"] = answer.cursor


def found_in(settings: Settings, query: str, **arguments: Any) -> list[tuple[str, int]]:
    """Session id and turn of all hits of a search, in order."""
    return [(hit.session_id, hit.turn) for hit in hits(settings, query, **arguments)]


def status_of(settings: Settings) -> StatusAnswer:
    with closing(Archive.open(settings)) as archive:
        return archive.status()
