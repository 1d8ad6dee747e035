"""`python -m bench`: make archives and measure on them. `all` is a look of some minutes, `full` takes its time."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from bench import (
    corpus,
    dictionary,
    exactness,
    first_scan,
    freshness,
    growing_turn,
    growth,
    latency,
    mcp_load,
    memory,
    reads,
    rescan,
    restart,
    throughput,
)
from bench.results import FOLDER, record
from bench.texts import Mix
from indexer.service import index_once

GOAL_QUERIES = 100_000
SMALL_SHARE = 10
"""`growth` compares an archive with one that has so many times fewer turns."""


@dataclass(frozen=True)
class Effort:
    """How much is asked by the commands that run everything."""

    queries: int
    """Different ones of each class,"""
    cold: int
    """and how many of them with nothing cached."""
    samples: int
    """Lines that are waited for."""
    seconds: float
    """Of searches over HTTP as fast as they go,"""
    searches: int
    """and how many before a server's memory is looked at."""
    appended: int
    """Items appended to a turn, at each of its lengths."""
    crowd: int
    """Random queries that are compared with a scan."""


SHORT = Effort(queries=20, cold=1, samples=100, seconds=10, searches=3_000, appended=30, crowd=2_000)
LONG = Effort(queries=50, cold=3, samples=300, seconds=30, searches=memory.SEARCHES, appended=60, crowd=GOAL_QUERIES)


@dataclass(frozen=True)
class Place:
    """Where a benchmark works; made when it is first needed, and removed with `scratch`."""

    scratch: Path
    results: Path
    turns: int
    seed: int
    mix: Mix
    formats: tuple[str, ...] = corpus.OWN_FORMATS
    given_corpus: Path | None = None
    given_data_dir: Path | None = None

    def corpus(self) -> Path:
        folder = self.given_corpus or self.scratch / "corpus"
        if not (folder / "manifest.json").is_file():
            corpus.generate(folder, turns=self.turns, seed=self.seed, mix=self.mix, formats=self.formats)
        return folder

    @property
    def data_dir(self) -> Path:
        return self.given_data_dir or self.scratch / "data"

    def indexed(self) -> tuple[Path, Path]:
        """The corpus, and the data directory that it is indexed in."""
        made = self.corpus()
        if not self.data_dir.is_dir():
            index_once(corpus.corpus_settings(made, self.data_dir), lambda _: None)
        return made, self.data_dir

    def beside(self, name: str, *, turns: int | None = None, mix: Mix | None = None) -> "Place":
        """Another archive, with what it is asked for to differ in."""
        folder = self.scratch / name
        folder.mkdir(parents=True)
        return Place(folder, self.results, turns or self.turns, self.seed, mix or self.mix, self.formats)

    def keep(self, name: str, result: dict[str, Any]) -> None:
        path = record(name, result, self.results)
        click.echo(json.dumps(result, indent=2, ensure_ascii=False))
        click.echo(f"kept as {path}")


ELSEWHERE = ["compare", "table", "plots"]
"""Commands that lie in modules of their names, which are imported when they are asked for."""


class _Commands(click.Group):
    def list_commands(self, context: click.Context) -> list[str]:
        return [*super().list_commands(context), *ELSEWHERE]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in ELSEWHERE:
            return super().get_command(context, name)
        command: click.Command = getattr(import_module(f"bench.{name}"), name)
        return command


@click.group(cls=_Commands)
def main() -> None:
    """Make archives and measure on them; results are kept in bench/results."""


def _formats(_context: click.Context, _parameter: click.Parameter, given: str) -> tuple[str, ...]:
    named = tuple(given.split(","))
    unknown = set(named) - set(corpus.FORMATS)
    if unknown:
        raise click.BadParameter(f"{', '.join(sorted(unknown))}: there are {', '.join(corpus.FORMATS)}")
    return named


def sized(command: Any) -> Any:
    mixes = click.Choice(["whole", "plain"])
    command = click.option("--mix", type=mixes, default="whole", show_default=True, help="plain: prose and code.")(
        command
    )
    command = click.option("--seed", default=1, show_default=True, help="Another one makes another archive.")(command)
    command = click.option("--turns", type=click.IntRange(1), help="How many, instead of a size.")(command)
    return click.option("--size", type=click.Choice(list(corpus.SIZES)), default="S", show_default=True)(command)


