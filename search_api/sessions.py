"""`sessions`, `projects` and `status`: what there is."""

import os
from contextlib import suppress
from pathlib import Path

from indexer.store.reader import Condition, Session, StoreReader
from schemas.answers import (
    ProjectsAnswer,
    ProjectSummary,
    SessionsAnswer,
    SessionSummary,
    SkippedLines,
    SourceStatus,
)
from schemas.requests import SessionsRequest
from schemas.sources import SOURCES
from schemas.texts import counted
from schemas.times import iso_utc
from search_api.caller import Caller
from search_api.cursor import fingerprint, read_cursor, write_cursor
from search_api.filters import TimeBounds, session_condition, time_bounds, within
from search_api.hits import unknown_project_note
from search_api.naming import Names, with_id
from search_api.resolve import scope_of

LATEST_ERRORS = 20


def list_sessions(store: StoreReader, request: SessionsRequest, caller: Caller, *, now_ms: int) -> SessionsAnswer:
    """The sessions that fit, the one with the newest turn first; those without turns last."""
    scope = scope_of(store, request.project, caller.project, with_closed=request.closed == "include")
    names = Names(store, scope.project)
    bounds = time_bounds(request, now_ms)
    condition = session_condition(request, scope)
    bound_to = fingerprint(
        {**request.model_dump(exclude={"cursor", "limit"}), "about": scope.project and scope.project.path}
    )
    if request.cursor is not None:
        last_ms, session, from_ms, to_ms = read_cursor(request.cursor, bound_to, 4)
        bounds = TimeBounds(from_ms, to_ms)
        condition &= Condition("(coalesce(s.last_at, -1), s.id) < (?, ?)", (last_ms, session))
    if not bounds.is_open:
        condition &= Condition(
            "EXISTS (SELECT 1 FROM turns t WHERE t.session = s.id AND t.at BETWEEN ? AND ?)",
            (bounds.from_ms, bounds.to_ms),
        )
    found = store.sessions(condition, f"ORDER BY coalesce(s.last_at, -1) DESC, s.id DESC LIMIT {request.limit + 1}")
    more = len(found) > request.limit
    found = found[: request.limit]
    cursor = None
    if more:
        last = found[-1]
        place = [-1 if last.last_ms is None else last.last_ms, last.id, bounds.from_ms, bounds.to_ms]
        cursor = write_cursor(bound_to, place)
    notes = []
    if not found and request.cursor is None:
        extent = store.extent(within(scope, with_closed=request.closed == "include"))
        notes = [f"looked through {counted(extent.sessions, 'session')}"]
        if scope.is_unknown and caller.project is not None:
            notes.append(unknown_project_note(caller.project))
    return SessionsAnswer([_summary(store, names, session) for session in found], more, cursor, notes)


def list_projects(store: StoreReader) -> ProjectsAnswer:
    """Every project, open and closed, by its path; but none that has no session (any more) and that nobody lists."""
    totals: dict[int, list[tuple[str, int, int, int | None]]] = {}
    for project, source, session_count, turns, last in store.project_totals():
        totals.setdefault(project, []).append((source, session_count, turns, last))
    summaries = []
    for known in store.all_projects():
        parts = totals.get(known.id, [])
        if not parts and not known.is_listed:
            continue
        last = max((last for *_, last in parts if last is not None), default=None)
        summaries.append(
            ProjectSummary(
                path=known.path,
                name=known.name,
                open=known.is_open,
                sources=[source for source, *_ in parts],
                sessions=sum(sessions for _, sessions, *_ in parts),
                turns=sum(turns for *_, turns, _ in parts),
                last_at=None if last is None else iso_utc(last),
            )
        )
    return ProjectsAnswer(summaries)


def source_statuses(store: StoreReader) -> list[SourceStatus]:
    """What the store knows of each source; how far it lags is known only to the process that writes."""
    totals, files = store.source_totals(), store.file_totals()
    statuses = []
    for source in SOURCES:
        counts, latest = store.skipped(source, LATEST_ERRORS)
        sessions, turns = totals.get(source, (0, 0))
        file_count, size = files.get(source, (0, 0))
        statuses.append(
            SourceStatus(
                source=source,
                files=file_count,
                sessions=sessions,
                turns=turns,
                bytes=size,
                lag_ms=0,
                unavailable=[f"{_shown(path)}: {why}" for path, why in store.unavailable_roots(source)],
                skipped=counts,
                errors=[SkippedLines(_shown(path), line, reason, count) for path, line, reason, count in latest],
            )
        )
    return statuses


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder; files and folders that go meanwhile count nothing."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(parent, name)).st_size
    return total


def _summary(store: StoreReader, names: Names, session: Session) -> SessionSummary:
    return SessionSummary(
        reference=names.of(session),
        link=names.link(session),
        project=session.project.path,
        project_name=session.project.name,
        session=session.number,
        session_id=session.session_id,
        title=session.title,
        source=session.source,
        agent=session.agent,
        turns=session.turns,
        first_at=None if session.first_ms is None else iso_utc(session.first_ms),
        last_at=None if session.last_ms is None else iso_utc(session.last_ms),
        archived=session.is_archived,
        deleted=session.is_deleted,
        parent=_parent(store, names, session),
        forked_from=_fork_origin(store, names, session),
        twin_of=_record(store, names, session),
    )


def _parent(store: StoreReader, names: Names, session: Session) -> str | None:
    """The session that started this one, by a name that can be passed back, or its id where it is not known."""
    parent = store.parent_of(session)
    return names.of(parent) if parent is not None else session.parent_id or None


def _record(store: StoreReader, names: Names, session: Session) -> str | None:
    """The record that answers for this session."""
    record = None if session.twin_of is None else store.session(session.twin_of)
    return None if record is None else names.of(record)


def _fork_origin(store: StoreReader, names: Names, session: Session) -> str | None:
    """What the session was forked from, by a name that can be passed back, or its id where it is not known."""
    if session.forked_from is None:
        return None
    origin = store.sessions(with_id(session.project, session.source, session.forked_from))
    return names.of(origin[0]) if origin else session.forked_from


def _shown(path: bytes) -> str:
    return os.fsdecode(path).encode("utf-8", "replace").decode()
