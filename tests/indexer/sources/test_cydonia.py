import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from indexer.sources import whole
from indexer.sources.base import Root, Unreadable, Unsettled
from indexer.sources.cydonia import CydoniaSource
from schemas.items import Item, Kind, Status
from tests.indexer.sources.model import StoredSession, read_on, read_whole, snapshot, transcript_of

STAMP = 1_790_000_000_100


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "work" / "kettle"
    (project / ".cydonia" / "sessions").mkdir(parents=True)
    return project


@pytest.fixture
def source(project: Path) -> CydoniaSource:
    return CydoniaSource(None, [project])


@pytest.fixture
def path(project: Path) -> Path:
    return project / ".cydonia" / "sessions" / f"{STAMP}.json"


def user(text: str) -> dict[str, Any]:
    return {"User": text}


def notice(text: str) -> dict[str, Any]:
    return {"Notice": {"text": text, "failed": False}}


def process(command: str) -> dict[str, Any]:
    return {"Process": {"command": command, "output": ""}}


def write(path: Path, *items: Any, **more: Any) -> None:
    record = {"id": path.stem, "agent": "Claude Agent", "title": "A title", "updated": 1_790_000_500, "items": items}
    path.write_text(json.dumps({**record, **more}, indent=2), encoding="utf-8")


def read(source: CydoniaSource, path: Path) -> StoredSession:
    return read_whole(source, path, root=source.roots()[0])


def test_every_item_of_the_format_is_read(source: CydoniaSource, path: Path) -> None:
    write(
        path,
        user("hello"),
        {"Agent": "hi"},
        {"Thinking": {"text": "hm", "done": True}},
        {"Tool": {"id": "1", "kind": "execute", "label": "make", "status": "Success", "output": "done"}},
        {"Tool": {"id": "2", "kind": "execute", "label": "test", "status": "Failure", "output": ""}},
        {"Tool": {"id": "3", "kind": "execute", "label": "wait", "status": "Running", "output": ""}},
        notice("stopped"),
        {"Process": {"command": "claude-acp", "output": "warning"}},
        sent_at={"0": 1_790_000_007},
    )
    session = read(source, path)
    at_ms = 1_790_000_007_000
    assert [turn.at_ms for turn in session.turns] == [at_ms]
    assert session.turns[0].items == [
        Item(Kind.USER, text="hello", at_ms=at_ms),
        Item(Kind.AGENT, text="hi"),
        Item(Kind.THINKING, text="hm"),
        Item(Kind.TOOL, label="make", status=Status.OK, output="done"),
        Item(Kind.TOOL, label="test", status=Status.FAILED, output=""),
        Item(Kind.TOOL, label="wait", status=Status.RUNNING, output=""),
        Item(Kind.NOTICE, text="stopped"),
        Item(Kind.PROCESS, command="claude-acp", output="warning"),
    ]
    assert session.skipped == []


@pytest.mark.parametrize(
    ("items", "turns"),
    [
        ([], []),
        ([process("p")], []),
        ([process("p"), process("q"), user("u"), {"Agent": "a"}], [["u", "a"]]),
        ([notice("n"), user("u"), {"Agent": "a"}], [["n"], ["u", "a"]]),
        ([process("p"), notice("n"), user("u")], [["p", "n"], ["u"]]),
        ([user("u"), process("p"), user("v"), process("q")], [["u", "p"], ["v", "q"]]),
        ([{"Later": {}}, user("u")], [[], ["u"]]),
    ],
)
def test_a_turn_starts_at_every_user_item_and_leading_process_items_alone_are_none(
    source: CydoniaSource, path: Path, items: list[Any], turns: list[list[str]]
) -> None:
    write(path, *items)
    assert read(source, path).texts == turns


