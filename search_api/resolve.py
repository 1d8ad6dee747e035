"""From the words of a call to the project and the session that it means; never by guessing."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from indexer.store.reader import Condition, Project, Session, StoreReader
from schemas.errors import Ambiguous, InvalidReference, NotASession, NotFound, quoted
from schemas.folding import fold
from schemas.references import (
    MAX_SESSION_ARGUMENT_CHARS,
    MIN_ID_PREFIX_CHARS,
    NumberedReference,
    Turns,
    is_bare_card,
    is_id_word,
    is_numbered,
    parse_bare_number,
    parse_numbered,
    split_id,
)
from schemas.texts import collapsed, trimmed, without_surrogates
from search_api.naming import Names, session_with_number, sessions_with_alias, sessions_with_id

MAX_CANDIDATES = 50
LAST_CHAR = "\U0010ffff"

_OF_SESSIONS = "; the list of sessions has those that there are"
_ARTICLES = {"a": "an", "e": "an", "i": "an", "o": "an", "u": "an"}


@dataclass(frozen=True, slots=True)
class CallScope:
    """The project that a call is about."""

    project: Project | None
    """None: every open project, or where `is_unknown` one that nothing is known of."""
    is_unknown: bool = False


class Resolver:
    """Resolves the words of one call in one state of the store."""

    def __init__(
        self, reader: StoreReader, scope: CallScope, *, with_closed: bool = False, with_aliases: bool = True
    ) -> None:
        """`with_closed`: whether the names and titles of closed projects count; `with_aliases`: whether a session is
        also named by another id that its transcript says it has, where no session has that id itself.
        """
        self._reader = reader
        self._scope = scope
        self._with_closed = with_closed
        self._with_aliases = with_aliases
        self._names = Names(reader, scope.project)

    def session(self, argument: str) -> tuple[Session, Turns | None]:
        """The session that an argument names, with the turns written on it.

        Raises:
            InvalidReference, NotASession, NotFound, Ambiguous: each says what would have been accepted.
        """
        words = trimmed(without_surrogates(argument))
        if len(words) > MAX_SESSION_ARGUMENT_CHARS:
            raise InvalidReference(
                f"a session is named in at most {MAX_SESSION_ARGUMENT_CHARS} characters: #43, #43:5-7, name#43, an id"
                " or a title"
            )
        if is_numbered(words):
            reference = parse_numbered(words)
            return self._numbered(reference), reference.turns
        bare = parse_bare_number(words)
        if bare is not None:
            return self._numbered(bare), bare.turns
        return self._by_id(words) or self._by_title(words) or self._refuse(words)

    def _numbered(self, reference: NumberedReference) -> Session:
        shown = str(NumberedReference(reference.number, reference.project))
        if reference.project is not None:
            named = self._project_of(reference)
            return self._in_project(named, reference.number, shown)
        if self._scope.project is not None:
            return self._in_project(self._scope.project, reference.number, shown)
        if self._scope.is_unknown:
            raise NotFound(f"there is no session {quoted(shown)}: nothing is known of the call's project")
        return self._in_any_project(reference.number, shown)

    def _project_of(self, reference: NumberedReference) -> Project:
        named = projects_with_name(self._reader, reference.project or "", with_closed=self._with_closed)
        if len(named) == 1:
            return named[0]
        if named:
            raise _shared_name(reference.project or "", named)
        others = [self._names.of(session) for session in self._with_number(reference.number)]
        raise NotFound(f"there is no open project named {quoted(reference.project or '')}{_OF_SESSIONS}", others)

    def _with_number(self, number: int) -> list[Session]:
        """The sessions that a number names in open projects: each once, as it may have had the same in two of them."""
        found = (session_with_number(self._reader, project, number) for project in self._reader.open_projects())
        return list({session.id: session for session in found if session is not None}.values())[:MAX_CANDIDATES]

    def _in_project(self, project: Project, number: int, shown: str) -> Session:
        session = session_with_number(self._reader, project, number)
        if session is not None:
            return session
        entry = None if number >= 2**62 else self._reader.entry_kind(project.id, number)
        if entry is not None and entry[1] is not None and entry[0] != "session":
            raise _not_a_session(shown, entry[0])
        raise NotFound(f"there is no session {quoted(shown)} in project {quoted(project.name)}{_OF_SESSIONS}")

    def _in_any_project(self, number: int, shown: str) -> Session:
        projects = self._reader.open_projects()
        fitting = self._with_number(number)
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise self._ambiguous(shown, fitting)
        kinds = {
            entry[0]
            for project in projects
            if number < 2**62 and (entry := self._reader.entry_kind(project.id, number)) and entry[1] is not None
        } - {"session"}
        if len(kinds) == 1:
            raise _not_a_session(shown, kinds.pop())
        raise NotFound(f"there is no session {quoted(shown)} in any open project{_OF_SESSIONS}")

    def _by_id(self, words: str) -> tuple[Session, Turns | None] | None:
        split = split_id(words)
        if split is None:
            return None
        word, turns = split
        fitting = self._nearest(sessions_with_id(self._reader, word))
        if not fitting and self._with_aliases:
            fitting = self._nearest(sessions_with_alias(self._reader, word))
        if not fitting and len(word) >= MIN_ID_PREFIX_CHARS:
            fitting = self._beginning_with(word.lower())
        if len(fitting) > 1:
            raise self._ambiguous(word, fitting)
        return (fitting[0], turns) if fitting else None

    def _beginning_with(self, lower: str) -> Sequence[Session]:
        """Sessions whose ids begin so; those of the call's project, where it has any."""
        begins = Condition("s.id_lower >= ? AND s.id_lower < ?", (lower, lower + LAST_CHAR))
        suffix = f"ORDER BY s.id LIMIT {MAX_CANDIDATES}"
        own: Sequence[Session] = []
        if self._scope.project is not None:
            own = self._reader.sessions(begins & Condition("s.project = ?", (self._scope.project.id,)), suffix)
        return own or self._reader.sessions(begins, suffix)

    def _refuse_turns(self, words: str) -> None:
        """Refuse the name of a session with something behind it that is no turns."""
        head, colon, tail = words.partition(":")
        if colon and is_id_word(head) and sessions_with_id(self._reader, head):
            raise InvalidReference(
                f"{quoted(tail)} is not turns of {quoted(head)}; they are written 5 or 5-7, counted from 1"
            )

    def _nearest(self, sessions: Sequence[Session]) -> Sequence[Session]:
        """Those of the call's project, where it has any."""
        own = [one for one in sessions if self._scope.project is not None and one.project.id == self._scope.project.id]
        return own or sessions

    def _by_title(self, words: str) -> tuple[Session, Turns | None] | None:
        condition = Condition("s.title_folded = ?", (fold(collapsed(words)),)) & self._within()
        fitting = self._reader.sessions(condition, f"ORDER BY s.id LIMIT {MAX_CANDIDATES}")
        if len(fitting) > 1:
            # A record and the transcript of the same session mostly share their title; the record answers.
            records = {session.id for session in fitting}
            fitting = [session for session in fitting if session.twin_of not in records]
        if len(fitting) > 1:
            raise self._ambiguous(words, fitting)
        return (fitting[0], None) if fitting else None

    def _within(self) -> Condition:
        if self._scope.is_unknown:
            return Condition("0")
        if self._scope.project is None:
            return Condition() if self._with_closed else Condition("p.is_open")
        return Condition("s.project = ?", (self._scope.project.id,))

    def _refuse(self, words: str) -> tuple[Session, Turns | None]:
        self._refuse_turns(words)
        if is_bare_card(words):
            raise NotASession(f"{quoted(words)} is a card, not a session; a session is written #43, its turns #43:5-7")
        if any(project.is_open for project in self._reader.projects_named(words)):
            raise NotFound(
                f"{quoted(words)} is a project; a session in it is written {words}#43 (in a URL {words}%2343)"
            )
        if words and is_id_word(words) and len(words) < MIN_ID_PREFIX_CHARS:
            raise InvalidReference(
                f"{quoted(words)} is too short: the beginning of an id takes {MIN_ID_PREFIX_CHARS} characters or more"
            )
        if not words:
            raise InvalidReference("no session is named; write #43, name#43, a session's id or its title")
        raise NotFound(
            f"there is no session {quoted(words)}; write #43, name#43, a session's id,"
            f" {MIN_ID_PREFIX_CHARS} or more characters of its beginning, or its exact title"
        )

    def _ambiguous(self, words: str, fitting: Sequence[Session]) -> Ambiguous:
        names = [self._names.of(session) for session in fitting]
        return Ambiguous(f"{quoted(words)} fits several sessions", names)


