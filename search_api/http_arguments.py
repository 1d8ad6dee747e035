"""The arguments of an HTTP call: query parameters or a JSON object, read by the models of `schemas.requests`.

Two things are HTTP's own: `q` is another name of `query`, and `format` chooses the form of the answer.
"""

import json
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request

from schemas.errors import InvalidArgument, InvalidQuery, UnsupportedMediaType, quoted
from schemas.requests import Request as Arguments
from schemas.texts import trimmed, without_surrogates

FORMATS = ("json", "text")
ALIASES = {"q": "query"}

Model = TypeVar("Model", bound=Arguments)


class NoArguments(Arguments):
    """Of a route that takes none but `format`."""


async def read_arguments(request: Request, model: type[Model]) -> Model:
    """Read a call's arguments; sets `request.state.is_text` where `format` is among them.

    Raises:
        InvalidArgument: the first one that is off, or a body that is no JSON object.
        UnsupportedMediaType: a body that is not called `application/json`.
        TooLarge: a body over the limit.
    """
    words = _query_words(request)
    if request.method == "GET":
        _choose_form(request, words.pop("format", None))
        _check_names(words, model)
        if "session" in model.model_fields and any(not trimmed(word) for word in words.get("session", ())):
            raise InvalidArgument(
                "session", "session is empty: `#` must be written %23 in a URL, or left out: session=43:5"
            )
        if "query" in model.model_fields and words.get("query") == [""]:
            raise InvalidQuery("the query is blank; a `#` must be written %23 in a URL")
        return model.from_strings(words)
    _choose_form(request, words.pop("format", None))
    if words:
        raise InvalidArgument(next(iter(words)), "the arguments of a POST stand in its body, not in the URL")
    arguments = await _json_object(request)
    if "format" in arguments:
        _choose_form(request, [arguments.pop("format")])
    _check_names(arguments, model)
    return model.read(arguments)


def _query_words(request: Request) -> dict[str, list[str]]:
    try:
        pairs = parse_qsl(request.scope["query_string"].decode(), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidArgument("query string", "the query string is not UTF-8") from error
    words: dict[str, list[str]] = {}
    for name, word in pairs:
        words.setdefault(name, []).append(word)
    return words


def check_media_type(request: Request) -> None:
    """Refuse a body that is not called `application/json`.

    Raises:
        UnsupportedMediaType: its name is another, or it has none.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise UnsupportedMediaType(f"a POST carries application/json, not {quoted(media_type) or 'an unnamed type'}")


async def _json_object(request: Request) -> dict[str, Any]:
    check_media_type(request)
    body = await request.body()
    try:
        value = _loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument("body", "the body is no JSON") from error
    if not isinstance(value, dict):
        raise InvalidArgument("body", "the body is no JSON object of argument names and values")
    return value


def _loads(body: bytes) -> Any:
    """The body's value. Python's own parser takes halves of surrogate pairs, which callers cut out of texts now and
    then, and shows names that are given twice."""
    return json.loads(body.decode(), object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise InvalidArgument(name, f"{quoted(name)} was given twice; it takes one value")
        values[name] = _cleaned(value)
    return values


def _cleaned(value: Any) -> Any:
    if isinstance(value, list):
        return [_cleaned(one) for one in value]
    return without_surrogates(value) if isinstance(value, str) else value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _choose_form(request: Request, values: list[Any] | None) -> None:
    if values is None:
        return
    if len(values) > 1:
        raise InvalidArgument("format", f"format was given {len(values)} times; it takes one value")
    if values[0] not in FORMATS:
        raise InvalidArgument("format", f"format takes json or text, not {quoted(str(values[0]))}", FORMATS)
    request.state.is_text = values[0] == "text"


def _check_names(arguments: dict[str, Any], model: type[Arguments]) -> None:
    """Give aliases their argument's name, and refuse what the route does not take."""
    for alias, name in ALIASES.items():
        if alias in arguments and name in model.model_fields:
            if name in arguments:
                raise InvalidArgument(alias, f"{alias} and {name} are the same argument; give one of them")
            arguments[name] = arguments.pop(alias)
    names = [
        *model.argument_names(),
        *(alias for alias, name in ALIASES.items() if name in model.model_fields),
        "format",
    ]
    for name in arguments:
        if name not in names:
            raise InvalidArgument(name, f"unknown argument {quoted(name)}; there are {', '.join(names)}", names)
