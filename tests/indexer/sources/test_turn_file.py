import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.sources import turn_file
from indexer.sources.base import Root, Unsettled, Waiting
from indexer.sources.turn_file import TurnFileSource
from schemas.items import Item, Kind, Status
from tests.indexer.sources.model import StoredSession, read_on, read_whole, snapshot, transcript_of

TEN = 1_796_032_800_000
"""2026-11-30T10:00:00Z"""

HEADER = {
    "type": "session",
    "version": 1,
    "id": "b7c1e0a2-77",
    "project": "/home/a/kettle",
    "title": "Fix the parser",
    "agent": "codex",
    "at": "2026-11-30T10:00:00Z",
}


def line(type_: str, text: str | None = None, **more: Any) -> dict[str, Any]:
    return {"type": type_, **({} if text is None else {"text": text}), **more}


def encoded(*lines: dict[str, Any] | bytes) -> bytes:
    return b"".join(
        (one if isinstance(one, bytes) else json.dumps(one, ensure_ascii=False).encode()) + b"\n" for one in lines
    )


@pytest.fixture
def source(tmp_path: Path) -> TurnFileSource:
    return TurnFileSource([tmp_path])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.turns.jsonl"


def session_of(source: TurnFileSource, path: Path, *lines: dict[str, Any] | bytes) -> StoredSession:
    path.write_bytes(encoded(HEADER, *lines))
    return read_whole(source, path)


def test_the_example_of_the_docs_is_read_item_by_item(source: TurnFileSource, path: Path) -> None:
    session = session_of(
        source,
        path,
        line("user", "The span is off when the range is open.", at="2026-11-30T10:00:01Z"),
        line("thinking", "…"),
        line("agent", "Looking at the parser first."),
        line("tool", id="t1", label="cargo test parser", status="running", input="cargo test parser -- --nocapture"),
        line("tool", id="t1", status="failed", output="test parser::open_range … FAILED"),
        line("notice", "stopped by the user"),
        line("process", command="codex", output="warning: …"),
        line("title", "Fix the parser span"),
        line("archived", value=True),
    )
    at = TEN + 1000
    assert [turn.at_ms for turn in session.turns] == [at]
    assert session.turns[0].items == [
        Item(Kind.USER, text="The span is off when the range is open.", at_ms=at),
        Item(Kind.THINKING, text="…", at_ms=at),
        Item(Kind.AGENT, text="Looking at the parser first.", at_ms=at),
        Item(
            Kind.TOOL,
            label="cargo test parser",
            status=Status.FAILED,
            input="cargo test parser -- --nocapture",
            output="test parser::open_range … FAILED",
            at_ms=at,
        ),
        Item(Kind.NOTICE, text="stopped by the user", at_ms=at),
        Item(Kind.PROCESS, command="codex", output="warning: …", at_ms=at),
    ]
    facts = session.facts
    assert facts is not None
    assert (facts.key, facts.session_id, facts.project) == ("b7c1e0a2-77", "b7c1e0a2-77", Path("/home/a/kettle"))
    assert (facts.title, facts.agent, facts.is_archived, facts.started_ms) == (
        "Fix the parser span",
        "codex",
        True,
        TEN,
    )
    assert session.skipped == []


def process(command: str) -> dict[str, Any]:
    return line("process", command=command)


@pytest.mark.parametrize(
    ("lines", "turns"),
    [
        ([], []),
        ([process("p")], []),
        ([process("p"), process("q"), line("user", "u"), line("agent", "a")], [["u", "a"]]),
        ([line("notice", "n"), line("user", "u"), line("agent", "a")], [["n"], ["u", "a"]]),
        ([process("p"), line("notice", "n"), line("user", "u")], [["p", "n"], ["u"]]),
        ([line("user", "u"), process("p"), line("user", "v")], [["u", "p"], ["v"]]),
        ([line("tool", label="t"), process("p"), line("user", "u")], [["t", "p"], ["u"]]),
    ],
)
def test_a_turn_starts_at_every_user_item_and_leading_process_items_alone_are_none(
    source: TurnFileSource, path: Path, lines: list[dict[str, Any]], turns: list[list[str]]
) -> None:
    assert session_of(source, path, *lines).texts == turns


def test_leading_process_items_are_remembered_between_reads(source: TurnFileSource, path: Path) -> None:
    session = session_of(source, path, process("p"))
    append(path, line("notice", "n"))
    read_on(source, path, session)
    assert session.texts == [["p", "n"]]


