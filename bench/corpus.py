"""Writes an archive of any number of turns, the same for the same seed and `DEST`, one session in memory at a time.

    DEST/work/<project>/.cydonia/   records and the registry of their numbers
    DEST/turns/                     turn files
    DEST/claude/, DEST/codex/       a folder of Claude Code's and a Codex home, where they are asked for
    DEST/state.toml                 names the projects
    DEST/manifest.json              what was written

A turn has about 1.5 KB of text. Sessions have 1 to 2,000 turns, turns 1 to 5,000 items, and the output
of a tool has from a line to 1 MB; the long ones are rare, as they are in real archives.

The mix `whole` has all that real archives have; `plain` is prose and code alone, to tell what of the size of
an index is owed to hashes, base64, numbers and other scripts.
"""

import hashlib
import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import orjson

from bench.ballast import Ballast, Written, text_bytes
from bench.claude_home import ClaudeHome
from bench.codex_home import CodexHome
from bench.texts import Mix, Texts
from bench.transcripts import Transcript
from schemas.settings import Settings, load_settings
from schemas.sources import CLAUDE_CODE, CODEX, CYDONIA, TURN_FILE
from schemas.times import iso_utc

SIZES = {"S": 20_000, "M": 200_000, "L": 1_000_000}
MAX_SESSION_TURNS = 2_000
MAX_TURN_ITEMS = 5_000
MAX_OUTPUT_CHARS = 1_000_000
PROJECTS = ["harbour", "lantern", "orchard", "quarry", "windmill"]
FIRST_SECOND = 1_700_000_000

OWN_FORMATS = (CYDONIA, TURN_FILE)
"""What an archive has unless others are asked for."""

FORMATS = (*OWN_FORMATS, CLAUDE_CODE, CODEX)

RARE_WORD = "zymurgy"
"""In one of 10,000 turns, and in at least one."""

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Manifest:
    """What an archive holds; `text_bytes` counts the texts of items in UTF-8, `raw_bytes` the files.

    Turns, sessions and items are counted without copies and subagents; bytes with them.
    """

    seed: int
    turns: int
    sessions: int
    items: int
    text_bytes: int
    raw_bytes: int
    records: int
    turn_files: int
    hash_prefix: str
    """The beginning of a hash that one turn has."""
    sha256: str
    """Of all transcripts in the order in which they were written."""
    mix: Mix = "whole"
    by_source: dict[str, Written] = field(default_factory=dict)


@dataclass(frozen=True)
class Session:
    number: int
    turns: list[list[Json]]
    """The items of each turn, as a turn file has them."""
    title: str
    started: int
    """Unix seconds."""


def generate(
    folder: Path,
    *,
    turns: int,
    seed: int = 1,
    turn_file_share: float = 0.2,
    mix: Mix = "whole",
    formats: Sequence[str] = OWN_FORMATS,
) -> Manifest:
    """Write an archive into an empty or new folder.

    Of our own two formats turn files have the share given; of any others each has the same share of the sessions.
    """
    random = Random(seed)
    texts = Texts(random, mix)
    needle = texts.hash()
    digest = hashlib.sha256()
    numbers: dict[str, list[tuple[int, str]]] = {project: [] for project in PROJECTS}
    for project in PROJECTS:
        (folder / "work" / project / ".cydonia" / "sessions").mkdir(parents=True)
    (folder / "turns").mkdir()
    homes = {} if set(formats) <= set(OWN_FORMATS) else _homes(folder, Ballast(seed, mix), digest, formats)
    items = sessions = 0
    written: dict[str, Written] = {}
    for session in _sessions(random, texts, turns, needle):
        project = random.choice(PROJECTS)
        root = folder / "work" / project
        source = _format(random.random(), formats, turn_file_share)
        if source in homes:
            written[source] = written.get(source, Written()) + homes[source].write(_transcript(session, root))
        else:
            if source == TURN_FILE:
                path = folder / "turns" / f"{session.number:07d}.turns.jsonl"
                content = b"".join(orjson.dumps(line) + b"\n" for line in _turn_lines(session, root))
            else:
                stem = str(session.started * 1000)
                path = root / ".cydonia" / "sessions" / f"{stem}.json"
                content = orjson.dumps(_record(session, stem), option=orjson.OPT_INDENT_2)
                numbers[project].append((len(numbers[project]) + 1, stem))
            path.write_bytes(content)
            digest.update(content)
            own = Written(1, 1, len(content), sum(map(text_bytes, session.turns)))
            written[source] = written.get(source, Written()) + own
        sessions += 1
        items += sum(map(len, session.turns))
    for home in homes.values():
        home.finish()
    for project, rows in numbers.items():
        _write_registry(folder / "work" / project / ".cydonia" / "state.db", rows)
    listed = json.dumps([str(folder / "work" / project) for project in PROJECTS])
    (folder / "state.toml").write_text(f"projects = {listed}\n", encoding="utf-8")
    manifest = Manifest(
        seed=seed,
        turns=turns,
        sessions=sessions,
        items=items,
        text_bytes=sum(one.text_bytes for one in written.values()),
        raw_bytes=sum(one.raw_bytes for one in written.values()),
        records=written.get(CYDONIA, Written()).files,
        turn_files=written.get(TURN_FILE, Written()).files,
        hash_prefix=needle[:8],
        sha256=digest.hexdigest(),
        mix=mix,
        by_source=written,
    )
    (folder / "manifest.json").write_text(json.dumps(asdict(manifest), indent=2) + "\n", encoding="utf-8")
    return manifest


