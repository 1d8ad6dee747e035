import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from schemas.turn_file import KEYS, SCHEMA_FILE, TurnFileLine, schema_text


def test_the_committed_schema_is_current() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(), "run python -m schemas.turn_file"


def test_the_schema_allows_keys_of_later_versions_on_every_line() -> None:
    schema = json.loads(schema_text())
    lines = {name.removeprefix("#/$defs/") for name in schema["discriminator"]["mapping"].values()}
    assert len(lines) == len(KEYS) == 9
    assert all(schema["$defs"][name]["additionalProperties"] is True for name in lines)
    assert [variant["$ref"] for variant in schema["oneOf"]] == [f"#/$defs/{name}" for name in _in_order(schema)]


def _in_order(schema: dict[str, Any]) -> list[str]:
    return [variant["$ref"].rpartition("/")[2] for variant in schema["oneOf"]]


LINES: TypeAdapter[TurnFileLine] = TypeAdapter(TurnFileLine)


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"session","version":1,"id":"b7c1e0a2-77","project":"/home/a/kettle","at":"2026-11-30T10:00:00Z"}',
        '{"type":"user","text":"The span is off.","at":"2026-11-30T10:00:01Z","later":true}',
        '{"type":"tool","id":"t1","status":"failed","output":"FAILED"}',
        '{"type":"process","command":"codex","output":"warning: …"}',
        '{"type":"archived","value":true}',
    ],
)
def test_lines_of_the_format_fit_the_models(line: str) -> None:
    assert LINES.validate_json(line).type == json.loads(line)["type"]


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"session","id":"","project":"/a"}',
        '{"type":"session","id":"x","project":"a"}',
        '{"type":"user"}',
        '{"type":"tool","status":"done"}',
        '{"type":"plan","text":"x"}',
        "{}",
    ],
)
def test_other_lines_do_not(line: str) -> None:
    with pytest.raises(ValidationError):
        LINES.validate_json(line)
