"""How long a read takes in this process: a few turns, a long turn, a whole session page by page."""

import time
from pathlib import Path
from random import Random
from typing import Any

from bench.corpus import corpus_settings, read_manifest
from bench.results import percentiles
from schemas.answers import SessionSummary
from schemas.requests import ReadRequest, SessionsRequest
from search_api.archive import Archive
from search_api.caller import Caller

READS = 300
PAGE_CHARS = 24_000
SESSION_PAGES = 20


def measure(corpus: Path, data_dir: Path, *, reads: int = READS) -> dict[str, Any]:
    """Milliseconds of reads of sessions anywhere in the archive, each answer cut at 24,000 characters."""
    archive = Archive.open(corpus_settings(corpus, data_dir))
    try:
        sessions = list(_all_sessions(archive))
        return {
            "turns": read_manifest(corpus).turns,
            "sessions": len(sessions),
            "page_chars": PAGE_CHARS,
            "last_turns_ms": _reads(archive, sessions, reads, is_one_turn=False, full=False),
            "one_turn_ms": _reads(archive, sessions, reads, is_one_turn=True, full=False),
            "full_last_turns_ms": _reads(archive, sessions, reads, is_one_turn=False, full=True),
            "full_one_turn_ms": _reads(archive, sessions, reads, is_one_turn=True, full=True),
            "longest_session_page_ms": _pages(archive, max(sessions, key=lambda session: session.turns)),
        }
    finally:
        archive.close()


def _all_sessions(archive: Archive) -> list[SessionSummary]:
    sessions: list[SessionSummary] = []
    cursor: str | None = None
    while cursor is not None or not sessions:
        answer = archive.sessions(SessionsRequest(project="*", limit=200, cursor=cursor), Caller())
        sessions += answer.sessions
        cursor = answer.cursor
        if cursor is None:
            break
    return sessions


def _reads(
    archive: Archive, sessions: list[SessionSummary], reads: int, *, is_one_turn: bool, full: bool
) -> dict[str, float]:
    """The last three turns of some session, or one turn anywhere in it."""
    random = Random(1)
    took_ms = []
    for _ in range(reads):
        session = random.choice(sessions)
        turns = str(random.randint(1, session.turns)) if is_one_turn else None
        request = ReadRequest(session=session.reference, turns=turns, project="*", full=full, max_chars=PAGE_CHARS)
        started = time.perf_counter()
        archive.read(request, Caller())
        took_ms.append((time.perf_counter() - started) * 1000)
    return percentiles(took_ms)


def _pages(archive: Archive, session: SessionSummary) -> dict[str, float]:
    """Page after page of all turns of a session, with detail."""
    arguments = {
        "session": session.reference,
        "turns": f"1-{session.turns}",
        "project": "*",
        "full": True,
        "max_chars": PAGE_CHARS,
    }
    took_ms = []
    cursor: str | None = None
    for _ in range(SESSION_PAGES):
        request = ReadRequest.read({**arguments, "cursor": cursor})
        started = time.perf_counter()
        cursor = archive.read(request, Caller()).cursor
        took_ms.append((time.perf_counter() - started) * 1000)
        if cursor is None:
            break
    return percentiles(took_ms)
