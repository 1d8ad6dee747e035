import json
import os
import tracemalloc
from pathlib import Path

import pytest

from indexer import tail as tail_module
from indexer.tail import Line, Position, Tail


def read(path: Path, since: Position | None = None, settle_ms: int = 0) -> tuple[list[Line], Position, Tail]:
    with Tail(path, since, settle_ms=settle_ms) as tail:
        lines = list(tail)
        return lines, Position.from_json(json.loads(json.dumps(tail.position.as_json()))), tail


def append(path: Path, raw: bytes) -> None:
    with path.open("ab") as file:
        file.write(raw)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lines.jsonl"


def test_lines_are_numbered_blank_ones_left_out_and_only_a_newline_ends_one(path: Path) -> None:
    path.write_bytes(b'{"a":"\xe2\x80\xa8\x0c\xc2\x85"}\r\n\n \t\r\n\0\0\n\0{}\n')
    lines, position, _ = read(path)
    assert lines == [
        Line(1, b'{"a":"\xe2\x80\xa8\x0c\xc2\x85"}'),
        Line(4, b"", has_nuls=True),
        Line(5, b"{}", has_nuls=True),
    ]
    assert (position.offset, position.lines, position.is_amid_line) == (path.stat().st_size, 5, False)


def test_only_lines_after_the_position_are_read(path: Path) -> None:
    path.write_bytes(b"{}\n")
    _, position, first = read(path)
    append(path, b"[]\n7\n")
    lines, _, second = read(path, position)
    assert (first.is_anew, second.is_anew) == (True, False)
    assert [(line.number, line.raw) for line in lines] == [(2, b"[]"), (3, b"7")]


def test_a_position_asked_for_amid_the_lines_goes_on_behind_the_last_of_them(path: Path) -> None:
    path.write_bytes(b"".join(b"%d" % number * 3000 + b"\n" for number in range(1, 9)))
    with Tail(path) as tail:
        for line in tail:
            lines, _, again = read(path, tail.position)
            assert not again.is_anew
            assert [later.number for later in lines] == list(range(line.number + 1, 9))


def test_a_line_longer_than_many_blocks_is_one_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail_module, "BLOCK_BYTES", 7)
    path.write_bytes(b"x" * 10_000 + b"\n" + b"y" * 9 + b"\n")
    lines, position, _ = read(path)
    assert [line.raw for line in lines] == [b"x" * 10_000, b"y" * 9]
    append(path, b"z\n")
    assert [line.raw for line in read(path, position)[0]] == [b"z"]


def test_memory_stays_at_a_block_and_a_line_however_long_the_file_is(path: Path) -> None:
    with path.open("wb") as file:
        for _ in range(64):
            file.write(b"x" * 999_999 + b"\n")
    tracemalloc.start()
    with Tail(path) as tail:
        count = sum(1 for _ in tail)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 64
    assert peak < 8_000_000


@pytest.mark.parametrize(
    ("content", "settle_ms", "numbers", "is_torn"),
    [
        (b'{}\n{"a"', 60_000, [1], True),
        (b'{}\n{"a"', 0, [1], False),
        (b'{}\n{"a":1}', 60_000, [1], True),
        (b'{}\n{"a":1}', 0, [1, 2], False),
        (b'{}\n{"a":1} ', 0, [1, 2], False),
        (b"{}\n12", 0, [1], False),
        (b"{}\n  ", 60_000, [1], False),
    ],
)
def test_an_unfinished_last_line_waits_until_it_is_quiet_and_an_object(
    path: Path, content: bytes, settle_ms: int, numbers: list[int], is_torn: bool
) -> None:
    path.write_bytes(content)
    lines, _, tail = read(path, settle_ms=settle_ms)
    assert [line.number for line in lines] == numbers
    assert tail.is_torn is is_torn


def test_a_clock_that_runs_ahead_does_not_keep_a_last_line_waiting(path: Path) -> None:
    path.write_bytes(b"{}")
    later = path.stat().st_mtime_ns + 3600 * 10**9
    os.utime(path, ns=(later, later))
    assert len(read(path, settle_ms=2000)[0]) == 1


