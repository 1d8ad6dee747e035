"""What a search answers is what reading every turn would, with what belongs together left out by plain rules."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from random import Random
from typing import Any

import pytest

from tests.belonging.mixed import Mixed
from tests.indexer.archives import write_record
from tests.indexer.sources.claude_code.written import agent, user

WORDS = ["zebra", "okapi", "tapir", "lemur"]
FIRST_RECORD = 1_790_000_000_000


@dataclass
class Turn:
    asked: str
    answered: str
    copied_from: tuple["Session", int] | None = None
    """The original, and the number of the turn there, for a turn that says the same."""


@dataclass
class Session:
    id: str
    source: str
    turns: list[Turn] = field(default_factory=list)
    is_subagent: bool = False
    is_twin: bool = False


def passes(session: Session, arguments: dict[str, Any]) -> bool:
    subagents = arguments.get("subagents", "exclude")
    sources = arguments.get("source")
    return (
        (subagents == "include" or session.is_subagent == (subagents == "only"))
        and (sources is None or session.source in sources)
        and (sources is not None or not session.is_twin)
        and arguments.get("title", "") in f"Session {session.id}"
    )


def scan(sessions: list[Session], query: str, arguments: dict[str, Any]) -> set[tuple[str, int]]:
    found = set()
    for session in sessions:
        for number, turn in enumerate(session.turns, 1):
            if not passes(session, arguments) or query not in f"{turn.asked}\n{turn.answered}":
                continue
            is_hidden = turn.copied_from is not None and passes(turn.copied_from[0], arguments)
            if arguments.get("copies") == "include" or not is_hidden:
                found.add((session.id, number))
    return found


class Writer:
    """Makes sessions up, and writes each as its agent would."""

    def __init__(self, mixed: Mixed, random: Random) -> None:
        self.mixed = mixed
        self.random = random
        self.sessions: list[Session] = []
        self.steps: list[Callable[[], object]] = []

    def text(self) -> str:
        return " ".join(self.random.choices(WORDS, k=2)) + f" {self.random.randrange(1000)}"

    def turns(self) -> list[Turn]:
        return [Turn(self.text(), self.text()) for _ in range(self.random.randint(1, 4))]

    def claude(self, name: str, *, is_subagent: bool = False, is_twin: bool = False) -> Session:
        written = self.mixed.subagent(name, parent="s0") if is_subagent else self.mixed.session(name)
        session = Session(f"agent-{name}" if is_subagent else name, "claude-code", self.turns(), is_subagent, is_twin)
        lines = []
        for number, turn in enumerate(session.turns, 1):
            lines += [
                user(turn.asked, uuid=f"{name}-{number}"),
                agent(turn.answered, uuid=f"{name}-{number}a", id=f"{name}-m{number}"),
            ]
        self.sessions.append(session)
        self.steps.append(partial(written.add, *lines))
        return session

    def fork(self, name: str, original: Session) -> None:
        """A fork with some of the original's turns, the last of which may have gone on in its own way."""
        session = Session(name, "claude-code")
        lines = []
        for number, turn in enumerate(original.turns[: self.random.randint(1, 4)], 1):
            mark = {"sessionId": original.id, "messageUuid": f"{original.id}-{number}"}
            is_last = self.random.random() < 0.3
            answered = turn.answered + (" and else" if is_last else "")
            session.turns.append(Turn(turn.asked, answered, None if is_last else (original, number)))
            lines += [
                user(turn.asked, uuid=f"{name}-{number}", forkedFrom=mark),
                agent(answered, uuid=f"{name}-{number}a", id=f"{name}-m{number}"),
            ]
            if is_last:
                break
        own = Turn(self.text(), self.text())
        session.turns.append(own)
        lines += [user(own.asked, uuid=f"{name}-own"), agent(own.answered, uuid=f"{name}-owna", id=f"{name}-mo")]
        self.sessions.append(session)
        self.steps.append(partial(self.mixed.session(name).add, *lines))

    def record(self, twin: Session | None, original: Session | None = None) -> Session:
        stem = str(FIRST_RECORD + len(self.sessions))
        session = Session(stem, "cydonia", self.turns())
        more: dict[str, Any] = {} if twin is None else {"session": twin.id}
        if original is not None:
            copied = original.turns[: self.random.randint(1, 4)]
            more["fork"] = {"session": original.id, "before": 2 * len(copied)}
            copies = [Turn(turn.asked, turn.answered, (original, n)) for n, turn in enumerate(copied, 1)]
            session.turns = copies + session.turns
        items = [item for turn in session.turns for item in ({"User": turn.asked}, {"Agent": turn.answered})]
        self.sessions.append(session)
        self.steps.append(partial(write_record, self.mixed.project, stem, items=items, **more))
        return session

    def write(self) -> None:
        """All that was made up, in any order, indexed now and then."""
        self.random.shuffle(self.steps)
        for step in self.steps:
            step()
            if self.random.random() < 0.3:
                self.mixed.index()
        self.mixed.index()


@pytest.mark.parametrize("seed", range(6))
def test_a_search_answers_what_a_scan_would(mixed: Mixed, seed: int) -> None:
    writer = Writer(mixed, Random(seed))
    mains = [writer.claude(f"s{number}") for number in range(3)]
    for number in range(2):
        writer.claude(f"a{number}", is_subagent=True)
        writer.fork(f"f{number}", writer.random.choice(mains))
        writer.record(writer.claude(f"t{number}", is_twin=True))
    forked = writer.record(None, original=writer.record(None))
    writer.write()
    for subagents, copies, source, title in product(
        (None, "include", "only"),
        (None, "include"),
        (None, ["claude-code"], ["cydonia"], ["claude-code", "cydonia"]),
        (None, f"Session {forked.id}"),
    ):
        arguments = {"subagents": subagents, "copies": copies, "source": source, "title": title}
        arguments = {name: value for name, value in arguments.items() if value is not None}
        word = writer.random.choice(WORDS)
        expected = scan(writer.sessions, word, arguments)
        for mode in ("text", "words"):
            found = mixed.all_found(word, mode=mode, **arguments)
            assert sorted(found) == sorted(expected), (mode, arguments)
