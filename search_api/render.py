"""The two forms of every answer and of every refusal: JSON and text.

A read that is cut is a slice of the uncut text, followed at once by the line that says where it was
cut: that line stands on a line of its own unless the cut fell inside one. So the pages without it,
one after the other, are the uncut text, character by character.
"""

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import orjson

from schemas.answers import (
    COPIED_FROM,
    Explanation,
    Hit,
    Indexing,
    Problem,
    ProjectsAnswer,
    ProjectSummary,
    ReadAnswer,
    ReadItem,
    ReadTurn,
    Road,
    SearchAnswer,
    SessionsAnswer,
    SessionSummary,
    SourceStatus,
    StatusAnswer,
)
from schemas.errors import TurndexError
from schemas.items import Kind, says_more
from schemas.texts import collapsed, counted, printable, trimmed, without_surrogates
from search_api.json_forms import ItemForm, ProcessItemForm, ReadForm, SearchForm, TextItemForm, ToolItemForm, TurnsForm

Answer: TypeAlias = SearchAnswer | ReadAnswer | SessionsAnswer | ProjectsAnswer | StatusAnswer
Mark: TypeAlias = Callable[[str], str]
"""How a match is set apart where a line is shown."""

MAX_TITLE_CHARS = 200
MAX_LABEL_CHARS = 200
NAMED_CANDIDATES = 10
"""How many candidates a refusal names in its words; the JSON form has them all."""

REFUSED = -32000
"""The code of refusals on the way to the protocol, one of those that it leaves to servers (JSON-RPC 2.0, 5.1)."""


def json_form(answer: Answer) -> bytes:
    """The answer as UTF-8 JSON: every key is there, null where there is nothing."""
    match answer:
        case SearchAnswer():
            return json_bytes(_search_form(answer))
        case ReadAnswer():
            return json_bytes(_read_form(answer))
        case _:
            return json_bytes(answer)


