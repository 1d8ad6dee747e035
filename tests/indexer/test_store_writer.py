import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.sources.base import Append, Part, Patch, SessionFacts
from indexer.store import chunks
from indexer.store.reader import Condition, StoreReader
from indexer.store.reader import Session as StoredSession
from indexer.store.schema import STORE_FILE
from indexer.store.writer import StoreWriter
from schemas.items import Item, Kind, Status
from search_api.naming import session_with_number
from tests.indexer.archives import Kept, kept
from tests.indexer.sources.model import StoredSession as Model

LIVE = 1
KETTLE = Path("/home/a/kettle")
FACTS = SessionFacts(key="one", session_id="one", project=KETTLE, title="One", started_ms=1000)
SIZES = (0, 10, 300, 3_000, 9_000, 20_000)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreWriter]:
    with closing(StoreWriter(tmp_path)) as store:
        yield store


def said(text: str, kind: Kind = Kind.AGENT) -> Item:
    return Item(kind, text=text)


def tool(**fields: Any) -> Item:
    return Item(Kind.TOOL, **{"label": "make", "status": Status.RUNNING, **fields})


def put(store: StoreWriter, facts: SessionFacts = FACTS, *, source: str = "turn-file", key: str | None = None) -> int:
    key = facts.key if key is None else key
    with store.transaction():
        return store.put_session(source, facts, store.session_with_key(source, key), key=facts.key, lane=LIVE)


def apply(store: StoreWriter, session: int, *changes: Append | Patch, turns: int | None = None) -> int:
    """Chunks written."""
    with store.transaction():
        return store.apply(session, Part(FACTS, changes, {}, turns=turns), LIVE)


def read(store: StoreWriter, session: int) -> Kept:
    path = Path(store.connection.execute("PRAGMA database_list").fetchone()[2]).parent
    with closing(StoreReader(path)) as reader, reader.snapshot():
        (found,) = reader.sessions(Condition("s.id = ?", (session,)))
        return kept(reader, found)


def texts(store: StoreWriter, session: int) -> list[list[str | None]]:
    return [[item.text or item.label for _, item in items] for _, items in read(store, session).turns]


def layout(store: StoreWriter, session: int) -> list[tuple[int, int, int, int]]:
    """Turn, layer, first and last item of each chunk."""
    return store.connection.execute(
        "SELECT turn, layer, first, last FROM chunks WHERE session = ? ORDER BY turn, layer, first", (session,)
    ).fetchall()


def written(store: StoreWriter, session: int) -> dict[tuple[int, int, int], int]:
    """The sequence number of the latest write of each chunk, by turn, layer and first item."""
    rows = store.connection.execute("SELECT turn, layer, first, sequence FROM chunks WHERE session = ?", (session,))
    return {(turn, layer, first): sequence for turn, layer, first, sequence in rows}


# What is written.


def test_only_the_open_chunk_is_written_when_a_turn_grows(store: StoreWriter) -> None:
    session = put(store)
    apply(store, session, Append(1, 1000, 0, tuple(said("x" * 1000) for _ in range(40))))
    before = written(store, session)
    assert len(before) == 3
    assert apply(store, session, Append(1, 1000, 40, (said("more"),))) == 1
    after = written(store, session)
    assert [place for place in after if after[place] != before.get(place)] == [(1, 0, 34)]


def test_a_closed_chunk_is_not_opened_again_by_what_follows_it(store: StoreWriter) -> None:
    session = put(store)
    apply(store, session, Append(1, 1000, 0, (said("x" * 20_000),)))
    before = written(store, session)
    apply(store, session, Append(1, 1000, 1, (said("more"),)))
    assert written(store, session).items() > before.items()
    assert layout(store, session) == [(1, 0, 0, 0), (1, 0, 1, 1)]


def test_a_turn_that_grows_item_by_item_costs_what_is_appended_and_not_its_square(store: StoreWriter) -> None:
    session = put(store)
    sizes = 0
    for index in range(600):
        assert apply(store, session, Append(1, 1000, index, (said(f"{index} " + "x" * 100),))) == 1
        sizes += store.connection.execute("SELECT size FROM chunks ORDER BY sequence DESC LIMIT 1").fetchone()[0]
    # Each write is of one chunk of 16 KB at most, 8 KB on average.
    assert sizes < 600 * 10_000
    assert len(layout(store, session)) < 6


