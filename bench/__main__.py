"""`python -m bench`: make archives and measure on them."""

import json
import tempfile
from pathlib import Path
from typing import Any

import click

from bench import corpus, first_scan, freshness, latency, mcp_load
from bench.results import FOLDER, record


@click.group()
def main() -> None:
    """Make archives and measure on them; results are kept in bench/results."""


def sized(command: Any) -> Any:
    command = click.option("--seed", default=1, show_default=True, help="Another one makes another archive.")(command)
    command = click.option("--turns", type=click.IntRange(1), help="How many, instead of a size.")(command)
    return click.option("--size", type=click.Choice(list(corpus.SIZES)), default="S", show_default=True)(command)


@main.command("corpus")
@click.argument("folder", type=click.Path(path_type=Path))
@sized
def make_corpus(folder: Path, size: str, turns: int | None, seed: int) -> None:
    """Write an archive into FOLDER."""
    manifest = corpus.generate(folder, turns=turns or corpus.SIZES[size], seed=seed)
    click.echo(f"{manifest.turns} turns in {manifest.sessions} sessions, {manifest.text_bytes / 1e6:.0f} MB of text")


@main.command()
@click.option("--corpus", "folder", type=click.Path(path_type=Path), help="An archive made before.")
@click.option("--results", type=click.Path(path_type=Path), default=FOLDER, help="Where results are kept.")
@sized
def scan(folder: Path | None, results: Path, size: str, turns: int | None, seed: int) -> None:
    """Scan an archive for the first time, then search and read in it."""
    with tempfile.TemporaryDirectory(prefix="turndex-bench-") as scratch:
        made = folder or Path(scratch) / "corpus"
        if not (made / "manifest.json").is_file():
            corpus.generate(made, turns=turns or corpus.SIZES[size], seed=seed)
        data_dir = Path(scratch) / "data"
        keep("first-scan", first_scan.measure(made, data_dir), results)
        keep("latency", latency.measure(made, data_dir), results)


@main.command()
@click.option("--samples", default=300, show_default=True)
@click.option("--results", type=click.Path(path_type=Path), default=FOLDER, help="Where results are kept.")
def fresh(samples: int, results: Path) -> None:
    """Follow twenty files that are being written, and search for each new line."""
    with tempfile.TemporaryDirectory(prefix="turndex-bench-") as home:
        keep("freshness", freshness.measure(Path(home), samples=samples), results)


@main.command()
@click.option("--corpus", "folder", type=click.Path(path_type=Path), help="An archive made before.")
@click.option("--seconds", default=60, show_default=True)
@click.option("--results", type=click.Path(path_type=Path), default=FOLDER, help="Where results are kept.")
@sized
def mcp(folder: Path | None, seconds: int, results: Path, size: str, turns: int | None, seed: int) -> None:
    """Two hundred MCP clients offer a hundred calls a second."""
    with tempfile.TemporaryDirectory(prefix="turndex-bench-") as scratch:
        made = folder or Path(scratch) / "corpus"
        if not (made / "manifest.json").is_file():
            corpus.generate(made, turns=turns or corpus.SIZES[size], seed=seed)
        home = Path(scratch) / "home"
        home.mkdir()
        keep("mcp-load", mcp_load.measure(made, home, seconds=seconds), results)


def keep(name: str, result: dict[str, Any], folder: Path) -> None:
    path = record(name, result, folder)
    click.echo(json.dumps(result, indent=2, ensure_ascii=False))
    click.echo(f"kept as {path}")


if __name__ == "__main__":
    main()
