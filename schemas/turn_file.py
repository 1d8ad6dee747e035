"""Turn files: the open format for anything else that wants to be searchable, and its JSON Schema.

Append-only JSON Lines, UTF-8, one session a file, `*.turns.jsonl`; each line is one of the models below.
`python -m schemas.turn_file` writes the schema of a line to `schemas/json/turn-file-1.schema.json`.
"""

import json
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from schemas.items import Status

VERSION = 1
"""The version of the format that is written here; a reader takes from a higher one what it understands."""

SUFFIX = ".turns.jsonl"

MAX_ID_CHARS = 128

SCHEMA_FILE = Path(__file__).parent / "json" / "turn-file-1.schema.json"

Time: TypeAlias = Annotated[
    str, Field(description="ISO 8601; without a zone it is in the reader's.", json_schema_extra={"format": "date-time"})
]


class _Line(BaseModel):
    """A later version may add keys: a reader goes on without them."""

    model_config = ConfigDict(extra="allow", frozen=True)


class _ItemLine(_Line):
    at: Time | None = Field(None, description="When it was written. Left out: the time of the item before.")


class SessionLine(_Line):
    """The first line of a file; a later one changes title, agent and project."""

    type: Literal["session"]
    version: int = Field(VERSION, ge=1, description="The version of this format.")
    id: str = Field(min_length=1, max_length=MAX_ID_CHARS, description="The session's id, the same for ever.")
    project: str = Field(pattern="^/", description="The absolute path of the project; it need not exist.")
    title: str | None = Field(None, description="What the session is about.")
    agent: str | None = Field(None, description="Who answers, as a reader shows it.")
    at: Time | None = Field(None, description="When the session began.")


class UserLine(_ItemLine):
    """A message to the agent: it starts a turn."""

    type: Literal["user"]
    text: str


class AgentLine(_ItemLine):
    """What the agent said."""

    type: Literal["agent"]
    text: str


class ThinkingLine(_ItemLine):
    """What the agent thought."""

    type: Literal["thinking"]
    text: str


class NoticeLine(_ItemLine):
    """A stop reason, a failure, or what else befell the session."""

    type: Literal["notice"]
    text: str


class ToolLine(_ItemLine):
    """A tool call: it opens one, or completes the open one of its `id`, replacing what it gives."""

    type: Literal["tool"]
    id: str | None = Field(None, description="Links the lines of one call. Left out: the line is a call of its own.")
    label: str | None = Field(None, description="The call on one line.")
    status: Status | None = Field(None, description="Left out where a call opens: running.")
    input: str | None = Field(None, description="What the tool was given, where that is more than the label.")
    output: str | None = Field(None, description="What the tool answered.")


class ProcessLine(_ItemLine):
    """What the agent's own process wrote to its standard error."""

    type: Literal["process"]
    command: str | None = None
    output: str | None = None


class TitleLine(_Line):
    """The session's title from here on."""

    type: Literal["title"]
    text: str


class ArchivedLine(_Line):
    """Whether the session is archived from here on."""

    type: Literal["archived"]
    value: bool


TurnFileLine: TypeAlias = (
    SessionLine | UserLine | AgentLine | ThinkingLine | ToolLine | NoticeLine | ProcessLine | TitleLine | ArchivedLine
)

KEYS: dict[str, frozenset[str]] = {
    get_args(model.model_fields["type"].annotation)[0]: frozenset(model.model_fields)
    for model in get_args(TurnFileLine)
}
"""The keys that each type of line may have, by type."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of one line."""
    line: TypeAdapter[TurnFileLine] = TypeAdapter(Annotated[TurnFileLine, Field(discriminator="type")])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of a turn file, version 1",
        **line.json_schema(),
    }


def schema_text() -> str:
    """The schema as it is committed."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
