"""`session_read`: the turns of a session, whole or cut where the answer would be too long."""

from dataclasses import dataclass, replace

from indexer.store import chunks
from indexer.store.reader import Session, StoreReader
from schemas.answers import COPIED_FROM, ReadAnswer, ReadItem, ReadTurn, TurnRange
from schemas.errors import InvalidArgument, NoSuchTurn, quoted
from schemas.items import Item, Kind, Layer, says_more
from schemas.references import Turns, parse_turns
from schemas.requests import ReadRequest
from schemas.texts import collapsed, counted
from schemas.times import iso_utc
from search_api.caller import Caller
from search_api.copies import Copies
from search_api.cursor import fingerprint, read_cursor, write_cursor
from search_api.naming import Names
from search_api.resolve import Resolver, scope_of

DEFAULT_TURNS = 3
"""Turns read where the call names none: the last ones."""

HEADER_CHARS = 80
"""What the header line takes besides the title."""

SHOWN_LABEL_CHARS = 201
UNKNOWN = "(unknown)"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an answer begins: an item of a turn, and the characters of its body that were shown before."""

    turn: int
    index: int = 0
    offset: int = 0


def read(store: StoreReader, request: ReadRequest, caller: Caller) -> ReadAnswer:
    """Answer a read. `max_chars` None leaves it uncut.

    Raises:
        TurndexError: the words of the call are off.
    """
    scope = scope_of(store, request.project, caller.project, with_closed=True)
    session, written = Resolver(store, scope).session(request.session)
    names = Names(store, scope.project)
    asked = written
    if request.turns is not None:
        asked = parse_turns(request.turns.strip())
        if asked is None:
            raise InvalidArgument("turns", f"turns takes 5 or 5-7, counted from 1, not {quoted(request.turns)}")
    bound_to = fingerprint({"session": session.handle, "turns": str(asked), "full": request.full})
    if request.cursor is None:
        turns = _turns(session, asked, names)
        place = None if turns is None else _Place(turns.first)
    else:
        first, last, turn, index, offset = read_cursor(request.cursor, bound_to, 5)
        turns, place = Turns(first, last), _Place(turn, index, offset)
    page = _Page(store, session, names, request.full, request.max_chars)
    rest = None
    if turns is not None and place is not None:
        if request.cursor is None:
            page.spend(len(session.title) + HEADER_CHARS)
        rest = page.fill(turns, place)
    cursor = None
    if rest is not None and turns is not None:
        cursor = write_cursor(bound_to, (turns.first, turns.last, rest.turn, rest.index, rest.offset))
    return ReadAnswer(
        reference=names.of(session),
        link=names.link(session),
        project=session.project.path,
        project_name=session.project.name,
        session=session.number,
        session_id=session.session_id,
        title=session.title,
        source=session.source,
        agent=session.agent,
        archived=session.is_archived,
        deleted=session.is_deleted,
        turns=None if turns is None else TurnRange(turns.first, turns.last),
        count=session.turns,
        parts=page.parts,
        is_continuation=request.cursor is not None,
        max_chars=request.max_chars,
        more=cursor is not None,
        cursor=cursor,
        notes=[] if cursor is not None else _last_notes(store, session),
        is_full=request.full,
    )


def _last_notes(store: StoreReader, session: Session) -> list[str]:
    """What is said behind the last item, so that the pages of a read are what one long answer is."""
    unreadable = store.unreadable(session.id)
    if not unreadable:
        return []
    return [f"of its transcript {counted(unreadable, 'line')} could not be read; turndex status says which"]


def _turns(session: Session, asked: Turns | None, names: Names) -> Turns | None:
    """The turns to answer, cut to those there are; None where there are none and none were asked for."""
    if asked is None:
        return Turns(max(1, session.turns - DEFAULT_TURNS + 1), session.turns) if session.turns else None
    if asked.first > session.turns:
        turns = "no turns yet" if session.turns == 0 else f"{session.turns} turn{'s' * (session.turns > 1)}"
        raise NoSuchTurn(f"{names.of(session)} has {turns}", session.turns)
    return Turns(asked.first, min(asked.last, session.turns))


class _Page:
    """One answer's part of the turns, filled up to its length."""

    def __init__(
        self, store: StoreReader, session: Session, names: Names, is_full: bool, max_chars: int | None
    ) -> None:
        self._store = store
        self._session = session
        self._names = names
        self._name = names.of(session)
        self._copies = Copies(store)
        self._layers = list(Layer) if is_full else [Layer.CONVERSATION]
        self._left = max_chars
        self.parts: list[ReadTurn] = []

    def spend(self, chars: int) -> None:
        if self._left is not None:
            self._left -= chars

    def fill(self, turns: Turns, place: _Place) -> _Place | None:
        """Take items from a place on; returns where the next answer begins, None at the end."""
        for turn in range(place.turn, turns.last + 1):
            start = place if turn == place.turn else _Place(turn)
            is_continued = (start.index, start.offset) != (0, 0)
            reference = f"{self._name}:{turn}"
            copied_from = self._copies.reference(self._names, self._session.id, turn)
            heading = 0 if is_continued else len(reference) + 6
            if heading and copied_from is not None:
                heading += len(COPIED_FROM) + len(copied_from)
            if self._left is not None and self.parts and heading > self._left:
                return _Place(turn)
            self.spend(heading)
            part = ReadTurn(turn, reference, is_continued, [], copied_from)
            for index, item in self._items(turn):
                if index < start.index:
                    continue
                rest = self._take(part, index, item, start if index == start.index else _Place(turn, index))
                if rest is not None and not part.items and not is_continued:
                    return _Place(turn)  # its heading goes with its first item
                if rest is not None:
                    self.parts.append(part)
                    return rest
            self.parts.append(part)
        return None

    def _items(self, turn: int) -> list[tuple[int, Item]]:
        bodies = self._store.bodies_of_turn(self._session.id, turn, self._layers)
        rows = [(body.layer, row) for body in bodies for row in chunks.unpack(body.body)]
        items = chunks.merged(
            [row for layer, row in rows if layer is Layer.CONVERSATION],
            [row for layer, row in rows if layer is Layer.DETAIL],
        )
        called = self._store.subagents_called(self._session, turn)
        return [
            (index, _naming(item, self._names.of(called[index])) if index in called else item) for index, item in items
        ]

    def _take(self, part: ReadTurn, index: int, item: Item, at: _Place) -> _Place | None:
        """Take an item, or what of it there is room for; returns where the rest begins."""
        body = _body(item)
        cost = _head_chars(item) + len(body) - at.offset + 1
        if self._left is None or cost <= self._left:
            part.items.append(_piece(part.turn, index, item, at.offset, None))
            self.spend(cost)
            return None
        if self.parts or part.items:
            return at
        end = _cut(body, at.offset, max(self._left - _head_chars(item), 1))
        if end == len(body):
            part.items.append(_piece(part.turn, index, item, at.offset, None))
            return _Place(part.turn, index + 1)
        part.items.append(_piece(part.turn, index, item, at.offset, end))
        return replace(at, offset=end)


