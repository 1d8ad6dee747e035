"""What is forgotten is in no byte of the data directory, does not come back, and is missed by nothing else."""

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import zstandard

import indexer.follow
import indexer.forget
from indexer.commands import Commands, Done, Forget, Forgotten, Order, Progress, Step
from indexer.follow import FOLDER_PREFIX, IndexFollower
from indexer.forget import GONE_SECONDS, Forgetting
from indexer.index import IndexReader
from indexer.lane_writer import WORDS_FOLDER
from indexer.service import Indexer, carry_out
from indexer.store import compression, writer
from indexer.store.schema import STORE_FILE, create_or_open
from indexer.store.writer import StoreWriter
from indexer.vocabulary import Fits, VocabularyReader
from schemas.errors import InvalidArgument, Unavailable
from schemas.settings import Settings
from search_api.archive import Archive
from tests.indexer.archives import (
    Transcripts,
    agent,
    all_hits,
    append,
    contents,
    found_in,
    index,
    session_of,
    sessions_of,
    user,
    write_record,
)
from tests.indexer.earlier_stores import make_earlier
from tests.waiting import wait_for

SECRET = "zyxwolfram"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def forget(settings: Settings, *session_ids: str, id: str = "f1", keeps_away: bool = True) -> Forgotten:
    keys = tuple(session_of(settings, session_id).id for session_id in session_ids)
    return carry_out(settings, Order(id=id, command=Forget(sessions=keys, keeps_away=keeps_away)), lambda _: None)