def test_a_turn_has_the_time_of_its_message_else_of_the_nearest_before_it(source: CydoniaSource, path: Path) -> None:
    items = [notice("n"), user("a"), user("b"), user("c"), user("d")]
    write(path, *items, sent_at={"2": 1_790_000_020, "0": 5, "4": 1_790_000_040})
    session = read(source, path)
    assert [turn.at_ms for turn in session.turns] == [
        STAMP,
        STAMP,
        1_790_000_020_000,
        1_790_000_020_000,
        1_790_000_040_000,
    ]
    assert [turn.items[0].at_ms for turn in session.turns] == [
        None,
        None,
        1_790_000_020_000,
        None,
        1_790_000_040_000,
    ]


@pytest.mark.parametrize(
    ("stem", "updated", "at_ms"),
    [
        (f"{STAMP}-2", 1_790_000_500, STAMP),
        ("notes", 1_790_000_500, 1_790_000_500_000),
        ("1790000000", 1_790_000_500, 1_790_000_500_000),
        ("notes", None, 7_000),
        ("notes", "soon", 7_000),
        ("notes", -5, 7_000),
        ("notes", 10**17, 7_000),
        ("notes", True, 7_000),
    ],
)
def test_without_message_times_the_file_name_tells_else_the_last_change(
    source: CydoniaSource, path: Path, stem: str, updated: Any, at_ms: int
) -> None:
    path = path.with_name(f"{stem}.json")
    write(path, user("u"), updated=updated)
    os.utime(path, ns=(0, 7_000_000_000))
    assert [turn.at_ms for turn in read(source, path).turns] == [at_ms]


def test_the_session_is_named_by_its_file_and_its_project(source: CydoniaSource, project: Path, path: Path) -> None:
    write(
        path,
        id="another",
        agent_id="claude-acp",
        session="0198-abc",
        name="Mine",
        closed=True,
        fork={"session": "1789", "title": "t", "before": 2},
    )
    facts = read(source, path).facts
    assert facts is not None
    assert (facts.key, facts.session_id, facts.project) == (f"{project}/{STAMP}", str(STAMP), project)
    assert (facts.agent, facts.agent_id, facts.agent_session) == ("Claude Agent", "claude-acp", "0198-abc")
    assert (facts.title, facts.is_archived, facts.forked_from) == ("Mine", True, "1789")
    assert facts.started_ms == STAMP


@pytest.mark.parametrize(
    ("name", "title", "shown"),
    [
        (None, "t", "t"),
        ("n", "t", "n"),
        ("", "t", "t"),
        (" ", "t", "t"),
        (5, "t", "t"),
        (None, 5, ""),
        (None, None, ""),
    ],
)
def test_the_name_wins_over_the_title(source: CydoniaSource, path: Path, name: Any, title: Any, shown: str) -> None:
    write(path, name=name, title=title)
    facts = read(source, path).facts
    assert facts is not None
    assert facts.title == shown


def test_an_old_record_without_the_newer_keys_is_read(source: CydoniaSource, path: Path) -> None:
    path.write_text(json.dumps({"items": [user("u")]}), encoding="utf-8")
    session = read(source, path)
    assert session.texts == [["u"]]
    assert session.facts is not None
    assert (session.facts.title, session.facts.agent, session.facts.is_archived) == ("", None, False)


def test_fields_of_a_wrong_type_are_as_if_they_were_not_there(source: CydoniaSource, path: Path) -> None:
    wrong = {
        key: [1] for key in ("agent", "agent_id", "session", "title", "name", "updated", "closed", "fork", "sent_at")
    }
    write(path, user("u"), **wrong)
    session = read(source, path)
    assert session.texts == [["u"]]
    write(path, user("u"), sent_at={"0": "soon", "x": 4, "-1": None}, fork={"session": 4}, closed="yes")
    assert [turn.at_ms for turn in read(source, path).turns] == [STAMP]
    for odd in (-1, 10**30, 1.5, True, None):
        write(path, user("u"), sent_at={"0": odd})
        assert [turn.at_ms for turn in read(source, path).turns] == [STAMP]


