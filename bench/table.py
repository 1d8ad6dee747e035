"""Tables in Markdown from the newest comparison."""

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from bench.kept import Document, newest_first
from bench.results import FOLDER

Tool = dict[str, Any]


def tables(document: Document) -> str:
    """Three tables: each tool as a whole; times by class; what is not found, by class."""
    result, machine = document["result"], document["machine"]
    turns, sessions, text_mb = result["turns"], result["sessions"], result["text_mb"]
    about = (
        f"{turns:,} turns in {sessions:,} sessions, {text_mb:,.0f} MB of text; {machine['cores']} cores "
        f"({machine['processor']}), {machine['system'].split()[0]}, {document['at'][:10]}."
    )
    parts = [about, _overview(result), _times(result), _missing(result)]
    left_out = [f"Left out: {name} ({why})." for name, why in result["left_out"].items()]
    return "\n\n".join([*parts, *left_out])


def _overview(result: dict[str, Any]) -> str:
    head = ["", "asks for", "search, median", "slowest class", "finds", "wrong", "index, MB/s of text", "disk / text"]
    rows = [[f"{name} {tool['version']}", *_whole(tool)] for name, tool in result["tools"].items()]
    return _table(head, rows)


def _whole(tool: Tool) -> Iterator[str]:
    yield "the text" if tool["asks"] == "literal" else "words"
    times = [one["p50_ms"] for one in tool["classes"].values() if one["p50_ms"] is not None]
    yield milliseconds(statistics.median(times))
    yield milliseconds(max(times))
    answers = [answer for one in tool["classes"].values() for answer in one["literals"].values()]
    yield share_found(answers)
    yield f"{sum(answer.get('wrong', 0) for answer in answers):,}"
    index = tool["index"]
    yield "–" if index is None else f"{index['text_mb_per_second']:.1f}"
    yield "–" if index is None else f"{index['disk_per_text']:.2f}"


def share_found(answers: Sequence[dict[str, Any]]) -> str:
    """Of all sessions that have what was asked for, over those literals that were answered to the end."""
    judged = [answer for answer in answers if answer.get("missed") is not None]
    found, missed = (sum(answer[name] for answer in judged) for name in ("found", "missed"))
    if missed == 0:
        return "all"
    # Rounded down, as 100 % would say that nothing is missing.
    return f"{int(1000 * found / (found + missed)) / 10} %"


def _times(result: dict[str, Any]) -> str:
    tools = {name: tool for name, tool in result["tools"].items() if tool["asks"] == "literal"}
    rows = [
        [name, *(milliseconds(tool["classes"][name]["p50_ms"]) for tool in tools.values())]
        for name in result["literals"]
    ]
    return _table(["median of a search", *tools], rows)


def _missing(result: dict[str, Any]) -> str:
    tools = {name: tool for name, tool in result["tools"].items() if tool["asks"] == "words"}
    rows = [
        [name, *(share_found(list(tool["classes"][name]["literals"].values())) for tool in tools.values())]
        for name in result["literals"]
        if any(result["turns_with"][literal] for literal in result["literals"][name])
    ]
    return _table(["finds, of the sessions that have it", *tools], rows)


def milliseconds(value: float | None) -> str:
    """Three digits."""
    if value is None:
        return "refused"
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    line = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, line, *rows])


@click.command()
@click.option("--results", type=click.Path(path_type=Path), default=FOLDER, help="Where results are kept.")
def table(results: Path) -> None:
    """Print the newest comparison as tables in Markdown."""
    kept = newest_first("compare", results)
    if not kept:
        raise click.ClickException(f"there is no comparison in {results}; run: python -m bench compare")
    click.echo(tables(kept[0]))