def test_a_rewrite_writes_what_differs_and_nothing_else(store: StoreWriter) -> None:
    session = put(store)
    items = [said(f"{index} " + "x" * 1000) for index in range(60)]
    whole = Append(1, 1000, 0, tuple(items), is_whole=True)
    apply(store, session, whole)
    assert apply(store, session, whole) == 0
    items[30] = said("changed, and much longer than before: " + "y" * 40_000)
    before = written(store, session)
    apply(store, session, replace(whole, items=tuple(items)))
    after = written(store, session)
    assert [place for place in before if after[place] != before[place]] == [(1, 0, 17)]
    assert texts(store, session) == [[item.text for item in items]]


def test_completing_a_tool_writes_its_two_chunks(store: StoreWriter) -> None:
    session = put(store)
    others = tuple(said("x" * 1000) for _ in range(30))
    apply(store, session, Append(1, 1000, 0, (*others, tool(input="make all"), *others)))
    assert apply(store, session, Patch(1, 30, status=Status.OK, output="done")) == 2
    assert read(store, session).turns[0][1][30] == (30, tool(status=Status.OK, input="make all", output="done"))


def test_output_that_comes_to_an_early_tool_stands_before_what_later_ones_have(store: StoreWriter) -> None:
    session = put(store)
    late = tuple(tool(output="z" * 9_000) for _ in range(4))
    apply(store, session, Append(1, 1000, 0, (tool(), tool(), *late)))
    apply(store, session, Patch(1, 1, output="second"))
    apply(store, session, Patch(1, 0, output="first"))
    items = read(store, session).turns[0][1]
    assert [item.output for _, item in items] == ["first", "second", *["z" * 9_000] * 4]


def test_a_patch_of_what_is_no_tool_any_more_changes_nothing(store: StoreWriter) -> None:
    session = put(store)
    apply(store, session, Append(1, 1000, 0, (said("hello"),)))
    assert apply(store, session, Patch(1, 0, output="x"), Patch(1, 7, output="x"), Patch(2, 0, output="x")) == 0
    assert texts(store, session) == [["hello"]]


def test_an_item_that_changes_its_layer_is_in_the_new_one_alone(store: StoreWriter) -> None:
    session = put(store)
    apply(store, session, Append(1, 1000, 0, (said("a"), said("b"), said("c"))))
    apply(store, session, Append(1, 1000, 1, (said("b", Kind.THINKING),)))
    assert layout(store, session) == [(1, 0, 0, 2), (1, 1, 1, 1)]
    assert texts(store, session) == [["a", "b", "c"]]


def test_turns_beyond_the_last_are_removed_and_the_index_is_told(store: StoreWriter) -> None:
    session = put(store)
    apply(store, session, *(Append(turn, 1000, 0, (said("x"), tool(output="y"))) for turn in range(1, 6)))
    gone = [row[0] for row in store.connection.execute("SELECT id FROM chunks WHERE turn > 2")]
    apply(store, session, turns=2)
    assert [turn for turn, *_ in layout(store, session)] == [1, 1, 2, 2]
    assert sorted(store.contents.removed_chunks()) == sorted(gone)
    assert store.connection.execute("SELECT count(*) FROM bodies").fetchone() == (4,)


def test_the_time_of_a_turn_is_the_one_it_first_got(store: StoreWriter) -> None:
    session = put(store)
    apply(store, session, Append(1, 1000, 0, (said("a"),)), Append(2, 2000, 0, (said("b"),)))
    apply(store, session, Append(1, 7000, 0, (said("a, changed"),), is_whole=True), Append(2, 8000, 1, (said("c"),)))
    assert [at_ms for at_ms, _ in read(store, session).turns] == [1000, 2000]
    row = store.connection.execute("SELECT turns, first_at, last_at FROM sessions").fetchone()
    assert row == (2, 1000, 2000)


def test_a_turn_without_items_is_a_turn(store: StoreWriter) -> None:
    session = put(store)
    apply(store, session, Append(1, 1000, 0, (), is_whole=True), Append(2, 2000, 0, (said("b"),)))
    assert texts(store, session) == [[], ["b"]]


# Against the model.


@st.composite
def histories(draw: st.DrawFn) -> list[Part]:
    """What a source may send, one part after the other."""
    turns: list[list[Item]] = []
    parts = []
    for _ in range(draw(st.integers(1, 12))):
        changes: list[Append | Patch] = []
        for _ in range(draw(st.integers(1, 3))):
            change = draw(_changes(turns))
            changes.append(change)
            _follow(turns, change)
        keep = draw(st.integers(1, len(turns))) if draw(st.integers(0, 9)) == 0 else None
        if keep is not None:
            del turns[keep:]
        parts.append(Part(FACTS, changes, {}, turns=keep))
    return parts


