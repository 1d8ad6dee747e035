"""Lines that are dropped before they are decoded."""

import json
from typing import Any

import pytest

from indexer.sources.claude_code.heads import DROPPED_ATTACHMENTS, DROPPED_TYPES, can_be_dropped

ENVELOPE: dict[str, Any] = {
    "parentUuid": None,
    "isSidechain": False,
    "cwd": 'C:\\a "quoted" folder',
    "number": -1.5e3,
    "empty": {},
    "none": [],
}


def encoded(value: Any, *, is_spaced: bool = False) -> bytes:
    return json.dumps(value, separators=None if is_spaced else (",", ":")).encode()


@pytest.mark.parametrize("is_spaced", [False, True])
@pytest.mark.parametrize("type_", sorted(DROPPED_TYPES))
def test_a_type_is_found_behind_other_keys(type_: bytes, is_spaced: bool) -> None:
    line = {**ENVELOPE, "type": type_.decode(), "data": {"type": "user"}}
    assert can_be_dropped(encoded(line, is_spaced=is_spaced))
    assert can_be_dropped(b"\xef\xbb\xbf " + encoded(line, is_spaced=is_spaced))
    assert not can_be_dropped(encoded({**line, "type": "user"}, is_spaced=is_spaced))


@pytest.mark.parametrize("type_", sorted(DROPPED_ATTACHMENTS))
def test_an_attachments_kind_is_found_before_and_behind_its_type(type_: bytes) -> None:
    inner = {"type": type_.decode(), "content": "x" * 10_000}
    assert can_be_dropped(encoded({**ENVELOPE, "type": "attachment", "uuid": "u", "attachment": inner}))
    assert can_be_dropped(encoded({**ENVELOPE, "attachment": inner, "type": "attachment"}))
    kept = {"type": "queued_command"}
    assert not can_be_dropped(encoded({**ENVELOPE, "type": "attachment", "attachment": kept}))
    assert not can_be_dropped(encoded({**ENVELOPE, "attachment": kept, "type": "attachment"}))


@pytest.mark.parametrize(
    "line",
    [
        {"type": "user", "message": {"content": '{"type":"progress"}'}},
        {"message": {"type": "progress"}, "type": "user"},
        {"content": '","type":"progress","x":"', "type": "user"},
        {"content": 'a\\","type":"progress', "type": "user"},
        {"type": "user", "attachment": {"type": "file"}},
        {"type\u0020": "progress", "type": "user"},
        {"a": "x" * 5000, "type": "progress"},
        {"a": [1], "type": "progress"},
        {"type": "progressive"},
        {"type": ["progress"]},
        {},
    ],
)
def test_what_is_not_surely_of_that_type_is_decoded(line: dict[str, Any]) -> None:
    assert not can_be_dropped(encoded(line))


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'"type":"progress"', b'{"type":"prog', b'{"a":"', b"\0\0", b"{,}"])
def test_what_is_no_object_or_goes_on_is_decoded(raw: bytes) -> None:
    assert not can_be_dropped(raw)