def test_the_rest_of_a_line_that_was_read_without_its_end_is_marked(path: Path) -> None:
    path.write_bytes(b'{"a":1}')
    _, position, _ = read(path)
    append(path, b' "b"')
    lines, position, tail = read(path, position)
    assert (lines, tail.is_torn) == ([], False)
    append(path, b"}\n{}\n")
    lines, position, _ = read(path, position)
    assert lines == [Line(1, b' "b"}', is_rest=True), Line(2, b"{}")]
    assert position.lines == 2


def test_an_unfinished_line_longer_than_many_blocks_does_not_make_the_file_another(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail_module, "BLOCK_BYTES", 100)
    path.write_bytes(BIG + b"x" * 10_000)
    lines, position, _ = read(path)
    append(path, b"\n{}\n")
    later, _, tail = read(path, position)
    assert not tail.is_anew
    assert [line.number for line in later] == [len(lines) + 1, len(lines) + 2]


@pytest.mark.parametrize("block_bytes", [7, 5000, 1 << 20])
def test_lines_that_are_not_wanted_are_left_out_and_counted(
    path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(tail_module, "BLOCK_BYTES", block_bytes)
    path.write_bytes(b"-" + b"x" * 9000 + b"\n{}\n-\n[" + b"y" * 9000 + b"]\n-last")
    with Tail(path, settle_ms=0) as tail:
        tail.wanted = lambda head: 0 if head.startswith(b"-") else None
        lines = [(line.number, line.raw[:1]) for line in tail]
        position = tail.position
    assert lines == [(2, b"{"), (4, b"[")]
    assert position.lines == 4
    append(path, b"\n7\n")
    assert [line.number for line in read(path, position)[0]] == [5, 6]


def test_what_is_asked_about_a_line_is_asked_after_those_before_it_were_taken(path: Path) -> None:
    path.write_bytes(b"-1\n+\n-2\n")
    taken: list[bytes] = []
    with Tail(path) as tail:
        tail.wanted = lambda head: 0 if b"+" in taken and head.startswith(b"-") else None
        for line in tail:
            taken.append(line.raw)
    assert taken == [b"-1", b"+"]


def test_a_line_that_is_not_wanted_is_never_held(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"-")
        for _ in range(64):
            file.write(b"x" * 1_000_000)
        file.write(b"\n{}\n")
    tracemalloc.start()
    with Tail(path) as tail:
        tail.wanted = lambda head: 0 if head.startswith(b"-") else None
        assert [line.number for line in tail] == [2]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8_000_000


def test_the_bytes_before_a_line_can_be_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail_module, "BLOCK_BYTES", 5)
    path.write_bytes(b"[1]\n\n[22]\n[333]")
    before = []
    with Tail(path, settle_ms=0) as tail:
        for _ in tail:
            before.append(b"".join(tail.blocks_before(tail.line_offset)))
    assert before == [b"", b"[1]\n\n"]
    path.write_bytes(b'{}\n{"a":1}')
    with Tail(path, settle_ms=0) as tail:
        offsets = [tail.line_offset for _ in tail]
    assert offsets == [0, 3]


BIG = b"".join(b'{"line":%d}\n' % number for number in range(2000))


@pytest.mark.parametrize(
    "after",
    [
        b"",
        BIG[:-100],
        b"!" + BIG[1:],
        b"!" + BIG[1:] + b"more\n",
        BIG[:-10] + b"!" + BIG[-9:] + b"more\n",
        BIG[:9000] + b"cut\n" * 10_000,
        BIG.replace(b"1000", b"9999"),
    ],
)
def test_a_file_that_is_not_the_one_that_was_read_is_read_from_its_beginning(path: Path, after: bytes) -> None:
    path.write_bytes(BIG)
    os.utime(path, ns=(0, 0))
    position = read(path)[1]
    path.write_bytes(after)
    lines, _, tail = read(path, position)
    assert tail.is_anew
    assert lines == read(path)[0]


