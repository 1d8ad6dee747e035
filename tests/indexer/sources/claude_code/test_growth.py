"""Files that grow, are torn, cut, rewritten, or hold what is no line."""

import os

import pytest

from indexer.sources.base import Unsettled
from tests.indexer.sources.claude_code.written import Written, agent, call, result, user
from tests.indexer.sources.model import transcript_of


def test_a_torn_last_line_waits_for_its_end(written: Written) -> None:
    written.add(user("u"))
    raw = written.encoded(agent("grün"))
    cut = raw.index("ü".encode()) + 1
    written.add_bytes(raw[:cut])
    session = written.read()
    assert session.texts == [["u"]]
    written.add_bytes(raw[cut:])
    assert written.read_on(session).texts == [["u", "grün"]]


def test_a_line_without_an_end_is_read_soon_again(written: Written) -> None:
    written.add(user("u"))
    written.add_bytes(b'{"type":"user"')
    session = written.read()
    assert session.texts == [["u"]]
    with pytest.raises(Unsettled):
        written.read_on(session, settle_ms=600_000)


def test_lines_that_are_none_hide_nothing(written: Written) -> None:
    written.add_bytes(b"\xef\xbb\xbf")
    written.add(user("u"))
    written.add_bytes(b'\n\0\0\0\0\n{"type":"assistant","message":{"cont\n[]\n{}\n{"type":7}\n')
    session = written.read(agent("a"))
    assert session.texts == [["u", "a"]]
    assert session.reasons == [
        (3, "NUL bytes"),
        (4, "not JSON"),
        (5, "not a JSON object"),
        (6, 'no "type"'),
        (7, 'no "type"'),
    ]


def test_a_line_that_cannot_matter_is_not_decoded(written: Written) -> None:
    session = written.read(user("u"))
    written.add_bytes(b'{"parentUuid":"u0","type":"progress","data":{{{\n{"type":"mode",,,\n')
    written.add_bytes(b'{"attachment":{"type":"file","content":{{{\n')
    written.add(agent("a"))
    assert written.read_on(session).texts == [["u", "a"]]
    assert session.skipped == []


def test_with_nothing_new_there_is_no_part(written: Written) -> None:
    session = written.read(user("u"))
    parts = list(written.source.read(transcript_of(written.path, written.root), session.checkpoint, settle_ms=0))
    assert parts == []


def test_a_file_that_was_rewritten_is_read_from_its_beginning(written: Written) -> None:
    session = written.read(user("u"), agent("a"), user("v"), user("w"))
    raw = written.path.read_bytes()
    written.path.write_bytes(raw[: raw.index(b'"v"')] + b'"V"' + raw[raw.index(b'"v"') + 3 :] + b"\n")
    os.utime(written.path, ns=(0, 1))
    assert written.read_on(session).texts == [["u", "a"], ["V"], ["w"]]


def test_a_file_that_was_cut_has_fewer_turns(written: Written) -> None:
    session = written.read(user("u"), agent("a"), user("v"), agent("b", id="m2"))
    raw = written.path.read_bytes()
    written.path.write_bytes(raw[: raw.index(b'{"parentUuid":"u1"')])
    assert written.read_on(session).texts == [["u", "a"]]


def test_a_resumed_session_goes_on_in_its_file(written: Written) -> None:
    session = written.read(user("u"), agent("a"))
    written.add(user("v", version="2.1.200"), agent("b", id="m2"))
    assert written.read_on(session).texts == [["u", "a"], ["v", "b"]]


def test_a_checkpoint_of_another_version_is_not_used(written: Written) -> None:
    session = written.read(user("u"))
    session.checkpoint = {"version": 0}
    assert written.read_on(session).texts == [["u"]]


def test_a_tool_turns_from_running_to_its_end_line_by_line(written: Written) -> None:
    session = written.read(user("u"))
    states = []
    for line in (agent(call("t", "Bash", command="make")), agent("Waiting."), result("t", "no", is_error=True)):
        written.add(line)
        states.append(written.read_on(session).turns[0].items[1].status)
    assert states == ["running", "running", "failed"]