def formatted(command: Any) -> Any:
    return click.option(
        "--formats",
        callback=_formats,
        default=",".join(corpus.OWN_FORMATS),
        show_default=True,
        help=f"With commas: {', '.join(corpus.FORMATS)}.",
    )(command)


def placed(command: Any) -> Any:
    """Options that say on what archive to measure; the command gets a `Place` made of them with `place`."""
    path = click.Path(path_type=Path)
    command = sized(command)
    command = click.option("--results", type=path, default=FOLDER, help="Where results are kept.")(command)
    command = click.option("--data", type=path, help="A data directory in which it is indexed, or will be.")(command)
    return click.option("--corpus", "made", type=path, help="An archive made before.")(command)


@contextmanager
def place(
    *,
    size: str,
    turns: int | None,
    seed: int,
    mix: Mix,
    results: Path,
    formats: tuple[str, ...] = corpus.OWN_FORMATS,
    made: Path | None = None,
    data: Path | None = None,
) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="turndex-bench-") as scratch:
        yield Place(Path(scratch), results, turns or corpus.SIZES[size], seed, mix, formats, made, data)


@main.command("corpus")
@click.argument("folder", type=click.Path(path_type=Path))
@sized
@formatted
def make_corpus(folder: Path, size: str, turns: int | None, seed: int, mix: Mix, formats: tuple[str, ...]) -> None:
    """Write an archive into FOLDER."""
    manifest = corpus.generate(folder, turns=turns or corpus.SIZES[size], seed=seed, mix=mix, formats=formats)
    click.echo(f"{manifest.turns} turns in {manifest.sessions} sessions, {manifest.text_bytes / 1e6:.0f} MB of text")
    for source, one in manifest.by_source.items():
        texts, raw = one.text_bytes / 1e6, one.raw_bytes / 1e6
        click.echo(f"{source}: {one.sessions} sessions, {texts:.1f} MB of text in {raw:.1f} MB of {one.files} files")


@main.command()
@placed
@formatted
def scan(**options: Any) -> None:
    """Scan an archive for the first time, and search meanwhile."""
    with place(**options) as here:
        here.keep("first-scan", first_scan.measure(here.corpus(), here.data_dir))


@main.command("latency")
@click.option("--queries", default=40, show_default=True, help="Different ones of each class.")
@click.option("--cold", default=3, show_default=True, help="Of each class, how many are asked with nothing cached.")
@placed
@formatted
def search_latency(queries: int, cold: int, **options: Any) -> None:
    """Search in this process, by class of what is asked for."""
    with place(**options) as here:
        here.keep("latency", latency.measure(*here.indexed(), queries=queries, cold_queries=cold))


@main.command("reads")
@placed
def read_latency(**options: Any) -> None:
    """Read in this process."""
    with place(**options) as here:
        here.keep("reads", reads.measure(*here.indexed()))


@main.command()
@click.option("--samples", default=300, show_default=True)
@click.option("--results", type=click.Path(path_type=Path), default=FOLDER, help="Where results are kept.")
def fresh(samples: int, results: Path) -> None:
    """Follow twenty files that are being written, and search for each new line."""
    with place(size="S", turns=None, seed=1, mix="whole", results=results) as here:
        here.keep("freshness", freshness.measure(here.scratch, samples=samples))


@main.command("fresh-scan")
@placed
def fresh_scan(**options: Any) -> None:
    """The same while a first scan runs."""
    with place(**options) as here:
        here.keep("freshness-during-scan", freshness.measure_during_scan(here.scratch / "home", here.corpus()))


@main.command("mcp")
@click.option("--seconds", default=60, show_default=True)
@placed
def mcp_clients(seconds: int, **options: Any) -> None:
    """Two hundred MCP clients offer a hundred calls a second."""
    with place(**options) as here:
        here.keep("mcp-load", mcp_load.measure(*here.indexed(), seconds=seconds))


@main.command("throughput")
@click.option("--seconds", default=15.0, show_default=True)
@click.option("--connections", default=throughput.CONNECTIONS, show_default=True)
@placed
def http_throughput(seconds: float, connections: int, **options: Any) -> None:
    """Search over HTTP from a second process, as fast as it goes."""
    with place(**options) as here:
        here.keep("throughput", throughput.measure(*here.indexed(), seconds=seconds, connections=connections))


@main.command("memory")
@click.option("--searches", default=memory.SEARCHES, show_default=True)
@placed
def server_memory(searches: int, **options: Any) -> None:
    """What a server needs, idle and after many searches."""
    with place(**options) as here:
        here.keep("memory", memory.measure(*here.indexed(), searches=searches))