def append(path: Path, *lines: dict[str, Any] | bytes) -> None:
    append_bytes(path, encoded(*lines))


def append_bytes(path: Path, raw: bytes) -> None:
    with path.open("ab") as file:
        file.write(raw)


def test_a_tool_line_completes_the_open_one_of_its_id_in_an_earlier_turn(source: TurnFileSource, path: Path) -> None:
    session = session_of(source, path, line("user", "u"), line("tool", id="t", label="make"), line("user", "v"))
    append(path, line("tool", id="t", status="ok", output="done"))
    read_on(source, path, session)
    assert session.turns[0].items[1] == Item(Kind.TOOL, label="make", status=Status.OK, output="done", at_ms=TEN)
    assert session.texts == [["u", "make"], ["v"]]


def test_a_closed_tool_is_not_completed_again(source: TurnFileSource, path: Path) -> None:
    session = session_of(
        source,
        path,
        line("user", "u"),
        line("tool", id="t", label="one", status="ok"),
        line("tool", id="t", label="two", status="running"),
        line("tool", id="t", output="half"),
        line("tool", id="t", status="failed", label="two!"),
        line("tool", id="t", output="late"),
        line("tool", label="none"),
        line("tool", label="none"),
    )
    assert [(item.label, item.status, item.output) for item in session.turns[0].items[1:]] == [
        ("one", Status.OK, None),
        ("two!", Status.FAILED, "half"),
        (None, Status.RUNNING, "late"),
        ("none", Status.RUNNING, None),
        ("none", Status.RUNNING, None),
    ]


def test_an_item_has_the_time_of_the_one_before_it_and_the_first_that_of_the_session(
    source: TurnFileSource, path: Path
) -> None:
    session = session_of(
        source,
        path,
        line("user", "u"),
        line("agent", "a", at="2026-11-30T12:00:02.250+02:00"),
        line("user", "v"),
        line("user", "w", at="yesterday"),
        line("user", "x", at=7),
        line("user", "y", at="0001-01-01T00:00:00Z"),
    )
    assert [turn.at_ms for turn in session.turns] == [TEN, *[TEN + 2250] * 4]
    assert [item.at_ms for item in session.turns[0].items] == [TEN, TEN + 2250]
    assert session.reasons == [(5, '"at" is not a time'), (6, '"at" is not a text'), (7, '"at" is not a time')]


def test_without_any_time_a_turn_has_that_of_the_file(source: TurnFileSource, path: Path) -> None:
    path.write_bytes(encoded({**HEADER, "at": None}, line("user", "u")))
    os.utime(path, ns=(0, 5_000_000_000))
    session = read_whole(source, path)
    assert [turn.at_ms for turn in session.turns] == [5000]
    assert session.turns[0].items[0].at_ms is None


