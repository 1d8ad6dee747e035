"""Random sessions, and how they are written to disk as the formats that turndex reads."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from schemas.settings import Settings, load_settings
from schemas.times import iso_utc
from tests.properties.oracle import Entry, Session
from tests.properties.random_texts import WORDS, random_run, random_text

MARKER = "every session has this line in a turn of the same time"
"""Shows in which order sessions that are alike in everything else are answered."""

MARKER_MS = 1_790_000_000_000
FIRST_MS = MARKER_MS - 3_600_000
AGENTS = ["Claude Agent", "codex", "Ägent"]
SESSIONS_OF_MANY_TURNS = 5
TICKS = 500
EDGES = [*range(450, 463), *range(110, 123)]
"""About where the 512th and the 4,608th of 6,000 turns are, from either end."""
FIELDS = {
    "user": ["text"],
    "agent": ["text"],
    "thinking": ["text"],
    "notice": ["text"],
    "tool": ["label", "input", "output"],
    "process": ["command", "output"],
}
KINDS = list(FIELDS)


def random_sessions(random: Random, folder: Path) -> list[Session]:
    """A few sessions of every kind of text."""
    return [
        random_session(random, number, random.choice(["cydonia", "turn-file"]), random.choice(_projects(folder)))
        for number in range(random.randint(6, 14))
    ]


def many_turns(random: Random, folder: Path, *, turns: int) -> list[Session]:
    """A few sessions of many short turns: some words are in all of them, some in many, most in one alone.

    `before7` is in the turns of the first 7 of `TICKS` moments, `after7` in those of the last 7.
    """
    sessions = []
    for number in range(SESSIONS_OF_MANY_TURNS):
        entries = [Entry("user", {"text": MARKER}, at_ms=MARKER_MS)]
        for _ in range(turns // SESSIONS_OF_MANY_TURNS):
            rare = " ".join(random.randbytes(4).hex() for _ in range(3))
            words = f"all {random.choice(WORDS)} {rare} {random.choice(['half', 'Hälfte'])}_{random.randrange(20)}"
            tick = random.randrange(TICKS)
            edges = [f"before{edge}" for edge in EDGES if tick < edge]
            edges += [f"after{edge}" for edge in EDGES if tick >= TICKS - edge]
            text = "\n".join([words, *edges])
            entries.append(Entry("user", {"text": text}, at_ms=MARKER_MS + tick * 1000))
        project = str(_projects(folder)[number % 2])
        start_ms = FIRST_MS + number * 1000
        sessions.append(Session(f"{start_ms}", "cydonia", project, f"Many {number}", "codex", entries, start_ms))
    return sessions


def write_archive(random: Random, sessions: Sequence[Session], folder: Path) -> Settings:
    """Write an archive of both formats below `folder`; answers the settings that name it."""
    projects = _projects(folder)
    for project in projects:
        (project / ".cydonia" / "sessions").mkdir(parents=True)
    (folder / "turns").mkdir()
    for session in sessions:
        if session.source == "cydonia":
            write_record(session)
        else:
            write_turn_file(random, session, folder / "turns")
    listed = json.dumps([str(project) for project in projects], ensure_ascii=False)
    (folder / "state.toml").write_text(f"projects = {listed}\n", encoding="utf-8")
    return archive_settings(folder)


def _projects(folder: Path) -> list[Path]:
    return [folder / "work" / name for name in ("alpha", "beta ß", "文档")]


def archive_settings(folder: Path) -> Settings:
    """Settings that name the archive at `folder`, and let a nearly full disk pass."""
    flags: dict[str, Any] = {
        "data_dir": str(folder / "data"),
        "limits": {"min_free_bytes": 0, "min_free_share": 0.0},
        "sources": {
            "cydonia": {"state_file": str(folder / "state.toml")},
            "turn_file": {"folders": [str(folder / "turns")]},
        },
    }
    return load_settings(flags=flags)


def random_session(random: Random, number: int, source: str, project: Path) -> Session:
    """A session with its marker turn somewhere; its times are whole seconds and often those of others."""
    start_ms = FIRST_MS + number * 1000
    entries = [_random_entry(random, source) for _ in range(random.choice([0, 3, 10, 40, 80]))]
    if random.random() < 0.25:
        length = random.choice([5_000, 20_000, 66_000])
        entries.append(_entry("agent", {"text": f"{random_text(random, words=9)}\n{random_run(random, length)} end"}))
    if random.random() < 0.25:
        entries.append(_entry("tool", {"label": "cat", "output": random_text(random, words=4000)}, status="ok"))
    marker = Entry("user", {"text": MARKER}, at_ms=MARKER_MS)
    entries.insert(random.randint(0, len(entries)), marker)
    session_id = f"{start_ms}" if source == "cydonia" else f"0198f3c2-{number:04d}"
    title = f"Session {number} {random.choice(['Straße', 'parser', 'ПРИВЕТ', '文'])}"
    return Session(
        session_id, source, str(project), title, random.choice(AGENTS), entries, start_ms, random.random() < 0.3
    )


def _random_entry(random: Random, source: str) -> Entry:
    kind = random.choice(["user", "user", "agent", "agent", "tool", "tool", "thinking", "notice", "process"])
    texts = {name: random_text(random, words=random.choice([1, 4, 30])) for name in FIELDS[kind]}
    status = None
    if kind == "tool":
        status = random.choice(["running", "ok", "failed"])
        if source == "cydonia":
            del texts["input"]
        elif random.random() < 0.3:
            texts["input"] = f" {texts['label']}\n"
    at_ms = MARKER_MS + random.randint(-20, 20) * 1000 if kind == "user" and random.random() < 0.8 else None
    return _entry(kind, texts, status=status, at_ms=at_ms)


def _entry(kind: str, texts: dict[str, str], *, status: str | None = None, at_ms: int | None = None) -> Entry:
    return Entry(kind, {name: as_read(text) for name, text in texts.items()}, status, at_ms)


def as_read(text: str) -> str:
    """The text after a trip through JSON and UTF-8: pairs of surrogates are joined, lone ones replaced."""
    joined: str = json.loads(json.dumps(text))
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in joined)


def write_record(session: Session) -> None:
    """A Cydonia record; only user items have times there."""
    path = Path(session.project) / ".cydonia" / "sessions" / f"{session.id}.json"
    sent_at = {str(i): e.at_ms // 1000 for i, e in enumerate(session.entries) if e.at_ms is not None}
    body = {
        "id": session.id,
        "agent": session.agent,
        "session": None,
        "title": "derived",
        "name": session.title,
        "updated": session.at_ms // 1000,
        "closed": session.is_archived,
        "items": [_record_item(entry) for entry in session.entries],
        "sent_at": sent_at,
    }
    path.write_text(json.dumps(body, indent=2), encoding="utf-8")


def _record_item(entry: Entry) -> dict[str, Any]:
    match entry.kind:
        case "thinking":
            return {"Thinking": {"text": entry.texts["text"], "done": True}}
        case "tool":
            status = {"running": "Running", "ok": "Success", "failed": "Failure"}[entry.status or "ok"]
            return {"Tool": {"id": "t", "kind": "execute", "status": status, "output": "", **entry.texts}}
        case "notice":
            return {"Notice": {"text": entry.texts["text"], "failed": False}}
        case "process":
            return {"Process": dict(entry.texts)}
    return {entry.kind.capitalize(): entry.texts["text"]}


def write_turn_file(random: Random, session: Session, folder: Path) -> None:
    """A turn file, in which some tools are opened and completed later."""
    with (folder / f"{session.id}.turns.jsonl").open("w", encoding="utf-8", newline="") as file:
        for line in _turn_lines(random, session):
            file.write(json.dumps(line, ensure_ascii=random.random() < 0.5 or not _is_utf8(line)) + "\n")


def _turn_lines(random: Random, session: Session) -> Iterator[dict[str, Any]]:
    yield {
        "type": "session",
        "version": 1,
        "id": session.id,
        "project": session.project,
        "title": session.title,
        "agent": session.agent,
        "at": iso_utc(session.at_ms),
    }
    waiting: list[dict[str, Any]] = []
    for number, entry in enumerate(session.entries):
        line: dict[str, Any] = {"type": entry.kind, **entry.texts}
        if entry.at_ms is not None:
            line["at"] = iso_utc(entry.at_ms)
        if entry.kind == "tool":
            line |= {"id": f"t{number}", "status": entry.status}
            if entry.status != "running" and random.random() < 0.5:
                waiting.append({"type": "tool", "id": line["id"], "status": entry.status, "output": line.pop("output")})
                line["status"] = "running"
        yield line
        while waiting and random.random() < 0.3:
            yield waiting.pop(random.randrange(len(waiting)))
    yield from waiting
    if session.is_archived:
        yield {"type": "archived", "value": True}


def _is_utf8(line: dict[str, Any]) -> bool:
    return not any("\ud800" <= char <= "\udfff" for text in line.values() for char in str(text))


def in_order_of(sessions: Sequence[Session], session_ids: Sequence[str]) -> list[Session]:
    """The sessions in the order of their ids."""
    by_id = {session.id: session for session in sessions}
    return [by_id[session_id] for session_id in session_ids]
