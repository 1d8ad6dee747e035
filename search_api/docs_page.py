"""The page at /docs, made from the OpenAPI document: no scripts, nothing loaded from elsewhere."""

import re
from html import escape
from typing import Any

from schemas import errors
from schemas.errors import TurndexError

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #8886; }
code { font: 0.9em ui-monospace, monospace; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 1rem 0.3rem 0; border-bottom: 1px solid #8883; }
"""


def docs_page(document: dict[str, Any]) -> str:
    """The page as HTML."""
    info = document["info"]
    title = escape(f"{info['title']} {info['version']}")
    routes = "".join(_route(path, methods, document) for path, methods in document["paths"].items())
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"<h1>{title}</h1><p>{escape(info['description'])}</p>"
        f"<p>The same for programs: <a href='/openapi.json'>/openapi.json</a>.</p>{routes}{_errors()}</html>"
    )


def _route(path: str, methods: dict[str, Any], document: dict[str, Any]) -> str:
    operation = methods["get"]
    names = " ".join(method.upper() for method in methods)
    content = operation["responses"]["200"]["content"]
    answers = content.get("application/json", {}).get("schema", {})
    keys = ", ".join(f"<code>{escape(key)}</code>" for key in _keys(answers, document))
    return (
        f"<h2 id='{escape(path)}'><code>{names} {escape(path)}</code></h2><p>{_prose(operation['summary'])}</p>"
        + _arguments(operation.get("parameters", []))
        + (f"<p>Answers {keys}.</p>" if keys else "")
    )


def _arguments(parameters: list[dict[str, Any]]) -> str:
    if not parameters:
        return ""
    rows = "".join(
        f"<tr><td><code>{escape(parameter['name'])}</code><td>{escape(_type(parameter['schema']))}"
        f"<td>{_default(parameter)}<td>{_prose(parameter['description'])}"
        for parameter in parameters
    )
    return f"<table><tr><th>argument<th>takes<th>default<th>meaning{rows}</table>"


def _default(parameter: dict[str, Any]) -> str:
    if parameter["required"]:
        return "required"
    default = parameter["schema"].get("default")
    return "" if default in (None, []) else f"<code>{escape(str(default).lower())}</code>"


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"] if option != {"type": "null"})
    if "enum" in schema:
        return ", ".join(schema["enum"])
    if schema["type"] == "array":
        return f"list of {_type(schema['items'])}"
    bounds = [str(schema[key]) for key in ("minimum", "maximum") if key in schema]
    return f"{schema['type']} {' to '.join(bounds)}".rstrip()


def _keys(schema: dict[str, Any], document: dict[str, Any]) -> list[str]:
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return list(schema.get("properties", {}))


def _errors() -> str:
    rows = "".join(
        f"<tr id='{error.code}'><td><code>{error.code}</code><td>{error.status}<td>{escape(error.title)}"
        for error in error_kinds()
    )
    return f"<h2>Refusals</h2><table><tr><th>code<th>status<th>title{rows}</table>"


def error_kinds() -> list[type[TurndexError]]:
    """One kind of refusal for every code, in the order in which they are declared."""
    kinds: dict[str, type[TurndexError]] = {}
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, TurndexError):
            kinds.setdefault(kind.code, kind)
    return list(kinds.values())


def _prose(text: str) -> str:
    """A description with its `code` set as such."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
