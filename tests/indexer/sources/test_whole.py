import json
from pathlib import Path

import pytest

from indexer.sources import whole
from indexer.sources.base import Append, Part, SessionFacts, Skipped, Unreadable, Unsettled
from indexer.sources.whole import Document, Turn, parts_of, read_document
from schemas.items import Item, Kind
from tests.indexer.sources.model import StoredSession, through_json

FACTS = SessionFacts("k", "k", Path("/home/a/kettle"), "A title")
NEVER_MS = 10**9


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"title": "Kettle", "messages": [1, 2]}))
    return path


def read(path: Path, settle_ms: int = 0) -> Document:
    document = read_document(path, None, list_key="messages", settle_ms=settle_ms)
    assert document is not None
    return document


def said(*texts: str) -> list[Item]:
    return [Item(Kind.AGENT, text=text) for text in texts]


def parts(path: Path, *turns: Turn) -> list[Part]:
    return list(parts_of(read(path), FACTS, turns, [Skipped("odd")], {"runs": True}))


def test_a_document_is_read_until_it_is_known(path: Path) -> None:
    assert read(path).fields == {"title": "Kettle", "messages": [1, 2]}
    (part,) = parts(path, Turn(7, said("a")))
    assert part.checkpoint["runs"] is True
    since = through_json(part.checkpoint)
    assert read_document(path, since, list_key="messages", settle_ms=0) is None
    path.write_text('{"messages": []}')
    assert read_document(path, since, list_key="messages", settle_ms=0) is not None


@pytest.mark.parametrize(
    "raw", [b"", b" \n", b'{"messages": [', b'{"messages": [{}', b"[]", b"{}", b'{"messages": {}}']
)
def test_what_is_no_document_says_nothing_while_it_is_fresh_and_why_once_it_is_at_rest(path: Path, raw: bytes) -> None:
    path.write_bytes(raw)
    with pytest.raises(Unsettled):
        read(path, NEVER_MS)
    with pytest.raises(Unreadable):
        read(path)


def test_a_document_is_told_whole_each_time(path: Path) -> None:
    session = StoredSession()
    session.apply_all(parts(path, Turn(7, said("a", "b"), "m1"), Turn(8, [], is_copy=True), Turn(9, said("c"))))
    assert session.texts == [["a", "b"], [], ["c"]]
    session.apply_all(parts(path, Turn(7, said("a"), "m1"), Turn(8)))
    assert session.texts == [["a"], []]
    assert session.reasons == [(None, "odd")]
    (part,) = parts(path, Turn(7, said("a"), "m1"), Turn(8, [], is_copy=True))
    assert part.changes == (
        Append(1, 7, 0, tuple(said("a")), is_whole=True, origin="m1"),
        Append(2, 8, 0, (), is_whole=True, is_copy=True),
    )


def test_only_the_last_part_says_that_the_document_was_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "PART_CHARS", 2)
    found = parts(path, Turn(7, said("a", "b", "c")), Turn(8, said("d")))
    assert [part.turns for part in found] == [None, None, 2]
    for part in found[:-1]:
        assert read_document(path, through_json(part.checkpoint), list_key="messages", settle_ms=0) is not None
    session = StoredSession()
    session.apply_all(found)
    assert session.texts == [["a", "b", "c"], ["d"]]
