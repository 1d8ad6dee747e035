"""Plots of the comparisons that are kept: time by class, and cost against the size of an archive."""

import importlib
import statistics
from pathlib import Path
from typing import Any

import click

from bench.kept import by_turns
from bench.peers import PEERS
from bench.results import FOLDER

IMAGES = Path(__file__).parents[1] / "docs" / "images"

COLOURS = {
    "turndex": "#d1495b",
    "turndex search": "#f0a6a0",
    "turndex, Claude Code": "#8f1d31",
    "rg -F -i": "#1b1b1b",
    "FTS5 trigram": "#2e6fb7",
    "FTS5 unicode61": "#8cbcea",
    "plain scan": "#9a9a9a",
    "agentsview": "#3a8f5c",
    "agentsview fts": "#9bd3a6",
    "fast-resume": "#e09f3e",
    "cc-search": "#7b52ab",
    "aichat": "#a47148",
    "deja": "#b79fd6",
    "deja --re": "#00a6a6",
}
"""One a tool, in all plots."""

DPI = 110


@click.command()
@click.option("--results", type=click.Path(path_type=Path), default=FOLDER, help="Where results are kept.")
@click.option("--images", type=click.Path(path_type=Path), default=IMAGES, help="Where images are written.")
def plots(results: Path, images: Path) -> None:
    """Draw the comparisons that are kept (needs matplotlib, which `make plots` brings)."""
    compared = {turns: document["result"] for turns, document in by_turns("compare", results).items()}
    if not compared:
        raise click.ClickException(f"there is no comparison in {results}; run: python -m bench compare")
    images.mkdir(parents=True, exist_ok=True)
    pyplot = _pyplot()
    # Of the comparisons with the most tools that of the largest archive.
    latency(
        pyplot,
        max(compared.values(), key=lambda result: (len(result["tools"]), result["turns"])),
        images / "latency.png",
    )
    click.echo(f"drew {images / 'latency.png'}")
    if len(compared) > 1:
        growth(pyplot, compared, images / "growth.png")
        click.echo(f"drew {images / 'growth.png'}")
    else:
        click.echo("growth needs comparisons of at least two sizes")


def latency(pyplot: Any, result: dict[str, Any], path: Path) -> None:
    """A dot for each tool and class; hollow where the tool missed something or found what is not there."""
    names = list(result["literals"])
    figure, panels = pyplot.subplots(1, 2, figsize=(11, 6.4), sharex=True, sharey=True, layout="constrained")
    titles = {"literal": "asked for the text anywhere", "words": "asked for words: another question"}
    for panel, (asks, title) in zip(panels, titles.items(), strict=True):
        tools = {name: tool for name, tool in result["tools"].items() if name == "turndex" or tool["asks"] == asks}
        for place, (name, tool) in enumerate(tools.items()):
            # Side by side within the row of a class, so that equal times hide nobody.
            shift = (place - (len(tools) - 1) / 2) * 0.7 / len(tools)
            dots = [
                (one["p50_ms"], row + shift, is_right(one))
                for row, one in enumerate(tool["classes"].values())
                if one["p50_ms"] is not None
            ]
            colour = COLOURS[name]
            edges = {"edgecolors": colour, "linewidths": 1.3, "s": 60 if name == "turndex" else 34, "zorder": 3}
            right = [(x, y) for x, y, is_filled in dots if is_filled]
            wrong = [(x, y) for x, y, is_filled in dots if not is_filled]
            panel.scatter([x for x, _ in right], [y for _, y in right], c=colour, label=name, **edges)
            panel.scatter([x for x, _ in wrong], [y for _, y in wrong], c="white", **edges)
        panel.set_title(title, loc="left", fontsize=11)
        panel.set_xscale("log")
        panel.set_xlabel("milliseconds to a first page: median, log scale")
        panel.set_yticks(range(len(names)), names)
        for row in range(0, len(names), 2):
            panel.axhspan(row - 0.5, row + 0.5, color="#f4f4f4", zorder=0)
        _quiet(panel)
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.11), ncol=3, frameon=False, fontsize=9)
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    _milliseconds(pyplot, panels[0])
    figure.suptitle(
        f"Search in {result['turns']:,} turns ({result['text_mb']:,.0f} MB of text). "
        "Hollow: missed something, or found what is not there",
        x=0.01,
        ha="left",
        fontsize=12,
    )
    _save(pyplot, figure, path)


def growth(pyplot: Any, compared: dict[int, dict[str, Any]], path: Path) -> None:
    """The cost of a search, and of the index, over the number of turns, for those that are asked the same."""
    figure, panels = pyplot.subplots(1, 2, figsize=(11, 5), layout="constrained")
    for kind in (kind for kind in PEERS if not kind.asks_words):
        measured = {
            turns: result["tools"][kind.name] for turns, result in compared.items() if kind.name in result["tools"]
        }
        style: dict[str, Any] = {
            "color": COLOURS[kind.name],
            "marker": "o",
            "markersize": 5,
            "linewidth": 2.6 if kind.name == "turndex" else 1.5,
            "label": kind.name,
        }
        panels[0].plot(list(measured), [_median_ms(tool) for tool in measured.values()], **style)
        if kind.has_index and kind.name != "turndex search":
            panels[1].plot(list(measured), [tool["index"]["build_seconds"] for tool in measured.values()], **style)
    titles = ["a search: median over the classes, ms", "the index: seconds to build it"]
    for panel, title in zip(panels, titles, strict=True):
        panel.set_title(title, loc="left", fontsize=11)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel("turns in the archive (log scale)")
        panel.set_xticks(list(compared), [f"{turns:,}" for turns in compared])
        panel.minorticks_off()
        panel.yaxis.set_major_formatter(_plain(pyplot))
        _quiet(panel)
        panel.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncol=len(PEERS), frameon=False, fontsize=9
    )
    figure.suptitle(
        "Cost against the size of the archive, of what finds a text anywhere", x=0.01, ha="left", fontsize=12
    )
    _save(pyplot, figure, path)


def is_right(one: dict[str, Any]) -> bool:
    """Whether everything was found for all literals of a class, and nothing else."""
    return all(
        "refused" not in answer and not answer["missed"] and not answer["wrong"] and not _turns_amiss(answer)
        for answer in one["literals"].values()
    )


def _turns_amiss(answer: dict[str, Any]) -> bool:
    turns = answer.get("turns")
    return bool(turns and (turns["missed"] or turns["wrong"]))


def _median_ms(tool: dict[str, Any]) -> float:
    times: list[float] = [one["p50_ms"] for one in tool["classes"].values() if one["p50_ms"] is not None]
    return statistics.median(times)


def _quiet(panel: Any) -> None:
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.tick_params(length=0)
    panel.grid(axis="x", color="#dddddd", linewidth=0.8)
    panel.set_axisbelow(True)


def _milliseconds(pyplot: Any, panel: Any) -> None:
    panel.xaxis.set_major_formatter(_plain(pyplot))


def _plain(pyplot: Any) -> Any:
    """0.01, 1, 1,000: no powers of ten to be read."""
    return pyplot.FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")


def _save(pyplot: Any, figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=DPI, metadata={"Software": None}, pil_kwargs={"optimize": True})
    pyplot.close(figure)


def _pyplot() -> Any:
    """Loaded by name when something is drawn: checks and measurements do without it."""
    importlib.import_module("matplotlib").use("agg")
    return importlib.import_module("matplotlib.pyplot")