def scope_of(reader: StoreReader, argument: str | None, caller_project: str | None, *, with_closed: bool) -> CallScope:
    """The project that a call is about: its own argument, else the caller's, else every open one.

    Raises:
        NotFound, Ambiguous: the argument names no project, or several.
    """
    if argument is None:
        if caller_project is None:
            return CallScope(None)
        known = reader.project(os.path.realpath(caller_project))
        return CallScope(known, is_unknown=known is None)
    words = trimmed(without_surrogates(argument))
    if words == "*":
        return CallScope(None)
    if "/" in words and "\0" not in words:
        project = reader.project(os.path.realpath(os.path.expanduser(words)))
        if project is None:
            raise NotFound(f"there is no project {quoted(words)}", _passable(reader.open_projects()))
        return CallScope(project)
    return CallScope(project_by_name(reader, words, with_closed=with_closed))


def project_by_name(reader: StoreReader, name: str, *, with_closed: bool) -> Project:
    """The open project of that name (or a closed one, where those count and no open one has it).

    Raises:
        NotFound: there is none.
        Ambiguous: there are several; the candidates are their paths.
    """
    fitting = projects_with_name(reader, name, with_closed=with_closed)
    if not fitting:
        raise NotFound(f"there is no open project named {quoted(name)}", _passable(reader.open_projects()))
    if len(fitting) > 1:
        raise _shared_name(name, fitting)
    return fitting[0]


def projects_with_name(reader: StoreReader, name: str, *, with_closed: bool) -> list[Project]:
    """The open projects of that name, or the closed ones, where those count and no open one has it."""
    named = reader.projects_named(name)
    fitting = [project for project in named if project.is_open]
    return named if with_closed and not fitting else fitting


def _passable(projects: Sequence[Project]) -> list[str]:
    """What may be passed as project instead: names, or where several share one or it means something else, paths."""
    counts = Counter(project.name for project in projects)
    return [
        project.name if counts[project.name] == 1 and "/" not in project.name and project.name != "*" else project.path
        for project in projects[:MAX_CANDIDATES]
    ]


def _shared_name(name: str, projects: Sequence[Project]) -> Ambiguous:
    return Ambiguous(
        f"{len(projects)} open projects are named {quoted(name)}; pass one of their paths as project",
        [project.path for project in projects],
    )


def _not_a_session(shown: str, kind: str) -> NotASession:
    article = _ARTICLES.get(kind[:1].lower(), "a")
    return NotASession(f"{shown} is {article} {quoted(kind)}, not a session{_OF_SESSIONS}")