def json_bytes(value: Any) -> bytes:
    """Any of our values as JSON; a lone surrogate, as odd file names have them, becomes U+FFFD."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return without_surrogates(json.dumps(value, default=dataclasses.asdict, ensure_ascii=False)).encode()


def text_form(answer: Answer, mark: Mark | None = None) -> str:
    """The answer as lines to read, without a last line break; `mark` sets the matches of a search apart."""
    match answer:
        case SearchAnswer():
            text = _search_text(answer, mark)
        case ReadAnswer():
            text = _read_text(answer)
        case SessionsAnswer():
            text = _sessions_text(answer)
        case ProjectsAnswer():
            text = "\n".join(_project_line(project) for project in answer.projects) or "no projects yet"
        case StatusAnswer():
            text = "\n".join(_status_lines(answer))
    return without_surrogates(text)


def problem(error: TurndexError) -> Problem:
    """A refusal as RFC 9457 problem details; `type` is the entry of its code on the docs page."""
    return Problem(
        type=f"/docs#{error.code}",
        title=error.title,
        status=error.status,
        detail=_detail(error),
        code=error.code,
        candidates=list(error.candidates),
    )


def error_line(error: TurndexError) -> str:
    """A refusal in one line: `Error (code): detail`."""
    return printable(without_surrogates(f"Error ({error.code}): {_detail(error)}"))


def protocol_error(error: TurndexError) -> dict[str, Any]:
    """A refusal of what has not come as far as a message, as an error of JSON-RPC 2.0: clients show no other body."""
    return {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": REFUSED, "message": error_line(error), "data": problem(error)},
    }


def _detail(error: TurndexError) -> str:
    """What happened, and the first candidates unless the words name them already."""
    named = error.candidates[:NAMED_CANDIDATES]
    if all(candidate in error.detail for candidate in named):
        return error.detail
    rest = len(error.candidates) - len(named)
    return f"{error.detail}; one of: {', '.join(named)}{f' and {rest} more' if rest else ''}"


def _search_form(answer: SearchAnswer) -> SearchForm:
    return {
        "query": answer.query,
        "hits": answer.hits,
        "more": answer.more,
        "cursor": answer.cursor,
        "notes": search_notes(answer),
        "left_out": answer.left_out,
        "indexing": answer.indexing,
        "explain": answer.explanation,
        "took_ms": answer.took_ms,
    }


def search_notes(answer: SearchAnswer) -> list[str]:
    """What is said beside the hits, one sentence each, in the order in which it is shown."""
    match = "matches" if answer.limit == 1 else "match"
    more = f"more than {counted(answer.limit, 'turn')} {match}; narrow the query or name a session"
    return [
        *([more] if answer.more else []),
        *answer.notes,
        *(f"left out: {left.what}; {left.argument} brings them back" for left in answer.left_out),
        *([indexing_note(answer.indexing)] if answer.indexing else []),
        *(_explanation_notes(answer.explanation) if answer.explanation else []),
    ]


def _explanation_notes(explanation: Explanation) -> list[str]:
    steps = ", ".join(f"{step} {ms} ms" for step, ms in explanation.step_ms.items())
    return [
        *(f"road: {road.road}: {counted(road.turns, 'turn')}{_at_most(road)}" for road in explanation.roads),
        f"considered {explanation.considered} turns, loaded {explanation.loaded} chunks, "
        f"verified {explanation.verified} turns, matched {explanation.matched}",
        f"time: {steps}",
    ]


def _at_most(road: Road) -> str:
    return "" if road.at_most_chunks is None else f" (at most {road.at_most_chunks:,} chunks in all)"


def _context_lines(hit: Hit) -> list[str]:
    """The lines around a hit, each with how far from it it stands."""
    before = [f"  -{len(hit.before) - place} {printable(line)}" for place, line in enumerate(hit.before)]
    return before + [f"  +{place} {printable(line)}" for place, line in enumerate(hit.after, start=1)]


def _search_text(answer: SearchAnswer, mark: Mark | None) -> str:
    lines = [line for hit in answer.hits for line in (_hit_line(hit, mark), *_context_lines(hit))] or [
        f"nothing matches {printable(answer.query)}"
    ]
    notes = search_notes(answer)
    if answer.cursor is not None:
        notes.insert(1, f"next page: cursor={answer.cursor}")
    return "\n".join(lines + [f"… {printable(note)}" for note in notes])


def _hit_line(hit: Hit, mark: Mark | None) -> str:
    line = printable(hit.line)
    if mark is not None:
        line = _marked(line, hit.spans, mark)
    return f"{printable(hit.reference)} {_title(hit.title, MAX_TITLE_CHARS)} — {line}"


def _marked(line: str, spans: Sequence[tuple[int, int]], mark: Mark) -> str:
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        pieces += line[done:start], mark(line[start:end])
        done = end
    return "".join(pieces) + line[done:]


def indexing_note(indexing: Indexing) -> str:
    """How far a first scan or rebuild is, in words."""
    if not indexing.sessions_total:
        return "still indexing: how much there is is not known yet"
    return (
        f"still indexing: {indexing.sessions_done} of {indexing.sessions_total} sessions, "
        f"{_bytes(indexing.bytes_done)} of {_bytes(indexing.bytes_total)}"
    )


def _title(title: str, max_chars: int | None = None) -> str:
    if not trimmed(title):
        return "(untitled)"
    line = printable(title)
    return line if max_chars is None or len(line) <= max_chars else line[:max_chars] + "…"


def _read_form(answer: ReadAnswer) -> ReadForm:
    turns: TurnsForm | None = None
    if answer.turns is not None:
        turns = {"from": answer.turns.first, "to": answer.turns.last}
    return {
        "reference": answer.reference,
        "link": answer.link,
        "project": answer.project,
        "project_name": answer.project_name,
        "session": answer.session,
        "session_id": answer.session_id,
        "title": answer.title,
        "source": answer.source,
        "agent": answer.agent,
        "archived": answer.archived,
        "deleted": answer.deleted,
        "turns": turns,
        "count": answer.count,
        "items": [_item_form(item, part, is_full=answer.is_full) for part in answer.parts for item in part.items],
        "more": answer.more,
        "cursor": answer.cursor,
        "notes": answer.notes,
    }


def _item_form(item: ReadItem, part: ReadTurn, *, is_full: bool) -> ItemForm:
    form = _form_of_kind(item, is_full=is_full)
    if part.copied_from is not None:
        form["copied_from"] = part.copied_from
    return form


def _form_of_kind(item: ReadItem, *, is_full: bool) -> ItemForm:
    match item.kind:
        case Kind.TOOL:
            tool: ToolItemForm = {
                "turn": item.turn,
                "index": item.index,
                "kind": item.kind,
                "label": item.label,
                "status": item.status,
                "at": item.at,
            }
            if is_full:
                tool["input"], tool["output"] = item.input, item.output
            return tool
        case Kind.PROCESS:
            return ProcessItemForm(
                turn=item.turn, index=item.index, kind=item.kind, command=item.command, output=item.output, at=item.at
            )
        case _:
            return TextItemForm(turn=item.turn, index=item.index, kind=item.kind, text=item.text or "", at=item.at)


def _read_text(answer: ReadAnswer) -> str:
    header = "" if answer.is_continuation else _header(answer)
    text = header + "".join(_turn_with_heading(part) for part in answer.parts)
    if answer.notes:
        text = _ended(text) + "".join(f"… {printable(note)}\n" for note in answer.notes)
    if answer.more:
        return f"{text}… cut at {answer.max_chars} characters; read on with cursor={answer.cursor}"
    return text.removesuffix("\n")


def _header(answer: ReadAnswer) -> str:
    if answer.turns is None:
        says = " has no turns yet"
    elif answer.turns.first == answer.turns.last:
        says = f" — turn {answer.turns.first} of {answer.count}"
    else:
        says = f" — turns {answer.turns.first}-{answer.turns.last} of {answer.count}"
    return f"{answer.reference} {_title(answer.title)}{says}{_flags(answer)}\n"


def _flags(session: ReadAnswer | SessionSummary) -> str:
    return (" · archived" if session.archived else "") + (" · deleted at source" if session.deleted else "")


def _turn_with_heading(part: ReadTurn) -> str:
    copied = "" if part.copied_from is None else COPIED_FROM + part.copied_from
    return turn_text(part) if part.is_continued else f"\n## {part.reference}{copied}\n\n{turn_text(part)}"


def turn_text(part: ReadTurn) -> str:
    """The items of a turn, without its heading."""
    return "".join(_item_text(item) for item in part.items)


def _item_text(item: ReadItem) -> str:
    """The lines of an item, or of the piece of it that one answer holds."""
    match item.kind:
        case Kind.TOOL:
            head, texts = f"tool: {_label(item.label)} — {item.status}", _detail_of_tool(item)
        case Kind.PROCESS:
            head, texts = f"process: {collapsed(item.command or '') or '(unknown)'}", _shown(item, item.output)
        case _:
            text = _line_feeds(item.text or "")
            return (text if item.is_continued else f"{item.kind}: {text}") + ("" if item.is_cut else "\n")
    lines = texts if item.is_continued else [head, *texts]
    return "\n".join(lines) + ("" if item.is_cut and texts else "\n")


def _detail_of_tool(item: ReadItem) -> list[str]:
    # A piece of an input is there only because the whole of it says more than the label.
    is_piece = item.is_continued or (item.is_cut and item.output is None)
    is_input_shown = item.input is not None and (is_piece or says_more(item.label, item.input))
    return ([_line_feeds(item.input or "")] if is_input_shown else []) + _shown(item, item.output)


def _shown(item: ReadItem, output: str | None) -> list[str]:
    """An output as its lines; an empty one has none, except that it says that the input before it is whole."""
    return [_line_feeds(output)] if output or (output is not None and item.is_cut) else []


def _label(label: str | None) -> str:
    line = printable(collapsed(label or "")) or "(unknown)"
    return line if len(line) <= MAX_LABEL_CHARS else line[:MAX_LABEL_CHARS] + "…"


def _line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n")


def _ended(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def _sessions_text(answer: SessionsAnswer) -> str:
    lines = [_session_line(session) for session in answer.sessions] or ["no sessions"]
    if answer.cursor is not None:
        lines.append(f"… next page: cursor={answer.cursor}")
    return "\n".join(lines + [f"… {printable(note)}" for note in answer.notes])


def _session_line(session: SessionSummary) -> str:
    facts = [counted(session.turns, "turn"), session.last_at, session.agent and printable(session.agent)]
    says = ", ".join(fact for fact in facts if fact)
    title = _title(session.title, MAX_TITLE_CHARS)
    return f"{printable(session.reference)} {title} — {says}{_flags(session)}{_relations(session)}"


def _relations(session: SessionSummary) -> str:
    relations = (("started by", session.parent), ("forked from", session.forked_from), ("twin of", session.twin_of))
    return "".join(f" · {word} {printable(other)}" for word, other in relations if other is not None)


def _project_line(project: ProjectSummary) -> str:
    facts = [
        counted(project.sessions, "session"),
        counted(project.turns, "turn"),
        project.last_at,
        ", ".join(project.sources),
    ]
    closed = "" if project.open else " · closed"
    says = ", ".join(fact for fact in facts if fact)
    return f"{printable(project.name)} {printable(project.path)} — {says}{closed}"


def _status_lines(status: StatusAnswer) -> list[str]:
    state = "ready" if status.is_ready else "not ready"
    served = "no server" if status.uptime_s is None else f"up {_duration(status.uptime_s)}"
    lines = [
        f"turndex {status.version} · {state} · {served}",
        f"data: {printable(status.data_dir)}",
        f"sizes: store {_bytes(status.store_bytes)}, index {_bytes(status.index_bytes)}, "
        f"vocabulary {_bytes(status.vocabulary_bytes)}",
        f"holds: {counted(status.projects, 'project')}, {counted(status.sessions, 'session')}, "
        f"{counted(status.turns, 'turn')}, {counted(status.chunks, 'chunk')}",
    ]
    if status.indexing is not None:
        lines.append(indexing_note(status.indexing))
    for source in status.sources:
        lines += _source_lines(source)
    return lines + [f"… {printable(note)}" for note in status.notes]


def _source_lines(source: SourceStatus) -> list[str]:
    lag = f"{source.lag_ms} ms behind" if source.lag_ms else "up to date"
    lines = [
        f"{source.source}: {counted(source.files, 'file')}, {counted(source.sessions, 'session')}, "
        f"{counted(source.turns, 'turn')}, {_bytes(source.bytes)}, {lag}"
    ]
    lines += [f"  unavailable: {folder}" for folder in source.unavailable]
    lines += [f"  skipped: {count} × {reason}" for reason, count in source.skipped.items()]
    for error in source.errors:
        where = error.file if error.line is None else f"{error.file}:{error.line}"
        lines.append(f"  {where}: {error.reason} ({error.count} ×)")
    return [printable(line) for line in lines]


def _bytes(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB"


def _duration(seconds: float) -> str:
    minutes, whole_seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole_seconds} s"