def _follow(turns: list[list[Item]], change: Append | Patch) -> None:
    if isinstance(change, Append):
        if change.turn > len(turns):
            turns.append([])
        items = turns[change.turn - 1]
        items[change.first : None if change.is_whole else change.first + len(change.items)] = change.items


@st.composite
def _changes(draw: st.DrawFn, turns: Sequence[Sequence[Item]]) -> Append | Patch:
    tools = [(turn, at) for turn, items in enumerate(turns, 1) for at, item in enumerate(items) if item.kind == "tool"]
    kind = draw(st.sampled_from(["new turn", "grow", "grow", "rewrite", "overwrite", "patch", "patch"]))
    if kind == "patch" and tools:
        turn, at = draw(st.sampled_from(tools))
        return Patch(turn, at, draw(_maybe_text), draw(st.none() | st.sampled_from(Status)), draw(_text), draw(_text))
    items = tuple(draw(st.lists(_items, max_size=6)))
    if kind == "new turn" or not turns:
        return Append(len(turns) + 1, draw(st.integers(0, 10**6)), 0, items, is_whole=draw(st.booleans()))
    turn = len(turns) if kind == "grow" else draw(st.integers(1, len(turns)))
    length = len(turns[turn - 1])
    first = {"rewrite": 0, "grow": length}.get(kind, draw(st.integers(0, length)))
    return Append(turn, draw(st.integers(0, 10**6)), first, items, is_whole=kind == "rewrite")


_text = st.none() | st.builds(lambda size, char: char * size, st.sampled_from(SIZES[1:]), st.sampled_from("xyz"))
_maybe_text = st.none() | st.sampled_from(["make", "test"])
_items = st.one_of(
    st.builds(
        lambda kind, size, char: Item(kind, text=char * size),
        st.sampled_from([Kind.USER, Kind.AGENT, Kind.THINKING]),
        st.sampled_from(SIZES),
        st.sampled_from("abc"),
    ),
    st.builds(Item, st.just(Kind.TOOL), label=_maybe_text, status=st.sampled_from(Status), input=_text, output=_text),
    st.builds(Item, st.just(Kind.PROCESS), command=_maybe_text, output=_text),
)


@settings(max_examples=120)
@given(histories())
def test_any_history_gives_the_items_that_it_tells_of(parts: list[Part]) -> None:
    model = Model()
    with TemporaryDirectory() as folder, closing(StoreWriter(Path(folder))) as store:
        session = put(store)
        for part in parts:
            model.apply(part)
            with store.transaction():
                store.apply(session, part, LIVE)
            turns = read(store, session).turns
            assert [list(enumerate(turn.items)) for turn in model.turns] == [items for _, items in turns]
            assert [turn.at_ms for turn in model.turns] == [at_ms for at_ms, _ in turns]
            _check_layout(store)


def _check_layout(store: StoreWriter) -> None:
    """Chunks of a turn's layer follow each other, and are what their rows say of them."""
    past: dict[tuple[int, int], int] = {}
    sequences = []
    for id_, turn, layer, first, last, sequence, size, hash_ in store.connection.execute(
        "SELECT id, turn, layer, first, last, sequence, size, hash FROM chunks ORDER BY turn, layer, first"
    ).fetchall():
        rows = chunks.unpack(store.connection.execute("SELECT body FROM bodies WHERE chunk = ?", (id_,)).fetchone()[0])
        packed = chunks.Packed(rows[0][0], rows[-1][0], orjson.dumps(rows))
        assert (packed.first, packed.last, len(packed.json), packed.hash) == (first, last, size, hash_)
        assert past.get((turn, layer), -1) < first <= last
        past[turn, layer] = last
        sequences.append(sequence)
    assert len(set(sequences)) == len(sequences)


# Sequence numbers.


def test_sequence_numbers_go_on_after_the_latest_chunks_were_removed(tmp_path: Path) -> None:
    with closing(StoreWriter(tmp_path)) as store:
        session = put(store)
        apply(store, session, Append(1, 1000, 0, (said("a"),)), Append(2, 2000, 0, (said("b"),)))
        followed = store.contents.sequence
        with store.transaction():
            store.set_meta("live_position", followed)
        apply(store, session, turns=1)
        with store.transaction():
            store.contents.forget_removed(store.contents.removed_chunks())
    with closing(StoreWriter(tmp_path)) as store:
        apply(store, session, Append(2, 2000, 0, (said("c"),)))
        assert min(sequence for place, sequence in written(store, session).items() if place[0] == 2) > followed


