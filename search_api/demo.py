"""`turndex serve --demo`: a small invented archive for someone who has no transcripts yet."""

import json
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from schemas.settings import CydoniaSettings, Settings, SourcesSettings, TurnFileSettings

_START = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)
_BETWEEN_SESSIONS = timedelta(hours=19)


def _user(text: str) -> dict[str, Any]:
    return {"User": text}


def _agent(text: str) -> dict[str, Any]:
    return {"Agent": text}


def _thinking(text: str) -> dict[str, Any]:
    return {"Thinking": {"text": text, "done": True}}


def _tool(label: str, output: str, status: str = "Success") -> dict[str, Any]:
    return {"Tool": {"id": label, "kind": "execute", "label": label, "status": status, "output": output}}


def _notice(text: str) -> dict[str, Any]:
    return {"Notice": {"text": text, "failed": False}}


@dataclass(frozen=True, slots=True)
class _Record:
    """A Cydonia session: its number in the project, and what was said."""

    project: str
    number: int
    title: str
    items: tuple[dict[str, Any], ...]
    is_archived: bool = False


_RECORDS = (
    _Record(
        "lighthouse",
        1,
        "Fix the parser",
        (
            _user("The span is off by one when the range is open.\nSee src/parser.rs:88"),
            _thinking("The end of the range may be exclusive; check `Span::open` first."),
            _agent("Looking at the parser first."),
            _tool("cargo test parser", "test parser::open_range ... FAILED\nleft: 4\nright: 5", "Failure"),
            _tool("Read src/parser.rs", "fn open(from: usize) -> Span {\n    Span { from, to: usize::MAX }\n}"),
            _agent("Fixed: the end was exclusive in one place. The range is now closed."),
            _user("And does a range without a start work?"),
            _tool("cargo test parser", "test result: ok. 14 passed; 0 failed"),
            _agent("Yes: `..5` and `5..` both have a test now."),
        ),
    ),
    _Record(
        "lighthouse",
        2,
        "Why is the build slow?",
        (
            _user("make takes four minutes since last week. Why?"),
            _tool("cargo build --timings", "Total time: 231.4s\nsqlparser 112.0s"),
            _agent("One crate takes half of it: `sqlparser` is built with `opt-level = 3` in the dev profile."),
            _user("Then leave that out => release only"),
            _agent("Done; a clean build now takes 58 s."),
            _notice("stopped by the user"),
        ),
    ),
    _Record(
        "lighthouse",
        4,
        "错误处理",
        (
            _user("解析器的错误处理在哪里？请加一个测试。"),
            _agent("错误处理在 src/error.rs。我加了三个测试：空输入、未闭合的引号、非法的 UTF-8。"),
            _user("日本語の入力でも動きますか？"),
            _agent("はい。「検索」のような語も一文字ずつ正しく数えられます ✅"),
        ),
    ),
    _Record(
        "tide-tables",
        1,
        "Straße nach Köln",
        (
            _user("Warum sortiert die Liste »Ölhafen« hinter »Zierikzee«?"),
            _agent("Weil nach Codepoints sortiert wird. Mit einer Kollation für Deutsch steht Ö bei O."),
            _user("Und auf Griechisch? Ο Οδυσσέας και η ΟΔΥΣΣΕΙΑ"),
            _agent("Dort ebenso; das Schluss-Sigma ς und σ werden beim Suchen gleich behandelt."),
        ),
    ),
    _Record(
        "tide-tables",
        2,
        "Old import of 2019 data",
        (
            _user("Import the 2019 tables once more; the checksum differs."),
            _tool("python import_tables.py --year 2019", "8,760 rows read\n8,758 rows written"),
            _agent("Two rows were doubled by the change to summer time. The checksum fits without them."),
        ),
        is_archived=True,
    ),
)

_TURN_FILE: tuple[dict[str, Any], ...] = (
    {
        "type": "session",
        "version": 1,
        "id": "demo-7f3a-harbour",
        "project": "harbour",
        "title": "Flaky test in the harbour scheduler",
        "agent": "codex",
    },
    {"type": "user", "text": "test_berths_are_freed fails about once in fifty runs."},
    {"type": "thinking", "text": "A race between the timer and the release; look at who holds the lock."},
    {
        "type": "tool",
        "id": "t1",
        "label": "pytest -x --count 200",
        "status": "failed",
        "input": "pytest tests/test_berths.py -x --count 200",
        "output": "AssertionError: 3 != 4",
    },
    {
        "type": "agent",
        "text": "The berth is freed after the event is set. I swapped the two lines; 1,000 runs are green.",
    },
)


@contextmanager
def demo_archive(settings: Settings) -> Iterator[Settings]:
    """Write the archive into a temporary folder; yields settings that read it and keep their data there too."""
    with tempfile.TemporaryDirectory(prefix="turndex-demo-", ignore_cleanup_errors=True) as folder:
        root = Path(folder).resolve()
        write_demo(root)
        sources = SourcesSettings(
            cydonia=CydoniaSettings(state_file=root / "state.toml"),
            turn_file=TurnFileSettings(folders=[root / "turns"]),
        )
        update = {"data_dir": root / "data", "roots": [], "discover": False, "sources": sources}
        yield settings.model_copy(update=update)


def write_demo(root: Path) -> None:
    """Write Cydonia projects under `root/work`, `root/state.toml` naming them, and a turn file."""
    projects = list(dict.fromkeys(record.project for record in _RECORDS))
    for project in projects:
        _write_project(root / "work" / project, [record for record in _RECORDS if record.project == project])
    listed = [str(root / "work" / project) for project in projects]
    # A JSON list of strings is a TOML one, too.
    (root / "state.toml").write_text(f"projects = {json.dumps(listed)}\n", encoding="utf-8")
    _write_turn_file(root)


def _write_project(project: Path, records: list[_Record]) -> None:
    folder = project / ".cydonia" / "sessions"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(project / ".cydonia" / "state.db")) as database, database:
        database.execute(
            "CREATE TABLE entries ("
            "number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, id TEXT, UNIQUE(kind, id))"
        )
        for record in records:
            started = _START + _BETWEEN_SESSIONS * _RECORDS.index(record)
            session_id = str(int(started.timestamp() * 1000))
            database.execute("INSERT INTO entries VALUES (?, 'session', ?)", (record.number, session_id))
            body = _record(record, session_id, int(started.timestamp()))
            (folder / f"{session_id}.json").write_text(json.dumps(body, indent=2, ensure_ascii=False), encoding="utf-8")


def _record(record: _Record, session_id: str, started: int) -> dict[str, Any]:
    sent_at = {str(index): started + 60 * index for index, item in enumerate(record.items) if "User" in item}
    return {
        "id": session_id,
        "agent": "Claude Agent",
        "agent_id": "claude-acp",
        "session": None,
        "title": record.title,
        "name": None,
        "updated": started + 60 * len(record.items),
        "closed": record.is_archived,
        "items": record.items,
        "sent_at": sent_at,
    }


def _write_turn_file(root: Path) -> None:
    folder = root / "turns"
    folder.mkdir()
    at = _START + _BETWEEN_SESSIONS * len(_RECORDS)
    lines = []
    for number, line in enumerate(_TURN_FILE):
        moment = (at + timedelta(minutes=number)).isoformat().replace("+00:00", "Z")
        project = {"project": str(root / "work" / line["project"])} if "project" in line else {}
        lines.append(json.dumps({**line, **project, "at": moment}, ensure_ascii=False) + "\n")
    (folder / "harbour.turns.jsonl").write_text("".join(lines), encoding="utf-8")
