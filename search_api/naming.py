"""How an answer calls a session: by a word that can be passed back and names that session alone."""

from indexer.store.reader import Condition, Project, Session, StoreReader
from schemas.references import LINK_SCHEME, can_name_project, is_id_word, parse_bare_number
from schemas.sources import CYDONIA


class Names:
    """The names of sessions in one context: the call's project, and one state of the store."""

    def __init__(self, reader: StoreReader, call_project: Project | None) -> None:
        self._reader = reader
        self._call_project = call_project
        self._sessions: dict[int, str] = {}
        self._alone: dict[tuple[str, bool], bool] = {}

    def of(self, session: Session) -> str:
        """The first of `#n`, `name#n`, id and handle that names this session alone."""
        name = self._sessions.get(session.id)
        if name is None:
            name = self._sessions[session.id] = self._name(session)
        return name

    def link(self, session: Session) -> str | None:
        """The `cydonia://` link, where it means this session in Cydonia itself."""
        project = session.project
        if session.source != CYDONIA or session.number is None or session.is_minted or not project.is_listed:
            return None
        if not can_name_project(project.name) or not self._is_name_alone(project.name, among_listed=True):
            return None
        is_there = self._reader.entry_kind(project.id, session.number) == ("session", session.session_id)
        return f"{LINK_SCHEME}{project.name}#{session.number}" if is_there else None

    def _name(self, session: Session) -> str:
        project = session.project
        if session.number is not None and self._has_number(session):
            if self._call_project is not None and project.id == self._call_project.id:
                return f"#{session.number}"
            if project.is_open and can_name_project(project.name) and self._is_name_alone(project.name):
                return f"{project.name}#{session.number}"
        return session.session_id if self._is_id_alone(session) else session.handle

    def _has_number(self, session: Session) -> bool:
        found = session_with_number(self._reader, session.project, session.number or 0)
        return found is not None and found.id == session.id

    def _is_name_alone(self, name: str, *, among_listed: bool = False) -> bool:
        key = (name, among_listed)
        if key not in self._alone:
            projects = self._reader.projects_named(name)
            self._alone[key] = sum(project.is_listed if among_listed else project.is_open for project in projects) == 1
        return self._alone[key]

    def _is_id_alone(self, session: Session) -> bool:
        word = session.session_id
        if not is_id_word(word) or parse_bare_number(word) is not None:
            return False
        fitting = sessions_with_id(self._reader, word)
        if self._call_project is not None and any(one.project.id == self._call_project.id for one in fitting):
            fitting = [one for one in fitting if one.project.id == self._call_project.id]
        return [one.id for one in fitting] == [session.id]


def sessions_with_id(reader: StoreReader, word: str) -> list[Session]:
    """Every session that has this id or handle, ignoring case."""
    return reader.sessions(Condition("(s.id_lower = ? OR s.handle = ?)", (word.lower(),) * 2), "ORDER BY s.id")


def sessions_with_alias(reader: StoreReader, word: str) -> list[Session]:
    """Every session whose transcript says that it has this id, too, ignoring case."""
    has_alias = Condition("s.id IN (SELECT session FROM aliases WHERE id_lower = ?)", (word.lower(),))
    return reader.sessions(has_alias, "ORDER BY s.id")


def with_id(project: Project, source: str, session_id: str) -> Condition:
    """The sessions of a project that a source calls so; looked up in lower case, as that has an index."""
    return Condition(
        "s.id_lower = ? AND s.session_id = ? AND s.source = ? AND +s.project = ?",
        (session_id.lower(), session_id, source, project.id),
    )


def session_with_number(reader: StoreReader, project: Project, number: int) -> Session | None:
    """The session that a number names in a project: what its registry says now, else who had the number."""
    if number >= 2**62:
        return None
    entry = reader.entry_kind(project.id, number)
    if entry is not None and entry[1] is not None:
        if entry[0] != "session":
            return None
        found = reader.sessions(with_id(project, CYDONIA, entry[1]))
        return found[0] if found else None
    kept = reader.sessions(
        Condition("s.id IN (SELECT session FROM numbers WHERE project = ? AND number = ?)", (project.id, number)),
        # Who has it now, before who had it once, also if that is in another project since; a number that a registry
        # gave, before one of ours.
        f"ORDER BY s.project <> {project.id}, s.number IS NOT {number}, s.is_minted, s.id DESC LIMIT 1",
    )
    return kept[0] if kept else None
