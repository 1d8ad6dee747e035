"""What can be asked: the arguments of every door, with their types, ranges and defaults.

The models are strict and refuse unknown arguments. Doors that carry text only (a URL, a command
line) read it with `from_strings` first, which turns words into the types declared here.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from schemas.errors import InvalidArgument, quoted
from schemas.items import Kind
from schemas.texts import without_surrogates

MAX_SEARCH_LIMIT = 20
MAX_SESSIONS_LIMIT = 200
MAX_WORD_CHARS = 4096

Presence = Literal["include", "exclude", "only"]
Inclusion = Literal["include", "exclude"]
Word = Annotated[str, Field(max_length=MAX_WORD_CHARS)]


def _as_list(value: Any) -> Any:
    """One word where a list is meant is as good: several are separated by commas, as in a URL."""
    return value.split(",") if isinstance(value, str) else value


Words = Annotated[list[Word], BeforeValidator(_as_list)]
Kinds = Annotated[list[Annotated[Kind, Field(strict=False)]], BeforeValidator(_as_list)]

_WHOLE_NUMBER = re.compile("-?[0-9]{1,20}")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


class Request(BaseModel):
    """A call's arguments, checked; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def read(cls, arguments: Mapping[str, Any]) -> Self:
        """Check arguments that have their types already, as JSON gives them.

        Raises:
            InvalidArgument: the first argument that is unknown, missing, of the wrong type or out of range.
        """
        try:
            return cls.model_validate(arguments)
        except ValidationError as error:
            raise cls._refusal(error) from None

    @classmethod
    def from_strings(cls, arguments: Mapping[str, Sequence[str]]) -> Self:
        """Check arguments that are words: each name with all the values it was given.

        Lists are repeated or separated by commas; booleans are `true`, `false`, `1` or `0`.

        Raises:
            InvalidArgument: as `read`, or a single-valued argument was given twice.
        """
        typed: dict[str, Any] = {}
        for name, values in arguments.items():
            field = cls.model_fields.get(name)
            # Bytes of a command line that are not UTF-8 come as lone surrogates.
            words = [without_surrogates(value) for value in values]
            typed[name] = words[-1] if field is None else _typed(name, field, words)
        return cls.read(typed)

    @classmethod
    def argument_names(cls) -> list[str]:
        return list(cls.model_fields)

    @classmethod
    def _refusal(cls, error: ValidationError) -> InvalidArgument:
        problem = error.errors(include_url=False, include_context=True)[0]
        name = str(problem["loc"][0]) if problem["loc"] else "arguments"
        if problem["type"] == "extra_forbidden":
            names = cls.argument_names()
            return InvalidArgument(name, f"unknown argument {quoted(name)}; there are {', '.join(names)}", names)
        if problem["type"] == "missing":
            return InvalidArgument(name, f"{name} is required")
        if not problem["loc"]:
            return InvalidArgument(name, "the arguments are not an object of names and values")
        return InvalidArgument(name, f"{name}: {problem['msg'][0].lower()}{problem['msg'][1:]}")


class Filters(Request):
    """Which sessions and turns a call is about."""

    project: Word | None = Field(None, description="A path or a name; `*` is every open project.")
    agent: Words = Field([], description="Agent names or registry ids, any case.")
    source: Words = Field([], description="Sources, such as `cydonia` or `turn-file`.")
    title: Word | None = Field(None, description="Only sessions whose title has this text.")
    since: Word | None = Field(None, description="From this date, ISO time or age (`30m`, `7d`, `4w`) on.")
    until: Word | None = Field(None, description="Up to then, included; as `since`.")
    archived: Presence = Field("include", description="Archived sessions.")
    subagents: Presence = Field("exclude", description="Sessions that another session started.")
    closed: Inclusion = Field("exclude", description="Sessions of closed projects.")
    cursor: Word | None = Field(None, description="The next page of an answer.")


class SearchRequest(Filters):
    """`session_search`: where was this said?"""

    query: str = Field(description="What to find, at most 4,096 characters.")
    session: str | None = Field(None, description="Only in this session, or in the turns written on it.")
    mode: Literal["text", "regex", "words"] = Field(
        "text", description="`text`: exactly this; `regex`; `words`: ranked words."
    )
    full: bool = Field(False, description="Look through detail, too.")
    kind: Kinds = Field([], description="Only items of these kinds.")
    copies: Inclusion = Field("exclude", description="Turns that a fork or resume brought along.")
    current: Inclusion = Field("exclude", description="The turn that the caller is in.")
    order: Literal["newest", "oldest", "best"] | None = Field(
        None, description="By time; `best`: by how well it fits, the default of words mode."
    )
    limit: int = Field(MAX_SEARCH_LIMIT, ge=1, le=MAX_SEARCH_LIMIT, description="Turns at most.")
    context: int = Field(0, ge=0, le=5, description="Lines of the item before and after.")
    explain: bool = Field(False, description="Say what the query cost, and why.")


class ReadRequest(Request):
    """`session_read`: what was said there?"""

    session: str = Field(description="A reference, a number, an id or its beginning, a handle or a title.")
    turns: Word | None = Field(None, description="`5` or `5-7`; wins over turns on the reference.")
    project: Word | None = Field(None, description="A path or a name; `*` is every open project.")
    full: bool = Field(False, description="Thinking, tool input and output, and processes, too.")
    max_chars: int | None = Field(None, ge=1000, description="Cut the answer there.")
    cursor: Word | None = Field(None, description="Reads on where an answer was cut.")


class SessionsRequest(Filters):
    """`sessions`, over MCP `session_list`: which sessions are there?"""

    limit: int = Field(50, ge=1, le=MAX_SESSIONS_LIMIT, description="Sessions at most.")


def _typed(name: str, field: FieldInfo, values: Sequence[str]) -> Any:
    if get_origin(field.annotation) is list:
        return [part for value in values for part in value.split(",")]
    if len(values) > 1:
        raise InvalidArgument(name, f"{name} was given {len(values)} times; it takes one value")
    value = values[0]
    kinds = {field.annotation, *get_args(field.annotation)}
    if bool in kinds:
        if value not in _BOOLEANS:
            raise InvalidArgument(name, f"{name} takes true, false, 1 or 0, not {quoted(value)}")
        return _BOOLEANS[value]
    if int in kinds:
        if not _WHOLE_NUMBER.fullmatch(value):
            raise InvalidArgument(name, f"{name} takes a whole number, not {quoted(value)}")
        return int(value)
    return value
