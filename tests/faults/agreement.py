"""Whether files, store and index agree: what must be true after anything that may happen."""

import sqlite3
from contextlib import closing
from itertools import product

from indexer.sources import sources_for
from indexer.store.schema import STORE_FILE
from schemas.folding import fold
from schemas.items import CONVERSATION_KINDS, Item, Kind
from schemas.settings import Settings
from search_api.archive import Archive
from tests.indexer.archives import Kept, all_hits, contents, sessions_of
from tests.indexer.sources.model import read_whole


def check_agreement(settings: Settings, queries: list[str]) -> None:
    """Check that the store has what the files say, and that searches answer what the store has.

    Everything is to be at rest, and indexed. Deleted sessions are not in the files, and only searched.
    """
    with closing(sqlite3.connect(settings.data_dir / STORE_FILE)) as store:
        assert store.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    kept = contents(settings)
    sessions = sessions_of(settings)
    stored = {
        (sessions[handle].source, str(sessions[handle].project.path), sessions[handle].session_id): _without_handle(one)
        for handle, one in kept.items()
        if not one.is_deleted
    }
    assert len(stored) == sum(not one.is_deleted for one in kept.values())
    assert stored == said_by_files(settings)
    with closing(Archive.open(settings)) as archive:
        for query, full in product(queries, (False, True)):
            expected = sorted(
                (sessions[handle].session_id, number)
                for handle, one in kept.items()
                for number, (_, items) in enumerate(one.turns, start=1)
                if any(has_line(item, query, full=full) for _, item in items)
            )
            found = all_hits(archive, query, full=full)
            assert sorted((hit.session_id, hit.turn) for hit in found) == expected, (query, full)


def _without_handle(one: Kept) -> tuple[str, bool, list[tuple[int, list[Item]]]]:
    return one.title, one.is_archived, [(at_ms, [item for _, item in items]) for at_ms, items in one.turns]


def said_by_files(settings: Settings) -> dict[tuple[str, str, str], tuple[str, bool, list[tuple[int, list[Item]]]]]:
    """What the transcripts say now, each read from its beginning, by source, project and session id."""
    said = {}
    for source in sources_for(settings):
        for root in source.roots():
            for transcript in source.transcripts(root):
                session = read_whole(source, transcript.path, root=root)
                assert session.facts is not None
                place = (source.name, str(session.facts.project), session.facts.session_id)
                turns = [(turn.at_ms, [_as_stored(item) for item in turn.items]) for turn in session.turns]
                said[place] = (session.facts.title, session.facts.is_archived, turns)
    return said


def _as_stored(item: Item) -> Item:
    """An empty text of a tool's detail says no more than none."""
    if item.kind is not Kind.TOOL or item.input or item.output:
        return item
    return Item(item.kind, label=item.label, status=item.status, at_ms=item.at_ms)


def has_line(item: Item, query: str, *, full: bool) -> bool:
    """Whether a line that is looked through has the query, of texts with plain line ends."""
    texts = [item.text, item.label] if item.kind in CONVERSATION_KINDS else []
    if full:
        texts = [item.text, item.label, item.input, item.output, item.command]
    needle = fold(query)
    return any(needle in line for text in texts if text for line in fold(text).split("\n"))
