"""Transcripts and records that appear, grow, go, come back, move and are forgotten, in any order.

What is answered is told by plain rules: a record whose file is there answers for the transcript of the same session;
every other session that was read once and not forgotten answers for itself; and what is forgotten takes along what it
started, for good. What is there in the end is what a fresh index makes of the files that nobody has forgotten.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from indexer.follow import FOLDER_PREFIX
from schemas.answers import SessionSummary
from schemas.requests import SessionsRequest
from search_api.archive import Archive
from search_api.caller import Caller
from tests.belonging.forgetting import forget
from tests.belonging.mixed import Mixed
from tests.indexer.archives import found_in, write_record
from tests.indexer.sources.claude_code.written import user
from tests.indexer.sources.codex.rollouts import encoded, file_name, meta
from tests.indexer.sources.codex.rollouts import user as asked
from tests.indexer.test_forget import deleted_earlier

STEPS = 30
FOLDERS = ("-home-a-kettle", "-home-b-kettle")
SOURCES = ["cydonia", "claude-code", "codex"]
DAY_SECONDS = 86_400


@dataclass(eq=False)
class Told:
    """A session as its transcript tells it."""

    id: str
    source: str
    parent: "Told | None" = None
    about: "Told | None" = None
    """Of a record: the transcript of the same session."""
    turns: int = 0
    content: bytes = b""
    is_there: bool = False
    """Whether its file is."""
    kept: int | None = None
    """How many turns of it were read; None: it was never seen, or is forgotten."""
    is_deleted: bool = False
    is_forgotten: bool = False
    number: int | None = None
    """The number that it was seen with."""

    def starts(self, other: "Told") -> bool:
        """Whether it is another session, or started it, over any number of steps."""
        return other is self or (other.parent is not None and self.starts(other.parent))


@dataclass
class History:
    mixed: Mixed
    random: Random
    told: list[Told] = field(default_factory=list)
    folder: str = FOLDERS[0]

    def __post_init__(self) -> None:
        # A folder that is empty where it was not is unavailable, and changes nothing.
        write_record(self.mixed.project, "1790000000001", "Else.")
        self.mixed.session("always").add(user("Else.", uuid="always"))
        self.mixed.codex.write(meta(_thread(0), cwd=str(self.mixed.project)), *asked("Else."), thread=_thread(0))

    # What happens to files.

    def path(self, told: Told) -> Path:
        if told.source == "cydonia":
            return self.mixed.project / ".cydonia" / "sessions" / f"{told.id}.json"
        if told.source == "codex":
            return self.mixed.codex.day / file_name(told.id)
        beside = self.folder if told.parent is None else f"{self.folder}/{told.parent.id}/subagents"
        return self.mixed.claude.root.path / beside / f"{told.id}.jsonl"

    def put(self, told: Told) -> None:
        path = self.path(told)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(told.content)
        told.is_there = True

    def begin(self) -> None:
        """A transcript of an agent, or a subagent of one that there is."""
        source = self.random.choice(["claude-code", "codex"])
        # A subagent of Claude Code lies beside the session of which it is, also where another subagent started it.
        parents = [
            one for one in self.told if one.source == source and (source == "codex" or one.parent is None) and one.turns
        ]
        parent = self.random.choice(parents) if parents and self.random.random() < 0.5 else None
        number = len(self.told) + 1
        if source == "codex":
            id_ = _thread(number)
        else:
            id_ = f"session-{number:04d}" if parent is None else f"agent-a{number:06d}"
        told = Told(id_, source, parent)
        told.is_forgotten = parent is not None and parent.is_forgotten
        if source == "codex":
            spawn = {} if parent is None else {"parent_thread_id": parent.id, "depth": 1}
            head = {} if parent is None else {"source": {"subagent": {"thread_spawn": spawn}}}
            told.content = encoded([meta(id_, cwd=str(self.mixed.project), **head)])
        self.told.append(told)
        self.grow(told)

    def record(self) -> None:
        """A record, about a transcript that there is, or about none."""
        about = self.random.choice([None, *self.mains()])
        told = Told(str(1_790_000_100_000 + len(self.told)), "cydonia", about=about, turns=1)
        self.told.append(told)
        self.write_record(told)

    def write_record(self, told: Told) -> None:
        more = {} if told.about is None else {"session": told.about.id}
        path = write_record(self.mixed.project, told.id, *[f"A zebra {n}." for n in range(told.turns)], **more)
        told.content = json.dumps(json.loads(path.read_text()), indent=2).encode()
        self.put(told)

    def grow(self, told: Told) -> None:
        told.turns += 1
        text = f"A zebra {told.turns} of {told.id}."
        if told.source == "codex":
            told.content += encoded(asked(text), first=told.turns * 10)
        elif told.source == "claude-code":
            written = (
                self.mixed.session(told.id)
                if told.parent is None
                else self.mixed.subagent(told.id.removeprefix("agent-"), told.parent.id)
            )
            told.content += written.encoded(user(text, uuid=f"{told.id}-{told.turns}"))
        else:
            self.write_record(told)
        self.put(told)

    def repoint(self, told: Told) -> None:
        """A record is about another session now, or about none."""
        told.about = self.random.choice([None, *self.mains()])
        self.write_record(told)

    def delete(self, told: Told) -> None:
        self.path(told).unlink()
        told.is_there = False

    def move(self) -> None:
        """The directory of the project gets another name, and so does the folder of its transcripts."""
        root = self.mixed.claude.root.path
        other = next(folder for folder in FOLDERS if folder != self.folder)
        (root / self.folder).rename(root / other)
        self.folder = other

    # What is done with the archive.

    def index(self) -> None:
        self.mixed.index()
        for one in self.told:
            if not one.is_forgotten:
                one.kept = one.turns if one.is_there else one.kept
                one.is_deleted = one.kept is not None and not one.is_there

    def lose_index(self) -> None:
        """The index is made anew from the store."""
        for folder in self.mixed.settings().data_dir.glob(f"{FOLDER_PREFIX}*"):
            shutil.rmtree(folder)
        self.index()

    def forget(self, named: list[Told], deleted_before: str | None = None) -> None:
        """Forget sessions, and see that what is announced is what goes and what is reported."""
        gone = [
            one
            for one in self.told
            if one.kept is not None and any(told.starts(one) for told in (*named, *self.deleted(deleted_before)))
        ]
        lines, reported = forget(self.mixed, *(one.id for one in named), deleted_before=deleted_before)
        turns = sum(one.kept or 0 for one in gone)
        plain = f"{len(gone)} session{'' if len(gone) == 1 else 's'} with {turns} turn{'' if turns == 1 else 's'}"
        assert lines[0] == f"to be forgotten: {plain}"
        assert reported == (len(gone), turns)
        for one in self.told:
            if any(told.starts(one) for told in gone):
                one.is_forgotten, one.kept = True, None

    def deleted(self, deleted_before: str | None) -> list[Told]:
        return [] if deleted_before is None else [one for one in self.told if one.kept is not None and one.is_deleted]

    # What may happen next.

    def mains(self) -> list[Told]:
        return [one for one in self.told if one.source != "cydonia" and one.parent is None]

    def steps(self) -> Iterator[Callable[[], None]]:
        """One of each kind of what can happen, to something that it can happen to."""

        def some(fits: Callable[[Told], bool], step: Callable[[Told], None]) -> Iterator[Callable[[], None]]:
            fitting = [one for one in self.told if fits(one)]
            if fitting:
                told = self.random.choice(fitting)
                yield lambda: step(told)

        yield self.begin
        yield self.record
        yield self.move
        if self.random.random() < 0.2:
            yield self.lose_index
        yield from some(lambda one: one.is_there, self.grow)
        yield from some(lambda one: one.is_there, self.delete)
        yield from some(lambda one: not one.is_there, self.put)
        yield from some(lambda one: one.is_there and one.source == "cydonia", self.repoint)
        yield from some(lambda one: one.kept is not None, lambda one: self.forget([one]))
        if self.random.random() < 0.3:
            kept = [one for one in self.told if one.kept is not None]
            if kept:
                yield lambda: self.forget(self.random.sample(kept, min(3, len(kept))))
            if self.deleted("90d"):
                yield self.forget_deleted

    def forget_deleted(self) -> None:
        deleted_earlier(self.mixed.settings(), 91 * DAY_SECONDS)
        self.forget([], "90d")

    # What must be true.

    def record_of(self, told: Told) -> Told | None:
        """The record that answers for a transcript."""
        records = [one for one in self.told if one.about is told and one.kept is not None and not one.is_deleted]
        return min(records, key=lambda one: one.id, default=None)

    def check(self) -> None:
        """All that is answered is what the rules say; to be called when everything was indexed."""
        kept = [one for one in self.told if one.kept is not None]
        turns = {one.id: range(1, (one.kept or 0) + 1) for one in kept}
        settings = self.mixed.settings()
        for mode in ("text", "words"):
            for subagents in ("exclude", "include"):
                expected = {
                    (one.id, turn)
                    for one in kept
                    if self.record_of(one) is None and (subagents == "include" or one.parent is None)
                    for turn in turns[one.id]
                }
                found = found_in(settings, "zebra", mode=mode, subagents=subagents)
                assert len(found) == len(set(found))
                assert set(found) == expected
        listed = {one.session_id: one for one in self.listed("data")}
        assert listed.keys() == {one.id for one in kept}
        numbers: set[int] = set()
        for one in self.told:
            if one.kept is not None:
                record = self.record_of(one)
                seen = listed[one.id]
                assert (seen.deleted, seen.turns) == (one.is_deleted, one.kept)
                assert seen.twin_of == (None if record is None else record.id)
                has_number = one.source != "cydonia" and one.parent is None and record is None
                assert (seen.session is not None) == has_number
                if has_number:
                    assert one.number in (None, seen.session)
                    one.number = seen.session
            if one.number is not None:
                assert one.number not in numbers
                numbers.add(one.number)

    def check_against_a_fresh_index(self) -> None:
        """What is there is what an index has that never saw anything else."""
        for one in self.told:
            if one.is_forgotten and one.is_there:
                self.path(one).unlink()
        self.mixed.index("fresh")
        fresh = {(one.session_id, one.parent is not None, one.twin_of, one.turns) for one in self.listed("fresh")}
        live = [one for one in self.listed("data") if not one.deleted]
        assert {(one.session_id, one.parent is not None, one.twin_of, one.turns) for one in live} == fresh

    def listed(self, data: str) -> list[SessionSummary]:
        asked_for = SessionsRequest.read({"subagents": "include", "source": SOURCES, "limit": 200})
        with closing(Archive.open(self.mixed.settings(data))) as archive:
            sessions = archive.sessions(asked_for, Caller()).sessions
        always = {"1790000000001", "always", _thread(0)}
        return [one for one in sessions if one.session_id not in always]


def _thread(number: int) -> str:
    return f"019adf00-0000-7000-8000-{number:012d}"


@pytest.mark.parametrize("seed", range(8))
def test_any_history_ends_as_the_rules_say(mixed: Mixed, seed: int) -> None:
    history = History(mixed, Random(seed))
    for _ in range(STEPS):
        history.random.choice(list(history.steps()))()
        if history.random.random() < 0.5:
            history.index()
            history.check()
    history.index()
    history.check()
    history.check_against_a_fresh_index()
