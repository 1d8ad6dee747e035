"""What the JSON forms look like where they differ from the answers, typed so that a missing key is an error.

`Hit`, `SessionsAnswer`, `ProjectsAnswer` and `StatusAnswer` are their own JSON form.
"""

from typing import NotRequired, TypeAlias

from typing_extensions import TypedDict  # pydantic takes only this one before Python 3.12

from schemas.answers import Explanation, Hit, Indexing, LeftOut

TurnsForm = TypedDict("TurnsForm", {"from": int, "to": int})
"""The turns that were asked for, both included."""


class SearchForm(TypedDict):
    query: str
    hits: list[Hit]
    more: bool
    cursor: str | None
    notes: list[str]
    left_out: list[LeftOut]
    indexing: Indexing | None
    explain: Explanation | None
    took_ms: float


class TextItemForm(TypedDict):
    """A `user`, `agent`, `thinking` or `notice` item."""

    turn: int
    index: int
    kind: str
    text: str
    at: str | None
    copied_from: NotRequired[str]


class ToolItemForm(TypedDict):
    """A `tool` item; `input` and `output` only with `full`."""

    turn: int
    index: int
    kind: str
    label: str | None
    status: str | None
    input: NotRequired[str | None]
    output: NotRequired[str | None]
    at: str | None
    copied_from: NotRequired[str]


class ProcessItemForm(TypedDict):
    """A `process` item."""

    turn: int
    index: int
    kind: str
    command: str | None
    output: str | None
    at: str | None
    copied_from: NotRequired[str]


ItemForm: TypeAlias = TextItemForm | ToolItemForm | ProcessItemForm


class ReadForm(TypedDict):
    reference: str
    link: str | None
    project: str
    project_name: str
    session: int | None
    session_id: str
    title: str
    source: str
    agent: str | None
    archived: bool
    deleted: bool
    turns: TurnsForm | None
    count: int
    items: list[ItemForm]
    more: bool
    cursor: str | None
    notes: list[str]