def test_items_that_are_not_understood_are_kept_out_and_counted(source: CydoniaSource, path: Path) -> None:
    write(
        path,
        user("u"),
        {"Plan": {"steps": []}},
        "Pause",
        {"X" * 500: 1},
        {"User": 5},
        {"Thinking": "hm"},
        {"Tool": None},
        {"Notice": {"text": 5}},
        {"Process": []},
        {},
        7,
        {"User": "a", "Agent": "b"},
        {"Tool": {"label": ["x"], "status": "Paused", "output": 4}},
        {"Tool": {}},
        {"Agent": "end", "later": True},
    )
    session = read(source, path)
    assert session.texts == [["u"], [None, None, "end"]]
    assert session.reasons == [
        (None, reason)
        for reason in (
            'unknown item "Plan"',
            'unknown item "Pause"',
            f'unknown item "{"X" * 80}…"',
            'malformed item "User"',
            'malformed item "Thinking"',
            'malformed item "Tool"',
            'malformed item "Notice"',
            'malformed item "Process"',
            "malformed item",
            "malformed item",
            "malformed item",
            'unknown status "Paused"',
            "no status",
        )
    ]


@pytest.mark.parametrize(
    "raw", [b"", b"  \n", b'{"items": [', b'{"items": [{"User": "}', b"[]", b"{}", b'{"items": 5}']
)
def test_a_broken_record_says_nothing_while_it_is_fresh_and_why_once_it_is_at_rest(
    source: CydoniaSource, path: Path, raw: bytes
) -> None:
    path.write_bytes(raw)
    with pytest.raises(Unsettled):
        read_on(source, path, StoredSession(), settle_ms=600_000)
    with pytest.raises(Unreadable):
        read_on(source, path, StoredSession(), settle_ms=0)


@pytest.mark.parametrize("cut", range(0, 200, 7))
def test_a_record_cut_anywhere_changes_nothing(source: CydoniaSource, path: Path, cut: int) -> None:
    write(path, user("u"), {"Agent": "}"}, user("v"))
    session = read(source, path)
    whole = path.read_bytes()
    assert len(whole) > 200
    path.write_bytes(whole[:cut])
    with pytest.raises(Unsettled):
        read_on(source, path, session, settle_ms=600_000)
    assert session.texts == [["u", "}"], ["v"]]


def test_a_record_that_did_not_change_has_no_parts(source: CydoniaSource, path: Path) -> None:
    write(path, user("u"))
    session = read(source, path)
    assert read_on(source, path, session) == 0
    write(path, user("longer"))
    assert read_on(source, path, session) == 1
    assert session.texts == [["longer"]]


def test_a_record_that_lost_turns_and_items_is_what_it_says_now(source: CydoniaSource, path: Path) -> None:
    write(path, user("a"), {"Agent": "1"}, {"Agent": "2"}, user("b"), user("c"))
    session = read(source, path)
    write(path, user("a"), {"Agent": "1"}, user("d"))
    read_on(source, path, session)
    assert session.texts == [["a", "1"], ["d"]]
    write(path)
    read_on(source, path, session)
    assert session.texts == []


def test_a_big_record_comes_in_parts_of_which_only_the_last_is_the_end(
    source: CydoniaSource, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "PART_CHARS", 10)
    items = [item for number in range(9) for item in (user(f"q{number}"), *[{"Agent": "xxxx"}] * number)]
    write(path, *items)
    parts = list(source.read(transcript_of(path, source.roots()[0]), None))
    assert len(parts) > 9
    assert [part.turns for part in parts] == [None] * (len(parts) - 1) + [9]
    assert [part.is_from_start for part in parts] == [True] + [False] * (len(parts) - 1)
    session = StoredSession()
    session.apply(parts[0])
    assert read_on(source, path, session) == len(parts), "an interrupted reading starts over"
    assert session.texts == [[f"q{number}", *["xxxx"] * number] for number in range(9)]


def test_a_record_that_is_written_over_while_it_is_read_says_nothing(
    source: CydoniaSource, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, user("one"))
    os.utime(path, ns=(0, 0))
    read_bytes = os.read

    def written_over(descriptor: int, length: int) -> bytes:
        block = read_bytes(descriptor, length)
        write(path, user("two"))
        return block

    monkeypatch.setattr(os, "read", written_over)
    with pytest.raises(Unsettled):
        read(source, path)