# Transactions.


def test_what_fails_in_the_middle_leaves_nothing_behind(store: StoreWriter) -> None:
    session = put(store)

    def half() -> None:
        with store.transaction():
            store.apply(session, Part(FACTS, [Append(1, 1000, 0, (said("a"),))], {}), LIVE)
            raise KeyError

    with pytest.raises(KeyError):
        half()
    assert texts(store, session) == []


def test_a_full_disk_fails_what_is_written_then_and_nothing_after_it(store: StoreWriter) -> None:
    session = put(store)
    pages = store.connection.execute("PRAGMA page_count").fetchone()[0]
    store.connection.execute(f"PRAGMA max_page_count = {pages}")
    huge = "".join(map(chr, range(0x4E00, 0x9FFF)))
    with pytest.raises(sqlite3.OperationalError, match="full"):
        apply(store, session, Append(1, 1000, 0, (said(huge),)))
    store.connection.execute("PRAGMA max_page_count = 1000000")
    apply(store, session, Append(1, 1000, 0, (said(huge),)))
    assert texts(store, session) == [[huge]]


def test_the_store_is_for_its_owner_alone(store: StoreWriter, tmp_path: Path) -> None:
    put(store)
    assert {path.name for path in tmp_path.iterdir()} >= {STORE_FILE, f"{STORE_FILE}-wal"}
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


# Identity and numbers.


def numbered(tmp_path: Path, number: int, project: Path = KETTLE) -> StoredSession | None:
    with closing(StoreReader(tmp_path)) as reader, reader.snapshot():
        known = reader.project(str(project))
        assert known is not None
        return session_with_number(reader, known, number)


def number_of(store: StoreWriter, session: int) -> int | None:
    row: tuple[int | None] = store.connection.execute("SELECT number FROM sessions WHERE id = ?", (session,)).fetchone()
    return row[0]


def set_registry(store: StoreWriter, entries: dict[int, tuple[str, str | None]], project: Path = KETTLE) -> None:
    with store.transaction():
        store.projects.set_registry(store.projects.key(project), entries, str(entries).encode())


def turn_file(number: int, **fields: Any) -> SessionFacts:
    return replace(FACTS, key=f"key-{number}", session_id=f"id-{number}", **fields)


def record(stem: str, project: Path = KETTLE) -> SessionFacts:
    return SessionFacts(key=f"{project}/{stem}", session_id=stem, project=project, title="A record")


def test_the_same_id_in_two_projects_is_two_sessions_with_handles_of_their_own(store: StoreWriter) -> None:
    first = put(store, record("1790"), source="cydonia")
    second = put(store, record("1790", Path("/home/a/pan")), source="cydonia")
    handles = [row[0] for row in store.connection.execute("SELECT handle FROM sessions")]
    assert first != second
    assert len(set(handles)) == 2


def test_a_handle_follows_from_the_identity_alone(tmp_path: Path) -> None:
    handles = []
    for name, keys in (("a", ["one", "two"]), ("b", ["two", "one"])):
        (tmp_path / name).mkdir()
        with closing(StoreWriter(tmp_path / name)) as store:
            for key in keys:
                put(store, replace(FACTS, key=key))
            handles.append(dict(store.connection.execute("SELECT key, handle FROM sessions").fetchall()))
    assert handles[0] == handles[1]
    assert all(handle[0] == "s" and len(handle) == 13 and int(handle[1:], 16) for handle in handles[0].values())


def test_our_numbers_count_from_1_in_each_project(store: StoreWriter) -> None:
    assert [number_of(store, put(store, turn_file(n))) for n in range(3)] == [1, 2, 3]
    assert number_of(store, put(store, turn_file(7, project=Path("/home/a/pan")))) == 1


@pytest.mark.parametrize("entries", [{}, {7: ("board", "b")}])
def test_our_numbers_count_from_100001_beside_a_registry(
    store: StoreWriter, entries: dict[int, tuple[str, str | None]]
) -> None:
    set_registry(store, entries)
    assert [number_of(store, put(store, turn_file(n))) for n in range(2)] == [100_001, 100_002]