@pytest.fixture(autouse=True)
def keeping_what_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite as it is by default: some systems build it so that it zeroes most of what is deleted."""

    def opened(data_dir: Path) -> sqlite3.Connection:
        connection = create_or_open(data_dir)
        connection.execute("PRAGMA secure_delete = OFF")
        return connection

    monkeypatch.setattr(writer, "create_or_open", opened)


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    """Sessions of which `secret` has the word in all that it has, some of it in texts that were replaced since."""
    transcripts = Transcripts(tmp_path)
    kettle = transcripts.project("kettle")
    for n in range(12):
        write_record(kettle, f"179000000{n:02d}00", f"the parser range {n} => 错误", f"span is off by-{n}")
        transcripts.turn_file(f"t{n}", user(f"the parser of é {n}"), agent("spanning"), user(f"last-{n}"))
    tool = {"type": "tool", "id": "1", "label": f"make {SECRET}", "status": "ok", "output": f"{SECRET}-out\n" * 9000}
    secret = transcripts.turn_file("secret", user(f"{SECRET} one"), tool, title=f"About {SECRET}")
    write_record(kettle, "17900000099900", f"{SECRET} in a record", title=f"Record {SECRET}")
    index(transcripts.settings())
    for n in range(4):
        append(secret, user(f"{SECRET}more{n} " + "and so on " * 300), {"type": "title", "text": f"{SECRET} title {n}"})
        index(transcripts.settings())
    write_record(kettle, "17900000099900", f"{SECRET} in a record", f"{SECRET} again", title=f"Another {SECRET}")
    index(transcripts.settings())
    return transcripts


@pytest.fixture
def settings(transcripts: Transcripts) -> Settings:
    return transcripts.settings()


def index_folder(settings: Settings) -> Path:
    (folder,) = settings.data_dir.glob(f"{FOLDER_PREFIX}*")
    return folder


def frames(raw: bytes) -> Iterator[bytes]:
    """Everything that begins like a frame of the store, decompressed as far as that goes."""
    at = raw.find(ZSTD_MAGIC)
    while at >= 0:
        for id_ in (0, compression.CURRENT):
            dictionary = zstandard.ZstdCompressionDict(compression.dictionary_bytes(id_)) if id_ else None
            decompressor = zstandard.ZstdDecompressor(dict_data=dictionary).decompressobj()
            try:
                yield decompressor.decompress(raw[at : at + 1_000_000])
            except zstandard.ZstdError:
                continue
        at = raw.find(ZSTD_MAGIC, at + 1)


def traces(settings: Settings, word: str = SECRET) -> list[str]:
    """Where in the data directory a word still is."""
    found = []
    for path in settings.data_dir.rglob("*"):
        if not path.is_file():
            continue
        raw = path.read_bytes()
        if word.encode() in raw.lower() or word[:8].encode() in raw.lower():
            found.append(f"{path.name}: as it is")
        if path.name.startswith(STORE_FILE) and any(word.encode() in frame for frame in frames(raw)):
            found.append(f"{path.name}: in a frame")
    folder = index_folder(settings)
    reader = IndexReader(folder)
    for term in (word, "out", f"{word}more3"):
        if term.startswith(word) and reader.frequency(term):
            found.append(f"{folder.name}: {term} as a term")
    with closing(VocabularyReader(folder / WORDS_FOLDER)) as vocabulary:
        found += [f"{folder.name}: {one} as a word" for one in vocabulary.find(word[:8], Fits.ANYWHERE, 100) or []]
    return found


def test_what_is_forgotten_is_in_no_byte_of_the_data_directory(settings: Settings) -> None:
    before, old = contents(settings), index_folder(settings)
    others = found_in(settings, "parser")
    assert {place.split(": ")[1] for place in traces(settings)} >= {"as it is", "in a frame"}
    doomed = {session_of(settings, one).handle for one in ("secret", "17900000099900")}
    assert forget(settings, "secret", "17900000099900") == Forgotten(sessions=2, turns=7)
    assert traces(settings) == []
    assert not old.exists()
    assert contents(settings) == {handle: kept for handle, kept in before.items() if handle not in doomed}
    assert found_in(settings, "parser") == others
    assert found_in(settings, SECRET, full=True) == []


def test_a_word_that_others_have_too_is_still_found(transcripts: Transcripts, settings: Settings) -> None:
    transcripts.turn_file("other", user(f"{SECRET} of another one"))
    index(settings)
    forget(settings, "secret", "17900000099900")
    assert found_in(settings, "zyxwolf") == [("other", 1)]
    assert found_in(settings, "another one") == [("other", 1)]


def test_a_file_that_is_still_there_does_not_bring_it_back(transcripts: Transcripts, settings: Settings) -> None:
    forget(settings, "secret", "17900000099900")
    index(settings)
    append(transcripts.turns / "secret.turns.jsonl", user(f"{SECRET} appended"))
    write_record(transcripts.folder / "work" / "kettle", "17900000099900", f"{SECRET} rewritten")
    index(settings)
    assert not {"secret", "17900000099900"} & {one.session_id for one in sessions_of(settings).values()}
    assert traces(settings) == []


def test_a_file_that_moves_does_not_bring_it_back(transcripts: Transcripts, settings: Settings) -> None:
    forget(settings, "secret", "17900000099900")
    (transcripts.turns / "secret.turns.jsonl").rename(transcripts.turns / "moved.turns.jsonl")
    work = transcripts.folder / "work"
    (work / "kettle").rename(work / "pan")
    transcripts.list_projects([work / "pan"])
    index(settings)
    assert traces(settings) == []
    assert len([one for one in sessions_of(settings).values() if one.project.name == "pan"]) == 12


def test_a_copy_under_another_key_is_another_session(transcripts: Transcripts, settings: Settings) -> None:
    pan = transcripts.project("pan")
    write_record(pan, "17900000099900", f"{SECRET} in a record")
    twin = transcripts.turn_file("twin", user(f"{SECRET} of a twin"), id="secret")
    index(settings)
    by_title = {one.title: one for one in sessions_of(settings).values()}
    keys = (by_title[f"{SECRET} title 3"].id, by_title[f"Another {SECRET}"].id)
    carry_out(settings, Order(id="f", command=Forget(sessions=keys)), lambda _: None)
    append(twin, user("it goes on"))
    write_record(transcripts.project("later"), "17900000099900", f"{SECRET} in a record", f"{SECRET} again")
    index(settings)
    left = {(one.session_id, one.project.name) for one in sessions_of(settings).values()}
    assert left >= {("17900000099900", "pan"), ("17900000099900", "later"), ("secret", "twin")}
    assert found_in(settings, "it goes on") == [("secret", 2)]


def test_another_session_in_the_same_file_is_read(transcripts: Transcripts, settings: Settings) -> None:
    forget(settings, "secret")
    transcripts.turn_file("secret", user("begun anew"), id="fresh")
    index(settings)
    assert found_in(settings, "begun anew") == [("fresh", 1)]


def test_an_order_that_is_sent_twice_is_carried_out_once(settings: Settings) -> None:
    order = Order(id="once", command=Forget(sessions=(session_of(settings, "secret").id,)))
    first = carry_out(settings, order, lambda _: None)
    made = index_folder(settings)
    assert carry_out(settings, order, lambda _: None) == first
    assert index_folder(settings) == made
    with pytest.raises(InvalidArgument):
        carry_out(settings, Order(id="once", command=Forget(sessions=(999,))), lambda _: None)


def test_history_that_is_not_kept_goes_a_minute_after_its_file(transcripts: Transcripts) -> None:
    settings = transcripts.settings(history={"keep_deleted": False})
    path = transcripts.turns / "secret.turns.jsonl"
    line = path.read_bytes()
    path.unlink()
    index(settings)
    assert session_of(settings, "secret").is_deleted
    deleted_earlier(settings, GONE_SECONDS - 20)
    index(settings)
    assert session_of(settings, "secret").is_deleted
    deleted_earlier(settings, 40)
    index(settings)
    assert "secret" not in {one.session_id for one in sessions_of(settings).values()}
    path.write_bytes(line)
    index(settings)
    assert session_of(settings, "secret").turns == 5


def test_history_is_kept_by_default(transcripts: Transcripts, settings: Settings) -> None:
    (transcripts.turns / "secret.turns.jsonl").unlink()
    index(settings)
    deleted_earlier(settings, 10 * GONE_SECONDS)
    index(settings)
    assert session_of(settings, "secret").is_deleted


def deleted_earlier(settings: Settings, seconds: float) -> None:
    with closing(sqlite3.connect(settings.data_dir / STORE_FILE)) as store, store:
        store.execute("UPDATE deletions SET at = at - ?", (int(seconds * 1000),))


def test_a_store_of_before_there_were_commands_is_brought_up_to_date(
    transcripts: Transcripts, settings: Settings
) -> None:
    (transcripts.turns / "secret.turns.jsonl").unlink()
    index(settings)
    before = contents(settings)
    make_earlier(settings.data_dir, 1)
    index(settings)
    assert contents(settings) == before
    forget(settings, "secret", "17900000099900")
    assert traces(settings) == []


class Ended(Exception):
    """Stands for the end of the process."""


def end(*_: Any, **__: Any) -> None:
    raise Ended


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Forgetting, "_remove"),
        (StoreWriter, "purge"),
        (StoreWriter, "empty_log"),
        (Forgetting, "_replace"),
        (IndexFollower, "step_bulk"),
        (IndexFollower, "take_over"),
        (Forgetting, "_finish"),
        (Commands, "tell_done"),
    ],
)
def test_the_next_start_finishes_what_was_begun(
    settings: Settings, owner: type[Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = found_in(settings, "parser")
    keys = tuple(session_of(settings, one).id for one in ("secret", "17900000099900"))
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, end)
        with pytest.raises(Ended):
            carry_out(settings, Order(id="f", command=Forget(sessions=keys)), lambda _: None)
    assert found_in(settings, "parser") == others
    index(settings)
    assert traces(settings) == []
    assert found_in(settings, "parser") == others
    with closing(sqlite3.connect(settings.data_dir / STORE_FILE)) as store:
        assert store.execute("SELECT step FROM commands").fetchall() == [(Step.DONE,)]


def test_a_search_beside_it_never_fails_and_misses_nothing(settings: Settings) -> None:
    expected = found_in(settings, "parser")
    failures: list[BaseException] = []
    is_over = threading.Event()

    def search() -> None:
        try:
            with closing(Archive.open(settings)) as archive:
                while not is_over.is_set():
                    assert [(hit.session_id, hit.turn) for hit in all_hits(archive, "arse")] == expected
        except BaseException as error:
            failures.append(error)
            raise

    readers = [threading.Thread(target=search) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for n, session_id in enumerate(("secret", "17900000099900")):
            forget(settings, session_id, id=str(n))
        for n in range(4):
            carry_out(settings, Order(id=f"nothing {n}", command=Forget(sessions=())), lambda _: None)
    finally:
        is_over.set()
        for reader in readers:
            reader.join()
    assert not failures
    assert traces(settings) == []


def test_what_a_killed_process_left_in_scratch_goes_too(settings: Settings) -> None:
    left = settings.data_dir / "scratch" / "registry-x"
    left.mkdir(parents=True)
    (left / "copy.db").write_bytes(SECRET.encode())
    forget(settings, "secret", "17900000099900")
    assert traces(settings) == []


def test_without_room_to_write_the_store_anew_it_waits(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(indexer.forget, "PURGE_SIZES", 10**12)
        with pytest.raises(Unavailable, match="are free"):
            forget(settings, "secret", "17900000099900")
    assert found_in(settings, SECRET) == []
    index(settings)
    assert traces(settings) == []


def test_a_process_of_its_own_makes_a_large_index_anew(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer.follow, "PROCESS_CHUNKS", 0)
    others = found_in(settings, "parser")
    forget(settings, "secret", "17900000099900")
    assert traces(settings) == []
    assert found_in(settings, "parser") == others


def test_what_is_written_meanwhile_is_found(
    transcripts: Transcripts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer.follow, "PROCESS_CHUNKS", 0)
    order = Order(id="f", command=Forget(sessions=(session_of(settings, "secret").id,)))
    with running(settings) as indexer_:
        written = 0
        for news in indexer_.submit(order).follow():
            if isinstance(news, Progress):
                append(transcripts.turns / "t1.turns.jsonl", user("written meanwhile"))
                written += 1
        assert isinstance(news, Done)
        assert written >= 2
        wait_for(lambda: len(found_in(settings, "written meanwhile")) == written, "it is found")
    assert len(found_in(settings, "parser")) == 24


def test_a_server_forgets_a_session_a_minute_after_its_file_went(
    transcripts: Transcripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer.forget, "GONE_SECONDS", 1.0)
    settings = transcripts.settings(history={"keep_deleted": False})
    with running(settings):
        (transcripts.turns / "secret.turns.jsonl").unlink()
        wait_for(lambda: "secret" not in {one.session_id for one in sessions_of(settings).values()}, "it is forgotten")
    assert len(found_in(settings, "parser")) == 24


@contextmanager
def running(settings: Settings) -> Iterator[Indexer]:
    started = Indexer(settings)
    started.start()
    try:
        yield started
    finally:
        started.stop()


def test_numbers_are_not_given_again(transcripts: Transcripts, settings: Settings) -> None:
    forgotten = session_of(settings, "secret").number
    forget(settings, "secret")
    transcripts.turn_file("after", user("hello"), project="/home/a/secret")
    index(settings)
    assert session_of(settings, "after").number == (forgotten or 0) + 1


def test_a_damaged_successor_is_begun_again(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = (session_of(settings, "secret").id, session_of(settings, "17900000099900").id)
    with monkeypatch.context() as patch:
        patch.setattr(IndexFollower, "take_over", end)
        with pytest.raises(Ended):
            carry_out(settings, Order(id="f", command=Forget(sessions=keys)), lambda _: None)
    folders = sorted(settings.data_dir.glob(f"{FOLDER_PREFIX}*"), key=os.path.getmtime)
    assert len(folders) == 2
    with closing(sqlite3.connect(settings.data_dir / STORE_FILE)) as store:
        (successor,) = store.execute("SELECT value FROM meta WHERE key = 'next_index_folder'").fetchone()
    shutil.rmtree(settings.data_dir / successor / "bulk")
    index(settings)
    assert traces(settings) == []
    assert len(found_in(settings, "parser")) == 24
