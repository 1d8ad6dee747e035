import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.decode import BadJson, decode, decode_object

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
    max_leaves=8,
)


@given(JSON, st.booleans())
def test_what_json_writes_is_what_it_was(value: Any, is_ascii: bool) -> None:
    assert decode(json.dumps(value, ensure_ascii=is_ascii).encode()) == value


@given(st.text(alphabet=st.characters(exclude_categories=[]) | st.sampled_from('\ud83d\udc4d\udfff\\"u')))
def test_every_lone_surrogate_becomes_a_sign_and_all_else_is_kept(text: str) -> None:
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    decoded = decode(json.dumps({text: [text]}).encode())
    expected = "".join("\ufffd" if 0xD800 <= ord(char) <= 0xDFFF else char for char in _joined(text))
    assert decoded == {expected: [expected]}
    assert "\ufffd" in expected or joined == expected


def _joined(text: str) -> str:
    """Pairs of surrogates, as JSON writes them, are one character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b'{"a":"\xff\xc3"}', {"a": "\ufffd\ufffd"}),
        (b'{"\\ud83d":"\\ud83d\\u0041\\\\ud83d"}', {"\ufffd": "\ufffdA\\ud83d"}),
        (b'{"a":123456789012345678901234567890}', {"a": 1.2345678901234568e29}),
        (b'{"a":Infinity,"b":1e999}', {"a": math.inf, "b": math.inf}),
        (b'{"a":' + b"9" * 5000 + b"}", {"a": math.inf}),
        (b'{"a":"\\ud83d","b":-' + b"9" * 30 + b"}", {"a": "\ufffd", "b": -1e30}),
        (b"[" * 400 + b'"\\ud83d"' + b"]" * 400, None),
    ],
)
def test_oddities_are_read(raw: bytes, value: Any) -> None:
    decoded = decode(raw)
    if value is not None:
        assert decoded == value


def test_nan_is_read() -> None:
    assert math.isnan(decode(b"[NaN]")[0])


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not JSON"),
        (b"\0\0\0", "not JSON"),
        (b'{"a":"cut', "not JSON"),
        (b'{"a":"\\ud83d', "not JSON"),
        (b'{"a":1}{"b":2}', "not JSON"),
        (b'{"a":' * 1_000_000, "not JSON"),
        (b"[" * 300_000, "not JSON"),
    ],
)
def test_what_is_no_json_fails_cleanly(raw: bytes, reason: str) -> None:
    with pytest.raises(BadJson) as caught:
        decode(raw)
    assert caught.value.reason == reason


def test_what_is_nested_beyond_reason_hides_nothing_beside_it() -> None:
    deep = b'[{"]":"\\"}"},' * 50_000 + b"1" + b"]" * 50_000
    raw = b'{"before":1,"deep":' + deep + b',"after":[{"text":"hello"}]}'
    value = decode(raw)
    assert (value["before"], value["after"]) == (1, [{"text": "hello"}])
    depth = 0
    while isinstance(value, dict | list):
        value = value["deep"] if isinstance(value, dict) else value[-1]
        depth += 1
    assert (depth, value) == (500, None)


def test_an_object_is_asked_for() -> None:
    with pytest.raises(BadJson, match="not a JSON object"):
        decode_object(b"[1]")