def test_our_numbers_keep_out_of_the_way_of_a_registry_that_came_later(store: StoreWriter) -> None:
    first = put(store, turn_file(0))
    set_registry(store, {7: ("board", "b")})
    assert number_of(store, put(store, turn_file(1))) == 100_001
    assert number_of(store, first) == 1


def test_a_number_of_ours_is_never_given_again(store: StoreWriter) -> None:
    put(store, turn_file(0))
    put(store, replace(turn_file(0), project=Path("/home/a/pan")))
    assert number_of(store, put(store, turn_file(1))) == 2


def test_a_session_that_comes_back_to_a_project_has_the_number_that_it_had_there(
    store: StoreWriter, tmp_path: Path
) -> None:
    first = put(store, turn_file(0))
    put(store, turn_file(1))
    put(store, replace(turn_file(0), project=Path("/home/a/pan")))
    assert number_of(store, first) == 1
    put(store, turn_file(0))
    assert number_of(store, first) == 1
    assert number_of(store, put(store, turn_file(2))) == 3


def test_a_number_that_a_session_had_in_another_project_still_names_it_there(
    store: StoreWriter, tmp_path: Path
) -> None:
    put(store, turn_file(7, project=Path("/home/a/pan")))
    moved = put(store, turn_file(0))
    put(store, turn_file(1))
    put(store, replace(turn_file(0), project=Path("/home/a/pan")))
    assert number_of(store, moved) == 2
    for number, project in ((1, KETTLE), (2, Path("/home/a/pan"))):
        found = numbered(tmp_path, number, project)
        assert found is not None
        assert found.id == moved


def test_a_number_that_a_registry_gave_to_another_session_names_no_session_that_left_the_project(
    store: StoreWriter, tmp_path: Path
) -> None:
    put(store, turn_file(0))
    put(store, replace(turn_file(0), project=Path("/home/a/pan")))
    session = put(store, record("1790"), source="cydonia")
    set_registry(store, {1: ("session", "1790")})
    found = numbered(tmp_path, 1)
    assert found is not None
    assert found.id == session


def test_a_project_that_its_last_session_left_is_closed(store: StoreWriter) -> None:
    def open_projects() -> set[str]:
        return {row[0] for row in store.connection.execute("SELECT name FROM projects WHERE is_open")}

    put(store, turn_file(0))
    put(store, turn_file(1))
    for number, projects in ((0, {"kettle", "pan"}), (1, {"pan"})):
        put(store, replace(turn_file(number), project=Path("/home/a/pan")))
        assert open_projects() == projects
    put(store, turn_file(0))
    assert open_projects() == {"kettle", "pan"}


def test_a_registry_gives_its_numbers_to_sessions_before_and_after(store: StoreWriter) -> None:
    before = put(store, record("1790"), source="cydonia")
    assert number_of(store, before) is None
    set_registry(store, {4: ("session", "1790"), 5: ("session", "1791"), 6: ("article", "1792")})
    after = put(store, record("1791"), source="cydonia")
    none = put(store, record("1792"), source="cydonia")
    assert [number_of(store, session) for session in (before, after, none)] == [4, 5, None]


def test_what_the_registry_says_wins_over_a_number_of_ours(store: StoreWriter, tmp_path: Path) -> None:
    put(store, turn_file(0))
    session = put(store, record("1790"), source="cydonia")
    set_registry(store, {1: ("session", "1790")})
    found = numbered(tmp_path, 1)
    assert found is not None
    assert found.id == session


@pytest.mark.parametrize("later", [{4: ("session", None)}, {}, {5: ("session", "1791")}])
def test_a_number_whose_row_is_gone_names_the_session_that_had_it(
    store: StoreWriter, tmp_path: Path, later: dict[int, tuple[str, str | None]]
) -> None:
    session = put(store, record("1790"), source="cydonia")
    set_registry(store, {4: ("session", "1790")})
    set_registry(store, later)
    found = numbered(tmp_path, 4)
    assert found is not None
    assert found.id == session


def test_a_number_that_the_registry_gave_to_another_session_names_that_one(store: StoreWriter, tmp_path: Path) -> None:
    put(store, record("1790"), source="cydonia")
    set_registry(store, {4: ("session", "1790")})
    other = put(store, record("1791"), source="cydonia")
    set_registry(store, {4: ("session", "1791"), 5: ("session", "1790")})
    found = numbered(tmp_path, 4)
    assert found is not None
    assert found.id == other