def _naming(item: Item, subagent: str) -> Item:
    """A tool item whose label also names the subagent that it started, within what is shown of a label."""
    label, name = collapsed(item.label or UNKNOWN), f" → {subagent}"
    room = SHOWN_LABEL_CHARS - 1 - len(name)
    return replace(item, label=(label if len(label) <= room else label[: room - 1] + "…") + name)


def _cut(body: str, start: int, room: int) -> int:
    """Where to cut a body that does not fit: behind its last line end in the room, else at a character."""
    end = body.rfind("\n", start, start + room) + 1
    if end == 0:
        end = min(start + room, len(body))
        end += body[end : end + 1] == "\n"  # a line end is not parted from its line
    return end


def _segments(item: Item) -> list[tuple[str, str]]:
    """The fields that may be cut, in the order in which they are shown, a line break between two."""
    if item.text is not None:
        return [("text", item.text)]
    segments = []
    if item.input and says_more(item.label, item.input):
        segments.append(("input", item.input))
    if item.output:
        segments.append(("output", item.output))
    return segments


def _body(item: Item) -> str:
    return "\n".join(text for _, text in _segments(item))


def _head_chars(item: Item) -> int:
    """What is shown of an item before its body, at most."""
    if item.kind not in (Kind.TOOL, Kind.PROCESS):
        return len(item.kind) + 2
    name = item.command if item.kind is Kind.PROCESS else (item.label or "")[:SHOWN_LABEL_CHARS]
    return len(item.kind) + max(len(name or ""), len(UNKNOWN)) + len(":  — running\n")


def _piece(turn: int, index: int, item: Item, start: int, end: int | None) -> ReadItem:
    """An item with the part of its body from `start` to `end`, None: its end; a continued one repeats nothing."""
    is_continued = start > 0
    whole = ReadItem(
        turn=turn,
        index=index,
        kind=item.kind,
        text=item.text,
        label=None if is_continued else item.label,
        status=None if is_continued else item.status,
        input=None if is_continued else item.input,
        output=item.output if end is None else None,
        command=None if is_continued else item.command,
        at=None if item.at_ms is None else iso_utc(item.at_ms),
        is_continued=is_continued,
        is_cut=end is not None,
    )
    if end is None and not is_continued:
        return whole
    shown: dict[str, str | None] = {}
    before = 0
    for field, text in _segments(item):
        within = text[max(start - before, 0) : None if end is None else max(end - before, 0)]
        is_reached = end is None or before <= end
        shown[field] = within if within or (start <= before and is_reached) else None
        before += len(text) + 1
    return replace(whole, **shown)  # type: ignore[arg-type]  # the names of text fields, each to a text or None