def _homes(
    folder: Path, ballast: Ballast, digest: "hashlib._Hash", formats: Collection[str]
) -> dict[str, ClaudeHome | CodexHome]:
    """What writes the formats of other agents."""

    def draw_turn() -> list[Json]:
        return list(_turn(ballast.random, ballast.texts))

    homes: dict[str, ClaudeHome | CodexHome] = {}
    if CLAUDE_CODE in formats:
        homes[CLAUDE_CODE] = ClaudeHome(folder / "claude", ballast, digest, draw_turn)
    if CODEX in formats:
        homes[CODEX] = CodexHome(folder / "codex", ballast, digest, draw_turn)
    return homes


def _format(roll: float, formats: Sequence[str], turn_file_share: float) -> str:
    if set(formats) == set(OWN_FORMATS):
        return TURN_FILE if roll < turn_file_share else CYDONIA
    return formats[int(roll * len(formats))]


def _transcript(session: Session, project: Path) -> Transcript:
    return Transcript(
        path=project,
        key=f"bench-{session.number:07d}",
        project=str(project),
        title=session.title,
        started_ms=session.started * 1000,
        turns=session.turns,
        turn_ms=[(session.started + minute * 60) * 1000 for minute in range(len(session.turns))],
    )


def read_manifest(folder: Path) -> Manifest:
    kept = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    by_source = {source: Written(**one) for source, one in kept.pop("by_source", {}).items()}
    return Manifest(**kept, by_source=by_source)


def corpus_settings(folder: Path, data_dir: Path, *, only: str | None = None) -> Settings:
    """Settings under which only this archive is indexed, into `data_dir`, on however full a disk.

    `only` names a source to be indexed alone.
    """
    tree = corpus_flags(folder, data_dir)
    if only is not None:
        for source in FORMATS:
            tree["sources"].setdefault(_key(source), {})["enabled"] = source == only
    return load_settings(flags=tree)


def corpus_flags(folder: Path, data_dir: Path) -> Json:
    """The same as a tree of values, such as a settings file has."""
    others = {CLAUDE_CODE: folder / "claude", CODEX: folder / "codex"}
    return {
        **_isolated(data_dir),
        "sources": {
            "cydonia": {"state_file": str(folder / "state.toml")},
            "turn_file": {"folders": [str(folder / "turns")]},
            **{_key(source): {"folders": [str(home)]} for source, home in others.items() if home.is_dir()},
        },
    }


def claude_settings(home: Path, data_dir: Path) -> Settings:
    """The same for a folder such as ~/.claude alone."""
    return load_settings(flags={**_isolated(data_dir), "sources": {_key(CLAUDE_CODE): {"folders": [str(home)]}}})


def _isolated(data_dir: Path) -> Json:
    return {"data_dir": str(data_dir), "discover": False, "limits": {"min_free_bytes": 0, "min_free_share": 0.0}}


def _key(source: str) -> str:
    return source.replace("-", "_")