def test_a_later_session_line_changes_title_agent_and_project_but_not_the_id(
    source: TurnFileSource, path: Path
) -> None:
    later = {**HEADER, "id": "other", "title": "New", "agent": "claude", "project": "/srv/b"}
    facts = session_of(source, path, later, line("session", id=HEADER["id"], title=None)).facts
    assert facts is not None
    assert (facts.key, facts.title, facts.agent, facts.project) == ("b7c1e0a2-77", "New", "claude", Path("/srv/b"))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b'{"type":"session","ver',
        encoded(line("user", "hello")),
        encoded(b"no json", line("session", id="x")),
        encoded({**HEADER, "project": "relative"}, line("user", "u")),
        encoded({**HEADER, "project": "/a\0b"}),
        encoded({**HEADER, "id": ""}),
        encoded({**HEADER, "id": "x" * 129}),
        encoded({**HEADER, "id": 5}),
    ],
)
def test_a_file_without_its_session_line_waits(source: TurnFileSource, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(Waiting):
        read_whole(source, path)
    assert source.facts(transcript_of(path)) is None


def test_a_session_line_that_comes_later_is_found_and_what_stood_before_it_is_counted(
    source: TurnFileSource, path: Path
) -> None:
    path.write_bytes(encoded(line("user", "lost"), HEADER, line("user", "kept")))
    session = read_whole(source, path)
    assert session.texts == [["kept"]]
    assert session.reasons == [(1, "before the session line")]


def test_the_head_alone_says_what_the_session_is(source: TurnFileSource, path: Path) -> None:
    path.write_bytes(encoded(HEADER, line("title", "Later")))
    facts = source.facts(transcript_of(path))
    assert facts is not None
    assert (facts.key, facts.title, facts.started_ms) == ("b7c1e0a2-77", "Fix the parser", TEN)


def test_what_is_not_understood_is_counted_with_its_line_and_hides_nothing(source: TurnFileSource, path: Path) -> None:
    path.write_bytes(
        encoded(
            {**HEADER, "version": 3, "colour": "red"},
            line("user", "one", mood="good"),
            line("plan" * 40, "x"),
            b'{"type":"agent","text":"cut',
            b"\0" * 100,
            b"\0\0\0" + json.dumps(line("agent", "two")).encode(),
            b"[1]",
            b"[" * 100_000,
            line("agent"),
            {"type": "agent", "text": 5},
            {"type": 7},
            line("tool", label=5, id=[1], status="done", output="out"),
            line("archived", value="yes"),
            line("title"),
            line("agent", "three"),
        )
    )
    session = read_whole(source, path)
    assert session.texts == [["one", "two", None, "three"]]
    assert session.turns[0].items[2].output == "out"
    assert session.reasons == [
        (1, 'unknown key "colour"'),
        (1, "version 3"),
        (2, 'unknown key "mood"'),
        (3, f'unknown type "{"plan" * 20}…"'),
        (4, "not JSON"),
        (5, "NUL bytes"),
        (6, "NUL bytes"),
        (7, "not a JSON object"),
        (8, "not JSON"),
        (9, 'no "text"'),
        (10, '"text" is not a text'),
        (11, 'no "type"'),
        (12, '"id" is not a text'),
        (12, '"label" is not a text'),
        (12, 'unknown status "done"'),
        (13, '"value" is not true or false'),
        (14, 'no "text"'),
    ]


def test_many_unknown_keys_of_a_line_are_not_all_counted_by_name(source: TurnFileSource, path: Path) -> None:
    session = session_of(source, path, line("user", "u", **{f"k{number}": 1 for number in range(100)}))
    assert [reason for _, reason in session.reasons][-2:] == ['unknown key "k7"', "more unknown keys"]


def test_only_a_newline_ends_a_line_and_lone_surrogates_become_a_sign(source: TurnFileSource, path: Path) -> None:
    odd = "a\u2028b\u2029c\x85d\fe\r\nf"
    session = session_of(
        source, path, line("user", odd), b'{"type":"agent","text":"\\ud83d and \\ud83c\\udf89"}\r', line("user", "")
    )
    assert [item.text for turn in session.turns for item in turn.items] == [odd, "\ufffd and 🎉", ""]
    assert session.skipped == []


def test_a_torn_last_line_is_read_once_it_is_complete(source: TurnFileSource, path: Path) -> None:
    session = session_of(source, path, line("user", "u"))
    whole = encoded(line("agent", "späte Antwort"))
    append_bytes(path, whole[:30])
    with pytest.raises(Unsettled):
        read_on(source, path, session, settle_ms=60_000)
    assert session.texts == [["u"]]
    assert read_on(source, path, session) == 0, "it is quiet, and cut: it waits without a sign"
    append_bytes(path, whole[30:])
    assert read_on(source, path, session, settle_ms=60_000) == 1
    assert session.texts == [["u", "späte Antwort"]]


def test_complete_lines_before_a_torn_one_are_read_at_once(source: TurnFileSource, path: Path) -> None:
    path.write_bytes(encoded(HEADER, line("user", "u")) + b'{"type":')
    session = StoredSession()
    with pytest.raises(Unsettled):
        read_on(source, path, session, settle_ms=60_000)
    assert session.texts == [["u"]]


def test_a_last_line_without_its_end_is_read_when_quiet_and_never_twice(source: TurnFileSource, path: Path) -> None:
    session = session_of(source, path, line("user", "u"))
    append_bytes(path, encoded(line("agent", "a"))[:-1])
    assert read_on(source, path, session) == 1
    assert session.texts == [["u", "a"]]
    assert read_on(source, path, session) == 0
    append_bytes(path, b"\n" + encoded(line("agent", "b")))
    read_on(source, path, session)
    assert session.texts == [["u", "a", "b"]]
    assert session.skipped == []
    append_bytes(path, encoded(line("agent", "c"))[:-1])
    read_on(source, path, session)
    append_bytes(path, b' "rest"}\n' + encoded(line("agent", "d"), b"bad"))
    read_on(source, path, session)
    assert session.texts == [["u", "a", "b", "c", "d"]]
    assert session.reasons == [(5, "rest of a line that was complete without it"), (7, "not JSON")]


def test_with_nothing_new_there_is_no_part(source: TurnFileSource, path: Path) -> None:
    session = session_of(source, path, line("user", "u"))
    assert read_on(source, path, session) == 0


@pytest.mark.parametrize("filler", ["", "x" * 10_000])
def test_a_file_that_was_cut_and_grew_past_its_old_length_is_read_anew(
    source: TurnFileSource, path: Path, filler: str
) -> None:
    session = session_of(source, path, line("user", filler), line("agent", "old"), line("user", "v"), line("user", "w"))
    content = path.read_bytes()
    cut = content.index(b'{"type": "agent"')
    with path.open("r+b") as file:
        file.truncate(cut)
        file.seek(cut)
        file.write(encoded(line("agent", "new " * 100), line("user", "v2")))
    assert path.stat().st_size > len(content)
    read_on(source, path, session)
    assert session.turns == read_whole(source, path).turns
    assert [len(turn) for turn in session.texts] == [2, 1]


def test_a_file_written_over_in_place_at_the_same_length_is_read_anew(source: TurnFileSource, path: Path) -> None:
    session = session_of(source, path, line("user", "x" * 9000), line("agent", "alpha"), line("agent", "y" * 9000))
    content = path.read_bytes()
    path.write_bytes(content.replace(b"alpha", b"omega"))
    os.utime(path, ns=(0, 1))
    read_on(source, path, session)
    assert session.texts[0][1] == "omega"


def test_a_file_cut_to_nothing_changes_nothing_until_it_is_written_again(source: TurnFileSource, path: Path) -> None:
    session = session_of(source, path, line("user", "u"), line("user", "v"))
    path.write_bytes(b"")
    with pytest.raises(Waiting):
        read_on(source, path, session)
    assert session.texts == [["u"], ["v"]]
    path.write_bytes(encoded(HEADER, line("user", "w")))
    read_on(source, path, session)
    assert session.texts == [["w"]]


def test_a_reading_from_the_beginning_that_was_interrupted_still_trims(
    source: TurnFileSource, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_file, "PART_BYTES", 40)
    old = [line(kind, f"old {number}") for number in range(8) for kind in ("user", "agent", "agent", "agent")]
    session = session_of(source, path, *old)
    path.unlink()
    new = [line(kind, f"new {number}") for number in range(4) for kind in ("user", "agent", "agent")]
    path.write_bytes(encoded(HEADER, *new))
    expected = read_whole(source, path).turns
    stops = 0
    while session.turns != expected:
        parts = source.read(transcript_of(path), session.checkpoint, settle_ms=0)
        session.apply(next(parts))  # and the process dies
        stops += 1
        assert all(len(turn.items) >= 3 for turn in session.turns), "half a turn was shown"
    assert stops > 4
    assert read_on(source, path, session) == 0


def test_what_was_skipped_is_counted_anew_when_a_file_is_read_anew(
    source: TurnFileSource, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_file, "PART_BYTES", 1)
    session = session_of(source, path, b"bad", line("user", "u"), b"bad")
    assert session.reasons == [(2, "not JSON"), (4, "not JSON")]
    append(path, b"bad")
    read_on(source, path, session)
    assert [number for number, _ in session.reasons] == [2, 4, 5]
    path.write_bytes(encoded(HEADER, line("user", "other"), b"bad"))
    read_on(source, path, session)
    assert session.reasons == [(3, "not JSON")]


def test_a_part_holds_about_four_megabytes_and_ends_where_its_checkpoint_says(
    source: TurnFileSource, path: Path
) -> None:
    path.write_bytes(encoded(HEADER, line("user", "u"), *[line("agent", "x" * 1_000_000)] * 9))
    session = StoredSession()
    counts = []
    for part in source.read(transcript_of(path), None, settle_ms=0):
        session.apply(part)
        counts.append(sum(len(turn.items) for turn in session.turns))
    assert counts == [5, 9, 10]
    assert session.turns == read_whole(source, path).turns


def test_files_are_found_at_any_depth_whatever_their_names(source: TurnFileSource, tmp_path: Path) -> None:
    root = Root(tmp_path)
    deep = tmp_path / "x" / ".hidden" / "y"
    deep.mkdir(parents=True)
    odd = Path(os.fsdecode(os.fsencode(deep) + b"/\xff\xfe.turns.jsonl"))
    linked = tmp_path / "outside"
    expected = [tmp_path / "a.turns.jsonl", deep / "b.turns.jsonl", odd]
    for path in expected:
        path.write_bytes(encoded(HEADER, line("user", "u")))
    (tmp_path / "c.jsonl").write_bytes(b"")
    (tmp_path / "d.turns.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.turns.jsonl")
    (tmp_path / "loop").symlink_to(tmp_path)
    linked.symlink_to(deep)
    (tmp_path / "again.turns.jsonl").symlink_to(expected[0])
    (tmp_path / "dangling.turns.jsonl").symlink_to(tmp_path / "nowhere")
    found = list(source.transcripts(root))
    assert sorted(transcript.path for transcript in found) == sorted(expected)
    assert all(source.owns(root, transcript.path) for transcript in found)
    assert all(read_whole(source, transcript.path).texts == [["u"]] for transcript in found)


def test_a_link_to_a_folder_elsewhere_is_followed(source: TurnFileSource, tmp_path: Path) -> None:
    (tmp_path / "turns").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.turns.jsonl").write_bytes(encoded(HEADER))
    (tmp_path / "turns" / "link").symlink_to(tmp_path / "elsewhere")
    found = list(source.transcripts(Root(tmp_path / "turns")))
    assert [transcript.path for transcript in found] == [tmp_path / "turns" / "link" / "a.turns.jsonl"]


def test_a_root_that_is_missing_is_an_error_and_not_empty(source: TurnFileSource, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(source.transcripts(Root(tmp_path / "gone")))


def test_nothing_is_written_or_touched_beside_the_files(source: TurnFileSource, tmp_path: Path, path: Path) -> None:
    path.write_bytes(encoded(HEADER, line("user", "u")))
    before = snapshot(tmp_path)
    source.facts(transcript_of(path))
    read_whole(source, path)
    list(source.transcripts(Root(tmp_path)))
    assert snapshot(tmp_path) == before


def test_an_unreadable_folder_is_an_error_after_all_that_could_be_listed(
    source: TurnFileSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.turns.jsonl").write_bytes(b"")
    scandir = os.scandir

    def refusing(folder: Path) -> Any:
        if folder.name == "b":
            raise PermissionError(folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    listing, names = source.transcripts(Root(tmp_path)), []
    with pytest.raises(PermissionError):
        while True:
            names.append(next(listing).path.parent.name)
    assert sorted(names) == ["a", "c"]


WORDS = st.text(alphabet='aä中🎉\u2028\x85\r\n "\\', max_size=12)
TOOLS = st.fixed_dictionaries(
    {"type": st.just("tool")},
    optional={
        "id": st.sampled_from(["t1", "t2"]),
        "label": WORDS,
        "status": st.sampled_from(["running", "ok", "failed", "odd"]),
        "input": WORDS,
        "output": WORDS,
    },
)
TEXTS = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "agent", "thinking", "notice", "title", "future"]), "text": WORDS},
    optional={"at": st.sampled_from(["2026-11-30T10:00:05Z", "2026-11-30T10:00:09Z", "never"])},
)
OTHERS = st.sampled_from(
    [
        {"type": "process", "command": "p"},
        {"type": "archived", "value": True},
        {**HEADER, "title": "again"},
        b"",
        b"\0\0\0",
        b'{"type":"user","text":"cut',
        b"\xff\xfe",
        b'{"type":"user","text":"\xff"}\r',
    ]
)


@given(
    lines=st.lists(TOOLS | TEXTS | OTHERS, max_size=25),
    cuts=st.lists(st.integers(0, 2000), max_size=12),
    part_bytes=st.sampled_from([1, 60, 4_000_000]),
)
def test_a_file_read_in_pieces_cut_anywhere_equals_the_file_read_at_once(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[dict[str, Any] | bytes],
    cuts: list[int],
    part_bytes: int,
) -> None:
    folder = tmp_path_factory.mktemp("pieces")
    source, path = TurnFileSource([folder]), folder / "a.turns.jsonl"
    content = encoded(HEADER, *lines)
    session = StoredSession()
    path.write_bytes(b"")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turn_file, "PART_BYTES", part_bytes)
        begin = 0
        for end in [*sorted(min(cut, len(content)) for cut in cuts), len(content)]:
            append_bytes(path, content[begin:end])
            begin = end
            try:
                read_on(source, path, session, settle_ms=600_000)
            except (Unsettled, Waiting):
                continue
    whole = read_whole(source, path)
    assert session.turns == whole.turns
    assert session.facts == whole.facts
    assert session.skipped == whole.skipped