def test_a_file_with_another_inode_is_read_from_its_beginning(path: Path) -> None:
    path.write_bytes(BIG)
    position = read(path)[1]
    path.rename(path.with_name("old"))
    path.write_bytes(BIG + b"{}\n")
    assert read(path, position)[2].is_anew


def test_a_file_that_was_moved_goes_on(path: Path) -> None:
    path.write_bytes(BIG)
    position = read(path)[1]
    moved = path.rename(path.with_name("moved"))
    append(moved, b"{}\n")
    lines, _, tail = read(moved, position)
    assert not tail.is_anew
    assert [line.number for line in lines] == [2001]


def test_the_position_is_of_the_bytes_that_were_read_though_the_file_changes_meanwhile(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail_module, "BLOCK_BYTES", 100)
    path.write_bytes(BIG)
    with Tail(path) as tail:
        next(iter(tail))
        path.write_bytes(b"#" + BIG[1:] + b"more\n")
        position = tail.position
    assert read(path, position)[2].is_anew


def test_a_pipe_in_the_place_of_a_file_is_an_error_and_holds_nobody(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(OSError, match="not a regular file"):
        read(path)


def test_a_pass_stops_where_it_is_told_to(path: Path) -> None:
    path.write_bytes(b"1\n22\n333\n")
    with Tail(path, until=5) as tail:
        assert [line.raw for line in tail] == [b"1", b"22"]
        assert (tail.position.offset, tail.position.lines, tail.is_torn) == (5, 2, False)


@pytest.mark.parametrize("block_bytes", [7, 5000, 1 << 20])
def test_of_a_line_no_more_is_read_than_is_wanted(
    path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(tail_module, "BLOCK_BYTES", block_bytes)
    enough = {b"a": None, b"b": 0, b"c": 3}
    lines = [letter * length for letter in (b"a", b"b", b"c") for length in (2, 9000, 100, 4095, 4096, 4097)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    with Tail(path, wanted=lambda beginning: enough[beginning[:1]]) as tail:
        found = list(tail)
        assert tail.position.offset == path.stat().st_size
    assert found == [
        *(Line(number, line) for number, line in enumerate(lines[:6], 1)),
        *(Line(number, line[:3], is_cut=True) for number, line in enumerate(lines[12:], 13)),
    ]


def test_what_is_wanted_of_a_line_is_asked_when_the_lines_before_it_were_yielded(path: Path) -> None:
    path.write_bytes(b"".join(b"%d" % number * 6000 + b"\n" for number in range(4)))
    seen: list[bytes] = []
    with Tail(path, wanted=lambda beginning: 0 if beginning[:1] in seen else None) as tail:
        for line in tail:
            seen += [line.raw[:1], b"%d" % (int(line.raw[:1]) + 1)]
    assert seen == [b"0", b"1", b"2", b"3"]


def test_a_line_that_is_not_wanted_takes_no_memory(path: Path) -> None:
    with path.open("wb") as file:
        for letter in (b"b", b"c"):
            for _ in range(32):
                file.write(letter * (1 << 20))
            file.write(b"\n")
    tracemalloc.start()
    try:
        with Tail(path, wanted=lambda beginning: 0 if beginning.startswith(b"b") else 10) as tail:
            assert [line.raw for line in tail] == [b"c" * 10]
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("ending", [b"", b"\n"])
def test_an_unfinished_line_of_which_only_the_beginning_is_wanted_waits_for_its_end(path: Path, ending: bytes) -> None:
    path.write_bytes(b"{}\n" + b"c" * 9000 + ending)
    with Tail(path, wanted=lambda beginning: 3 if beginning.startswith(b"c") else None, settle_ms=60_000) as tail:
        found = [line.raw for line in tail]
        assert (found, tail.is_torn) == (([b"{}", b"ccc"], False) if ending else ([b"{}"], True))
        assert tail.position.offset == (path.stat().st_size if ending else 3)
