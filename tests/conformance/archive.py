"""Five small Cydonia projects, every text invented: what `cases.json` asks about."""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

FIRST_SECOND = 1_790_000_000
"""Unix seconds of the oldest message; each session starts 1,000 seconds after the one before."""


@dataclass(frozen=True)
class Session:
    id: str
    title: str
    items: list[Json]
    name: str | None = None
    is_archived: bool = False
    draft: str | None = None
    is_old: bool = False
    """Written before ids, agent ids and message times were."""


@dataclass(frozen=True)
class Project:
    folder: str
    entries: list[tuple[int, str, str | None]]
    """Rows of the project's registry: number, kind, id."""
    sessions: list[Session] = field(default_factory=list)


def user(text: str) -> Json:
    return {"User": text}


def agent(text: str) -> Json:
    return {"Agent": text}


def thinking(text: str) -> Json:
    return {"Thinking": {"text": text, "done": True}}


def tool(label: str, status: str = "Success", output: str = "") -> Json:
    return {"Tool": {"id": "t", "kind": "execute", "label": label, "status": status, "output": output}}


def notice(text: str, *, failed: bool = False) -> Json:
    return {"Notice": {"text": text, "failed": failed}}


def process(command: str, output: str) -> Json:
    return {"Process": {"command": command, "output": output}}


PARSER = [
    process("claude-acp", "(node:71) DeprecationWarning: punycode is deprecated"),
    user("The span is off by one when the range is open.\nSee src/parser.rs:88"),
    thinking("The end of the range may be exclusive; check `Span::open`."),
    agent("Looking at the parser first."),
    tool("cargo test parser", "Failure", "test parser::open_range ... FAILED\nleft: 4\nright: 5"),
    tool("Read src/parser.rs", "Success", "fn open(from: usize) -> Span {"),
    agent("Fixed: the end was exclusive in one place.\r\nThe range is now closed."),
    user('Say "hi" to C:\\temp and to /tmp/foo.bar(baz) -> None'),
    agent("say_hi => done; 100% ✅"),
    user("Straße in Köln\nSTRASSE IN KOELN, übergrößenträger"),
    agent("Οδυσσέας, ΟΔΥΣΣΈΑΣ, İstanbul, \u017ftop, Kelvin: 3 \u212a"),
    user("中文搜索：解析器的错误处理在哪里？"),
    agent("日本語のテキストも検索できます。한국어도 됩니다."),
    user("last one"),
    tool("sleep 60", "Running"),
]

LEADING = [
    notice("could not connect to the agent", failed=True),
    user("hello\nworld"),
    agent("hello, world"),
    notice("stopped by the user"),
    process("codex", "warning: retrying"),
    user("## #43:5 is not a heading\n  indented stays indented"),
]

MANY = [
    item for n in range(1, 31) for item in (user(f"question {n} about widgets"), agent(f"answer {n}: widget-{n:03d}"))
]

LONG = [
    user("needle " * 3 + "x" * 400 + " Haystack-Needle " + "y" * 400),
    agent("tabs\tand  spaces   stay"),
]

LABELS = [
    user("run it"),
    tool("python - <<'EOF'\nprint('a   b')\nEOF", "Success", "a   b"),
    tool("z" * 300),
]

CYDONIA = Project(
    "cydonia",
    entries=[
        (1, "article", "1789999000000"),
        (2, "session", "1790000000100"),
        (3, "board", "1789999000003"),
        (4, "session", "1790000000200"),
        (5, "session", None),
        (43, "session", "1790000004300"),
        (44, "session", "1790000004400"),
        (45, "session", "1790000004500"),
        (46, "session", "1790000004600"),
        (47, "session", "1790000004700"),
    ],
    sessions=[
        Session("1790000000100", "Parser", PARSER, name="Fix the parser"),
        Session("1790000000200", "Leading", LEADING, is_archived=True),
        Session("1790000004300", "Many widgets", MANY),
        Session("1790000004400", "Long lines", LONG),
        Session("1790000004500", "Nothing yet", [process("claude-acp", "booting")], draft="parser draft"),
        Session("1790000004600", "Labels\nover lines", LABELS),
        Session("1790000004700", "Old record", [user("an old record about parsers"), agent("yes")], is_old=True),
        Session("1790000009900", "Not numbered", [user("unnumbered parser session"), agent("ok")]),
    ],
)


def _small(folder: str, number: int, session_id: str, title: str, question: str, answer: str) -> Project:
    session = Session(session_id, title, [user(question), agent(answer)])
    return Project(folder, entries=[(number, "session", session_id)], sessions=[session])


PROJECTS = [
    CYDONIA,
    _small("one/twin", 1, "1790000100100", "Twin one", "the parser of twin one", "a"),
    _small("two/twin", 1, "1790000100200", "Twin two", "the parser of twin two", "b"),
    _small("my project", 7, "1790000200100", "Spaced", "parser in a spaced folder", "c"),
    _small("文档", 1, "1790000300100", "标题", "PARSER in 文档", "d"),
]


def record(session: Session, first_second: int) -> Json:
    """A session record as Cydonia writes it; message `n` was sent `n` seconds after the first item."""
    body: Json = {
        "agent": "Claude Agent",
        "session": f"agent-{session.id}",
        "title": session.title,
        "name": session.name,
        "updated": first_second + len(session.items),
        "items": session.items,
    }
    if session.draft is not None:
        body["draft"] = session.draft
    if session.is_old:
        return body
    sent_at = {str(index): first_second + index for index, item in enumerate(session.items) if "User" in item}
    return body | {"id": session.id, "agent_id": "claude-acp", "closed": session.is_archived, "sent_at": sent_at}


def build(folder: Path) -> Path:
    """Write the projects under `folder/work`; answers the state file that lists them."""
    first_second = FIRST_SECOND
    for project in PROJECTS:
        cydonia = folder / "work" / project.folder / ".cydonia"
        (cydonia / "sessions").mkdir(parents=True)
        _write_registry(cydonia / "state.db", project.entries)
        for session in project.sessions:
            text = json.dumps(record(session, first_second), indent=2, ensure_ascii=False)
            (cydonia / "sessions" / f"{session.id}.json").write_text(text, encoding="utf-8", newline="")
            first_second += 1000
    paths = [str(folder / "work" / project.folder) for project in PROJECTS]
    state_file = folder / "state.toml"
    state_file.write_text(f"projects = {json.dumps(paths, ensure_ascii=False)}\nactive = 0\n", encoding="utf-8")
    return state_file


def _write_registry(path: Path, entries: list[tuple[int, str, str | None]]) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "CREATE TABLE entries ("
            "number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, id TEXT, UNIQUE(kind, id))"
        )
        db.executemany("INSERT INTO entries VALUES (?, ?, ?)", entries)