@main.command("restart")
@placed
def restart_time(**options: Any) -> None:
    """Start servers and commands over an archive that is indexed."""
    with place(**options) as here:
        here.keep("restart", restart.measure(*here.indexed()))


@main.command("rescan")
@click.option("--files", default=rescan.FILES, show_default=True, help="Of each source.")
@click.option("--results", type=click.Path(path_type=Path), default=FOLDER, help="Where results are kept.")
def rescan_time(files: int, results: Path) -> None:
    """Look through folders in which nothing has changed."""
    with place(size="S", turns=None, seed=1, mix="whole", results=results) as here:
        here.keep("rescan", rescan.measure(here.scratch / "rescan", files=files))


@main.command("growing-turn")
@click.option("--results", type=click.Path(path_type=Path), default=FOLDER, help="Where results are kept.")
def append_cost(results: Path) -> None:
    """Append items to one turn, short and long."""
    with place(size="S", turns=None, seed=1, mix="whole", results=results) as here:
        here.keep("growing-turn", growing_turn.measure(here.scratch))


@main.command("growth")
@click.option("--small", type=click.Choice(list(corpus.SIZES)), help="Its size; otherwise a tenth of the larger one.")
@placed
def growth_of_latency(small: str | None, **options: Any) -> None:
    """Ask an archive and a smaller one the same."""
    with place(**options) as here:
        turns = here.turns // SMALL_SHARE if small is None else corpus.SIZES[small]
        here.keep("growth", growth.measure(here.beside("small", turns=turns).indexed(), here.indexed()))


@main.command("exactness")
@click.option("--queries", default=GOAL_QUERIES, show_default=True)
@click.option("--query-seed", default=1, show_default=True, help="Another one asks other queries.")
@click.option("--workers", default=2, show_default=True, help="Processes; each holds all texts in memory.")
@placed
@formatted
def exact(queries: int, query_seed: int, workers: int, **options: Any) -> None:
    """Ask a crowd of random queries, and compare with reading every line; fails where one differs."""
    with place(**options) as here:
        result = exactness.measure(*here.indexed(), queries=queries, seed=query_seed, workers=workers)
        here.keep("exactness", result)
        if result["differences"]:
            raise SystemExit(1)


@main.command("all")
@placed
def all_shortly(**options: Any) -> None:
    """Everything, shortened to about five minutes on the smallest size."""
    with place(**options) as here:
        measure_all(here, SHORT)


@main.command("full")
@placed
def all_fully(**options: Any) -> None:
    """Everything, with as many samples and queries as the goals name."""
    with place(**options) as here:
        crowd = GOAL_QUERIES if here.turns <= corpus.SIZES["S"] else GOAL_QUERIES // 50
        measure_all(here, replace(LONG, crowd=crowd))


def measure_all(here: Place, effort: Effort) -> None:
    made = here.corpus()
    if not here.data_dir.is_dir():
        here.keep("first-scan", first_scan.measure(made, here.data_dir))
    plain = here.beside("plain", turns=min(here.turns, corpus.SIZES["S"]), mix="plain")
    here.keep("first-scan-plain", first_scan.measure(plain.corpus(), plain.data_dir))
    here.keep("latency", latency.measure(made, here.data_dir, queries=effort.queries, cold_queries=effort.cold))
    here.keep("reads", reads.measure(made, here.data_dir))
    here.keep("freshness", freshness.measure(here.scratch / "fresh", samples=effort.samples))
    here.keep("freshness-during-scan", freshness.measure_during_scan(here.scratch / "fresh-scan", made))
    here.keep("throughput", throughput.measure(made, here.data_dir, seconds=effort.seconds))
    here.keep("memory", memory.measure(made, here.data_dir, searches=effort.searches))
    here.keep("restart", restart.measure(made, here.data_dir))
    here.keep("growing-turn", growing_turn.measure(here.scratch / "growing", samples=effort.appended))
    small = here.beside("small", turns=max(1, here.turns // SMALL_SHARE))
    here.keep("growth", growth.measure(small.indexed(), (made, here.data_dir), queries=effort.queries))
    result = exactness.measure(made, here.data_dir, queries=effort.crowd, workers=2)
    here.keep("exactness", result)
    if result["differences"]:
        raise SystemExit(1)


main.add_command(dictionary.command)

if __name__ == "__main__":
    main()
