"""Whatever lies among the transcripts, and whatever is in them: nothing else is hidden by it."""

import json
import os
from contextlib import closing
from pathlib import Path

import pytest

from indexer.service import Indexer
from schemas.requests import ReadRequest
from schemas.settings import Settings
from search_api.archive import Archive
from search_api.caller import Caller
from tests.indexer.archives import (
    Transcripts,
    append,
    contents,
    found_in,
    hits,
    index,
    line_of,
    sessions_of,
    status_of,
    user,
    write_record,
)
from tests.waiting import wait_for

HUGE_BYTES = 100_000_000


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    transcripts = Transcripts(tmp_path)
    transcripts.turn_file("before", user("the plain words"))
    transcripts.turn_file("zz-after", user("the plain words"))
    write_record(transcripts.project("kettle"), "1790000000000", "the plain words")
    return transcripts


@pytest.fixture
def settings(transcripts: Transcripts) -> Settings:
    return transcripts.settings()


PLAIN = [("1790000000000", 1), ("before", 1), ("zz-after", 1)]


def plain(settings: Settings) -> list[tuple[str, int]]:
    return sorted(found_in(settings, "the plain words"))


def test_a_line_of_100_mb_is_searched_to_its_end(transcripts: Transcripts, settings: Settings) -> None:
    path = transcripts.turn_file("huge")
    with path.open("ab") as file:
        file.write(b'{"type": "agent", "text": "the first words ')
        block = b"0123456789abcdef " * 60_000
        for _ in range(HUGE_BYTES // len(block) + 1):
            file.write(block)
        file.write(b' the last words"}\n')
    append(path, user("behind it"))
    index(settings)
    for query, turn in (("the first words", 1), ("the last words", 1), ("behind it", 2)):
        assert found_in(settings, query) == [("huge", turn)]
    with closing(Archive.open(settings)) as archive:
        read = archive.read(ReadRequest(session="huge#1", turns="2", max_chars=1000), Caller())
        assert [item.text for part in read.parts for item in part.items] == ["behind it"]
    assert plain(settings) == PLAIN


@pytest.mark.parametrize(
    "line",
    [
        b"\x00" * 4096 + b"\n",
        b'{"type": "user", "text": "cut by a cra\n',
        b"[" * 100_000 + b"]" * 100_000 + b"\n",
        b'{"type": "user", "text": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}\n",
        b"not JSON at all\n",
        b"[1, 2, 3]\n",
        b'"a string"\n',
        b"\xff\xfe\x00\n",
        b'{"type": "dream", "text": "x"}\n',
        b'{"type": "user"}\n',
        b'{"type": "user", "text": 7}\n',
    ],
    ids=range(11),
)
def test_a_line_that_is_none_is_counted_and_hides_nothing(
    transcripts: Transcripts, settings: Settings, line: bytes
) -> None:
    path = transcripts.turn_file("odd", user("before it"), line, user("behind it"))
    index(settings)
    assert found_in(settings, "before it") == [("odd", 1)]
    assert found_in(settings, "behind it") == [("odd", 2)]
    assert plain(settings) == PLAIN
    assert {(error.file, error.line) for error in status_of(settings).sources[1].errors} == {(str(path), 3)}


@pytest.mark.parametrize(
    ("written", "query", "line"),
    [
        ('"a\\u0000b c"', "b c", "a\x00b c"),
        ('"lone \\ud83d half"', "\ufffd half", "lone \ufffd half"),
        ('"one \\u2028 two"', "one \u2028 two", "one \u2028 two"),
        ('"one \\u0085 two"', "e \u0085 t", "one \u0085 two"),
        ('"one \\f two"', "two", "one \x0c two"),
        ('"first\\r\\nsecond"', "second", "second"),
        ('"no end\\n"', "end", "no end"),
        ('"\\ud83c\\udf89 party"', "🎉", "🎉 party"),
    ],
)
def test_a_text_with_odd_characters_is_found_as_it_is(
    transcripts: Transcripts, settings: Settings, written: str, query: str, line: str
) -> None:
    transcripts.turn_file("odd", b'{"type": "user", "text": ' + written.encode() + b"}\n")
    index(settings)
    assert [(hit.session_id, hit.line) for hit in hits(settings, query)] == [("odd", line)]
    assert plain(settings) == PLAIN


def test_raw_separators_and_bytes_that_are_no_utf_8_cut_no_line(transcripts: Transcripts, settings: Settings) -> None:
    raw = '{"type": "user", "text": "one \u2028 two \u0085 three"}\n'.encode()
    transcripts.turn_file(
        "odd", raw, b'{"type": "user", "text": "caf\xe9 noir"}\n', b"\xef\xbb\xbf" + line_of(user("bom"))
    )
    index(settings)
    assert [hit.turn for query in ("three", "noir", "bom") for hit in hits(settings, query)] == [1, 2, 3]


NAMES = [
    b"caf\xe9.turns.jsonl",
    b"new\nline.turns.jsonl",
    b"tab\tand space .turns.jsonl",
    b".turns.jsonl",
    b"-rf.turns.jsonl",
    "🎉 Ünï.turns.jsonl".encode(),
    b"q\"uote'.turns.jsonl",
    b"x" * 240 + b".turns.jsonl",
]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_file_of_any_name_is_read_and_followed(transcripts: Transcripts, settings: Settings, name: bytes) -> None:
    path = Path(os.fsdecode(os.fsencode(transcripts.turns) + b"/" + name))
    path.write_bytes(line_of({"type": "session", "id": "odd-name", "project": "/home/a/odd"}) + line_of(user("hello")))
    append(path, b"broken\n")
    index(settings)
    assert found_in(settings, "hello") == [("odd-name", 1)]
    append(path, user("and more"))
    index(settings)
    assert found_in(settings, "and more") == [("odd-name", 2)]
    assert len(status_of(settings).sources[1].errors) == 1
    path.unlink()
    index(settings)
    assert [hit.deleted for hit in hits(settings, "hello")] == [True]
    assert plain(settings) == PLAIN


def test_a_record_of_any_name_is_read(transcripts: Transcripts, settings: Settings) -> None:
    sessions = transcripts.folder / "work" / "kettle" / ".cydonia" / "sessions"
    record = json.dumps({"items": [{"User": "in an odd record"}], "title": "Odd"}).encode()
    names = [b"caf\xe9.json", b"new\nline.json", b".json", b"a b.json", "文.json".encode()]
    for name in names:
        Path(os.fsdecode(os.fsencode(sessions) + b"/" + name)).write_bytes(record)
    index(settings)
    assert len(found_in(settings, "in an odd record")) == len(names)
    assert plain(settings) == PLAIN


def make_odd_things(folder: Path, suffix: str) -> None:
    """What is named like a transcript and is none, and folders that go round in circles."""
    (folder / f"folder{suffix}").mkdir()
    os.mkfifo(folder / f"pipe{suffix}")
    (folder / f"empty{suffix}").touch()
    (folder / f"dangling{suffix}").symlink_to(folder / "nowhere")
    (folder / f"self{suffix}").symlink_to(folder / f"self{suffix}")
    (folder / "round").symlink_to(folder)
    (folder / "up").symlink_to(folder.parent)


def test_what_is_no_transcript_but_named_like_one_holds_nothing_up(
    transcripts: Transcripts, settings: Settings
) -> None:
    make_odd_things(transcripts.turns, ".turns.jsonl")
    make_odd_things(transcripts.folder / "work" / "kettle" / ".cydonia" / "sessions", ".json")
    (transcripts.turns / "folder.turns.jsonl" / "in-it.turns.jsonl").write_bytes(
        line_of({"type": "session", "id": "in-it", "project": "/home/a/in-it"}) + line_of(user("in a folder"))
    )
    index(settings)
    assert plain(settings) == PLAIN
    assert found_in(settings, "in a folder") == [("in-it", 1)]
    assert len(sessions_of(settings)) == 4


def test_odd_things_that_appear_later_hold_nothing_up(transcripts: Transcripts, settings: Settings) -> None:
    indexer = Indexer(settings)
    indexer.start()
    try:
        wait_for(lambda: indexer.status().is_ready, "the first scan is done")
        make_odd_things(transcripts.turns, ".turns.jsonl")
        Path(os.fsdecode(os.fsencode(transcripts.turns) + b"/caf\xe9.turns.jsonl")).write_bytes(
            line_of({"type": "session", "id": "cafe", "project": "/home/a/cafe"}) + line_of(user("in the café"))
        )
        wait_for(lambda: found_in(settings, "in the café"), "a file whose name is no UTF-8 is found")
        append(transcripts.turns / "before.turns.jsonl", user("appended"))
        wait_for(lambda: found_in(settings, "appended"), "what is appended is found")
    finally:
        indexer.stop()
    assert len(contents(settings)) == 4


def test_records_of_any_shape_hide_nothing(transcripts: Transcripts, settings: Settings) -> None:
    sessions = transcripts.folder / "work" / "kettle" / ".cydonia" / "sessions"
    odd = [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"items": {}}',
        b'{"items": [[], 1, null, {}, {"User": 1}, {"User": "a", "Agent": "b"}]}',
        b'{"items": [{"User": "' + b"\x00" * 100 + b'"}]}',
        b'{"items": ' + b"[" * 100_000,
        b'{"items": [' + b'{"User": {"a": ' * 3_000 + b"1" + b"}}" * 3_000 + b"]}",
        b'{"items": [{"User": "hi"}], "title": 7, "name": [], "closed": "yes", "sent_at": {"0": 1e400}, "fork": 3}',
        b'{"items": [{"User": "hi"}], "sent_at": {"0": 99999999999999999999}, "updated": -5}',
    ]
    for n, raw in enumerate(odd):
        path = sessions / f"odd-{n}.json"
        path.write_bytes(raw)
        os.utime(path, (1_790_000_000, 1_790_000_000))
    index(settings)
    assert plain(settings) == PLAIN
    assert sum(status_of(settings).sources[0].skipped.values()) >= 8