def _sessions(random: Random, texts: Texts, turns: int, needle: str) -> Iterator[Session]:
    """As many sessions as it takes for so many turns in all; the first turn of all has the needle."""
    number = written = 0
    started = FIRST_SECOND
    while written < turns:
        number += 1
        wanted = min(int(random.paretovariate(0.9) * 4) - 3, MAX_SESSION_TURNS, turns - written)
        content = [list(_turn(random, texts)) for _ in range(wanted)]
        if written == 0:
            commit = f"The commit is {needle}; " if texts.mix == "whole" else ""
            content[0][0]["text"] += f"\n{commit}{RARE_WORD} was mentioned."
        written += wanted
        yield Session(number, content, " ".join(texts.words(4)).capitalize(), started)
        started += wanted * 60 + random.randint(60, 7200)


def _turn(random: Random, texts: Texts) -> Iterator[Json]:
    rare = f" {RARE_WORD}" if random.random() < 1 / 10_000 else ""
    yield {"type": "user", "text": texts.paragraph(random.randint(1, 2)) + rare}
    if random.random() < 0.03:
        return  # stopped before there was an answer
    if random.random() < 0.4:
        yield {"type": "thinking", "text": texts.paragraph(random.randint(1, 3))}
    if random.random() < 1 / 10_000:
        steps = random.randint(500, MAX_TURN_ITEMS - 10)
        yield from (_tool(random, texts, f"{step}", 20) for step in range(steps))
    for step in range(min(int(random.paretovariate(1.5)) - 1 + (random.random() < 0.5), 40)):
        yield _tool(random, texts, f"{step}", min(int(30 * random.paretovariate(0.95)), MAX_OUTPUT_CHARS))
    yield {"type": "agent", "text": texts.paragraph(random.randint(1, 4))}
    if random.random() < 0.1:
        yield {"type": "agent", "text": texts.code(random.randint(2, 12))}
    if random.random() < 0.02:
        yield {"type": "notice", "text": "stopped by the user"}
    if random.random() < 0.02:
        yield {"type": "process", "command": "agent", "output": texts.trace(random.randint(1, 8))}


def _tool(random: Random, texts: Texts, key: str, size: int) -> Json:
    label = random.choice(["cargo test {}", "Read {}", "Edit {}", "grep -rn {} ."]).format(texts.path())
    output = texts.trace(random.randint(2, 12)) if random.random() < 0.05 else texts.output(size)
    return {
        "type": "tool",
        "id": key,
        "label": label,
        "status": random.choice(["ok", "ok", "failed"]),
        "output": output,
    }


def _turn_lines(session: Session, project: Path) -> Iterator[Json]:
    yield {
        "type": "session",
        "version": 1,
        "id": f"bench-{session.number:07d}",
        "project": str(project),
        "title": session.title,
        "agent": "codex",
        "at": iso_utc(session.started * 1000),
    }
    for minute, turn in enumerate(session.turns):
        first, *others = turn
        yield {**first, "at": iso_utc((session.started + minute * 60) * 1000)}
        yield from others


def _record(session: Session, stem: str) -> Json:
    items: list[Json] = []
    sent_at: dict[str, int] = {}
    for minute, turn in enumerate(session.turns):
        sent_at[str(len(items))] = session.started + minute * 60
        items += [_record_item(item) for item in turn]
    return {
        "id": stem,
        "agent": "Claude Agent",
        "agent_id": "claude-acp",
        "session": None,
        "title": session.title,
        "name": None,
        "updated": session.started + len(session.turns) * 60,
        "closed": session.number % 5 == 0,
        "items": items,
        "sent_at": sent_at,
    }


def _record_item(item: Json) -> Json:
    match item["type"]:
        case "thinking":
            return {"Thinking": {"text": item["text"], "done": True}}
        case "tool":
            status = "Success" if item["status"] == "ok" else "Failure"
            tool = {"id": item["id"], "kind": "execute", "label": item["label"], "status": status}
            return {"Tool": {**tool, "output": item["output"]}}
        case "notice":
            return {"Notice": {"text": item["text"], "failed": False}}
        case "process":
            return {"Process": {"command": item["command"], "output": item["output"]}}
    return {item["type"].capitalize(): item["text"]}


def _write_registry(path: Path, rows: list[tuple[int, str]]) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "CREATE TABLE entries ("
            "number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, id TEXT, UNIQUE(kind, id))"
        )
        db.executemany("INSERT INTO entries VALUES (?, 'session', ?)", rows)