def test_a_writer_that_never_pauses_is_read_whole_or_not_at_all(source: CydoniaSource, path: Path) -> None:
    write(path, user("u 0"), {"Agent": "0" * 50_000})
    done = threading.Event()

    def rewrite() -> None:
        for number in range(300):
            write(path, user(f"u {number}"), {"Agent": str(number % 10) * (50_000 + number)})
        done.set()

    writer = threading.Thread(target=rewrite)
    writer.start()
    reads = 0
    while not done.is_set():
        session = StoredSession()
        try:
            read_on(source, path, session, settle_ms=600_000)
        except Unsettled:
            continue
        number = int((session.texts[0][0] or "").removeprefix("u "))
        assert session.texts[0][1] == str(number % 10) * (50_000 + number)
        reads += 1
    writer.join()
    assert reads > 0


def test_only_json_files_right_in_the_folder_are_records(source: CydoniaSource, path: Path) -> None:
    root = source.roots()[0]
    write(path)
    odd = path.with_name(os.fsdecode(b"\xff\xfe.json"))
    write(odd, user("u"), id="x")
    (path.parent / "sub").mkdir()
    (path.parent / "sub" / "a.json").write_text("{}")
    (path.parent / "a.json.tmp").write_text("{}")
    (path.parent / "dir.json").mkdir()
    found = [transcript.path for transcript in source.transcripts(root)]
    assert sorted(found) == sorted([path, odd])
    assert source.owns(root, path)
    assert not source.owns(root, path.parent / "sub" / "a.json")
    assert not source.owns(root, path.with_suffix(".tmp"))
    facts = read_whole(source, odd, root=root).facts
    assert facts is not None
    assert facts.session_id == "\ufffd\ufffd"
    facts.key.encode("utf-8")


def test_nothing_is_written_or_touched_beside_the_records(source: CydoniaSource, project: Path, path: Path) -> None:
    write(path, user("u"))
    before = snapshot(project)
    read(source, path)
    list(source.transcripts(source.roots()[0]))
    source.listed_projects()
    assert snapshot(project) == before


def test_the_state_file_lists_the_projects_and_the_last_list_holds_while_it_cannot_be_read(
    tmp_path: Path, project: Path
) -> None:
    state = tmp_path / "state.toml"
    source = CydoniaSource(state)
    assert source.listed_projects() is None
    assert source.roots() == []
    assert source.state_files() == (state,)
    second = tmp_path / "work" / "second"
    second.mkdir()
    link = tmp_path / "link"
    link.symlink_to(second)
    paths = [f"{project}/", str(link), str(project), "relative", str(tmp_path / "gone"), "/a\0b", 5]
    state.write_text("active = 0\nprojects = [" + ", ".join(map(json.dumps, paths)) + "]\n")
    assert source.listed_projects() == [project, second]
    assert source.roots() == [
        Root(folder / ".cydonia" / "sessions", project=folder, is_recursive=False) for folder in (project, second)
    ]
    for torn in ("", "active = 0\n", "projects = [", 'projects = "x"', "\xff", "a = " + "[" * 100_000):
        state.write_bytes(torn.encode("latin-1"))
        assert source.listed_projects() == [project, second]
    state.unlink()
    assert source.listed_projects() == [project, second]
    second.rmdir()
    assert source.listed_projects() == [project]
    state.write_text("projects = []\n")
    assert source.listed_projects() == []


def test_projects_that_were_named_are_listed_beside_those_of_the_state_file(tmp_path: Path, project: Path) -> None:
    state = tmp_path / "state.toml"
    state.write_text("projects = []\n")
    assert CydoniaSource(state, [project]).listed_projects() == [project]
    assert CydoniaSource(None, [project]).listed_projects() == [project]
    assert CydoniaSource(None, [project]).state_files() == ()
