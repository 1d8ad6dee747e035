"""Writes sessions as a Codex home has them, with all that stands around their texts.

    ROOT/sessions/YYYY/MM/DD/rollout-<local time>-<thread>.jsonl[.zst]
    ROOT/archived_sessions/rollout-….jsonl.zst
         sessions/YYYY/MM/DD/rollout-<local time>-<thread>_<rollout>.jsonl   a later generation of a thread
         sessions/rollout-<day>-<thread>.json                                 one document, as of early 2025
         session_index.jsonl, state_5.sqlite                                 titles
         history.jsonl                                                       what was typed, once more

Everything is written twice, as an item for the model and as an event for the screen; in between stand contexts of
turns, counts of tokens, encrypted reasoning, pictures, and compaction with the whole history once more. Some threads
are archived and compressed, some have subagents, some are forks that begin with a copy, some were rolled back or
reverted into a new file, and some have the forms of older versions.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import orjson
import zstandard

from bench.ballast import Ballast, Lines, Written, text_bytes
from bench.claude_corpus import session_uuid
from bench.codex_older import bare, can_be_bare, document, paginated
from bench.transcripts import Transcript
from schemas.times import iso_utc

Json: TypeAlias = dict[str, Any]

ARCHIVED_SHARE = 0.1
COMPRESSED_SHARE = 0.1
SUBAGENT_SHARE = 0.15
FORK_SHARE = 0.1
FORKED_TURNS = 20
OLD_SHARE = 0.1
PAGINATED_SHARE = 0.3
GENERATIONS_SHARE = 0.05
ROLLBACK_SHARE = 0.02
NAMED_SHARE = 0.8
"""Of threads have their titles in the list of names; the others in the database."""

COMPACTED_FROM_TURNS = 12
INSTRUCTIONS_CHARS = 14_000
_ZSTD_LEVEL = 3


class CodexHome:
    def __init__(
        self, root: Path, ballast: Ballast, digest: "hashlib._Hash", draw_turn: Callable[[], list[Json]]
    ) -> None:
        """`draw_turn` answers the items of a new turn, for subagents and for what follows a copy."""
        self._root = root
        self._ballast = ballast
        self._digest = digest
        self._draw_turn = draw_turn
        self._rows: list[tuple[str, str, str, str, str]] = []
        """Of the database: thread, path, project, title, first message."""
        self._instructions = ballast.texts.log(INSTRUCTIONS_CHARS)
        self._around = cycle(
            [
                self._token_count,
                self._context,
                self._encrypted,
                self._token_count,
                self._world,
                self._developer,
                self._picture,
                self._compacted,
            ]
        )
        root.mkdir(parents=True, exist_ok=True)

    def write(self, transcript: Transcript) -> Written:
        """A thread, now and then with a subagent, and now and then a fork of it."""
        random = self._ballast.random
        thread = session_uuid(transcript.key)
        roll = random.random()
        if roll < OLD_SHARE and can_be_bare(transcript.turns):
            return self._write_old(transcript, thread, is_document=roll < OLD_SHARE / 2)
        if roll > 1 - GENERATIONS_SHARE:
            return self._write_generations(transcript, thread)
        lines = self._thread(transcript, thread)
        if roll > 1 - GENERATIONS_SHARE - PAGINATED_SHARE:
            lines = paginated(lines)
        written = self._write(transcript, thread, lines)
        if random.random() < SUBAGENT_SHARE:
            spawn = {"parent_thread_id": thread, "depth": 1, "agent_path": "/root/scout", "agent_nickname": "Scout"}
            written += self._write_other(
                transcript, "scout", session_id=thread, source={"subagent": {"thread_spawn": spawn}}
            )
        if random.random() < FORK_SHARE:
            copied = transcript.part(0, FORKED_TURNS)
            written += self._write_other(transcript, "fork", copied=copied, forked_from_id=thread)
        return written

    def _write_other(
        self, transcript: Transcript, name: str, *, copied: Transcript | None = None, **header: Any
    ) -> Written:
        """A subagent or a fork of a thread: what it copied of it, if anything, and a turn of its own."""
        key = f"{transcript.key}-{name}"
        thread = session_uuid(key)
        turn_ms = transcript.turn_ms[-1] + 60_000
        own = replace(transcript, key=key, title=f"{transcript.title} ({name})", turns=[self._draw_turn()])
        own = replace(own, turn_ms=[turn_ms], started_ms=turn_ms)

        def lines() -> Iterator[Json]:
            own_lines = self._thread(own, thread, **header)
            yield next(own_lines)
            if copied is not None:
                yield from self._thread(copied, session_uuid(transcript.key))
            yield from own_lines

        return self._write(own, thread, lines())

    def _write(self, transcript: Transcript, thread: str, lines: Iterable[Json]) -> Written:
        before = self._ballast.text_bytes
        random = self._ballast.random
        is_archived = random.random() < ARCHIVED_SHARE
        is_compressed = is_archived or random.random() < COMPRESSED_SHARE
        path = self._path(transcript.started_ms, thread, is_archived=is_archived)
        path = path.with_name(f"{path.name}{'.zst' if is_compressed else ''}")
        with ExitStack() as opened:
            file: IO[bytes] = opened.enter_context(path.open("wb"))
            if is_compressed:
                compressing = zstandard.ZstdCompressor(_ZSTD_LEVEL).stream_writer(file, closefd=False)
                file = cast(IO[bytes], opened.enter_context(compressing))
            Lines(file, self._ballast, self._digest).put(lines)
        self._list(transcript, thread, path)
        return Written(1, 1, path.stat().st_size, self._ballast.text_bytes - before)

    def _path(self, started_ms: int, name: str, *, is_archived: bool = False) -> Path:
        started = datetime.fromtimestamp(started_ms / 1000, UTC)
        folder = self._root / ("archived_sessions" if is_archived else f"sessions/{started:%Y/%m/%d}")
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"rollout-{started:%Y-%m-%dT%H-%M-%S}-{name}.jsonl"

    def _list(self, transcript: Transcript, thread: str, path: Path) -> None:
        """Note a thread where its title is to be found: in the list of names, or in the database alone."""
        prompt = transcript.turns[0][0]["text"]
        is_named = self._ballast.random.random() < NAMED_SHARE
        self._rows.append((thread, str(path.relative_to(self._root)), transcript.project, transcript.title, prompt))
        if is_named:
            with (self._root / "session_index.jsonl").open("ab") as titles:
                named = {"id": thread, "thread_name": transcript.title, "updated_at": iso_utc(transcript.started_ms)}
                titles.write(orjson.dumps(named) + b"\n")
        with (self._root / "history.jsonl").open("ab") as history:
            typed = {"session_id": thread, "ts": transcript.started_ms // 1000, "text": prompt}
            history.write(orjson.dumps(typed) + b"\n")

    def finish(self) -> None:
        """Write what tells of all threads together."""
        with closing(sqlite3.connect(self._root / "state_5.sqlite")) as database, database:
            columns = "id TEXT PRIMARY KEY, rollout_path TEXT, cwd TEXT, title TEXT, first_user_message TEXT, name TEXT"
            database.execute(f"CREATE TABLE threads ({columns})")
            database.executemany("INSERT INTO threads VALUES (?, ?, ?, ?, ?, NULL)", self._rows)

    def _write_old(self, transcript: Transcript, thread: str, *, is_document: bool) -> Written:
        before = self._ballast.text_bytes
        lines = self._thread(transcript, thread, is_filled=not is_document)
        path = self._path(transcript.started_ms, thread)
        if is_document:
            path = self._root / "sessions" / f"rollout-{path.name[8:18]}-{thread}.json"
        with path.open("wb") as file:
            Lines(file, self._ballast, self._digest).put([document(lines)] if is_document else bare(lines))
        self._list(transcript, thread, path)
        return Written(1, 1, path.stat().st_size, self._ballast.text_bytes - before)

    def _write_generations(self, transcript: Transcript, thread: str) -> Written:
        """A thread that was reverted by some turns: a first file with what was taken back, and one that goes on."""
        before = self._ballast.text_bytes
        kept = self._ballast.random.randint(1, len(transcript.turns))
        first_path = self._path(transcript.started_ms, thread)
        reverted = replace(transcript, turns=[self._draw_turn()], turn_ms=transcript.turn_ms[kept - 1 : kept])
        taken_back = islice(self._thread(reverted, thread), 1, None)
        with first_path.open("wb") as file:
            lines = Lines(file, self._ballast, self._digest)
            count = lines.put(paginated(self._thread(transcript.part(0, kept), thread)))
            end = {"end_ordinal_exclusive": count, "end_byte_offset": file.tell()}
            of_thread = self._ballast.text_bytes
            lines.put(paginated(taken_back, count))
            self._ballast.text_bytes = of_thread
        rollout = session_uuid(f"{transcript.key}-second")
        second_path = self._path(transcript.turn_ms[-1] + 30_000, f"{thread}_{rollout}")
        rest = self._thread(
            transcript.part(kept, len(transcript.turns)), thread, history_base={"thread_id": thread, **end}
        )
        with second_path.open("wb") as file:
            Lines(file, self._ballast, self._digest).put(paginated(rest, count))
        self._list(transcript, thread, second_path)
        raw_bytes = sum(path.stat().st_size for path in (first_path, second_path))
        return Written(1, 1, raw_bytes, self._ballast.text_bytes - before)

    def _thread(self, transcript: Transcript, thread: str, *, is_filled: bool = True, **header: Any) -> Iterator[Json]:
        """Its lines. Where it is not filled with what is no text they may be asked for before any is written."""
        at = iso_utc(transcript.started_ms)
        meta = {
            "id": thread,
            "session_id": thread,
            "timestamp": at,
            "cwd": transcript.project,
            "originator": "codex_cli_rs",
            "cli_version": "0.150.0",
            "source": "cli",
            "model_provider": "openai",
            "base_instructions": {"text": self._instructions},
            "git": {"branch": "main"},
        }
        yield _line(at, "session_meta", **meta | header)
        environment = f"<environment_context><cwd>{transcript.project}</cwd></environment_context>"
        yield _item(at, "message", role="user", content=[{"type": "input_text", "text": environment}])
        for number, (turn, at_ms) in enumerate(zip(transcript.turns, transcript.turn_ms, strict=True)):
            if number and self._ballast.random.random() < ROLLBACK_SHARE:
                yield _event(at, "thread_rolled_back", num_turns=1)
            at = iso_utc(at_ms)
            turn_id = f"{thread}-{at_ms}"
            self._ballast.text_bytes += text_bytes(turn)
            if number >= COMPACTED_FROM_TURNS and number == len(transcript.turns) // 2:
                yield from self._compacted(at)
            yield _event(at, "task_started", turn_id=turn_id, started_at=at_ms // 1000)
            yield _line(at, "turn_context", turn_id=turn_id, cwd=transcript.project, model="a-model", summary="auto")
            for index, item in enumerate(turn):
                yield from _contents(item, iso_utc(at_ms + min(index * 10, 59_990)), f"call_{number}_{index}")
            if is_filled:
                yield from self._fill(at)
            yield _event(at, "task_complete", turn_id=turn_id, last_agent_message=None)

    def _fill(self, at: str) -> Iterator[Json]:
        """Ends only where each line is written before the next one is asked for."""
        while self._ballast.due > 0:
            yield from next(self._around)(at)

    # What stands between the texts.

    def _token_count(self, at: str) -> Iterator[Json]:
        usage = {"input_tokens": 81_000, "cached_input_tokens": 80_000, "output_tokens": 500, "total_tokens": 81_500}
        info = {"total_token_usage": usage, "last_token_usage": usage, "model_context_window": 272_000}
        yield _event(at, "token_count", info=info, rate_limits={"primary": {"used_percent": 3.0}})

    def _context(self, at: str) -> Iterator[Json]:
        policy = {"approval_policy": "on-request", "sandbox_policy": {"type": "workspace-write"}}
        yield _line(at, "turn_context", cwd="/home/a", model="a-model", user_instructions=self._instructions, **policy)

    def _encrypted(self, at: str) -> Iterator[Json]:
        encrypted = self._ballast.encoded(self._ballast.size(8_000))
        yield _item(at, "reasoning", summary=[], content=None, encrypted_content=encrypted)

    def _world(self, at: str) -> Iterator[Json]:
        yield _line(at, "world_state", files=[self._ballast.texts.path() for _ in range(20)])
        yield _line(at, "token_usage_record", total=81_500)

    def _developer(self, at: str) -> Iterator[Json]:
        yield _item(at, "message", role="developer", content=[{"type": "input_text", "text": self._instructions}])
        yield _item(at, "ghost_snapshot", ghost_commit={"id": f"{self._ballast.random.getrandbits(160):040x}"})

    def _picture(self, at: str) -> Iterator[Json]:
        """A picture that was looked at: the call is text, the picture is not."""
        path = f"{self._ballast.texts.path()}.png"
        self._ballast.text_bytes += len(path)
        call = f"call_{self._ballast.random.getrandbits(64):016x}"
        yield _item(at, "function_call", name="view_image", arguments=f'{{"path":"{path}"}}', call_id=call)
        picture = f"data:image/png;base64,{self._ballast.encoded(self._ballast.size(1_000_000))}"
        yield _item(at, "function_call_output", call_id=call, output=[{"type": "input_image", "image_url": picture}])
        yield _event(at, "view_image_tool_call", call_id=call, path=path)

    def _compacted(self, at: str) -> Iterator[Json]:
        history = [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
            for text in (self._ballast.file(self._ballast.size(200_000) // 2), self._ballast.texts.paragraph(2))
        ]
        yield _line(at, "compacted", message="", replacement_history=history)
        yield _event(at, "context_compacted")


def _line(at: str, type_: str, **payload: Any) -> Json:
    return {"timestamp": at, "type": type_, "payload": payload}


def _item(at: str, type_: str, **payload: Any) -> Json:
    return _line(at, "response_item", **{"type": type_, **payload})


def _event(at: str, type_: str, **payload: Any) -> Json:
    return _line(at, "event_msg", **{"type": type_, **payload})


def _contents(item: Json, at: str, call: str) -> Iterator[Json]:
    """An item for the model, and its twin for the screen."""
    match item["type"]:
        case "user":
            yield _item(at, "message", role="user", content=[{"type": "input_text", "text": item["text"]}])
            yield _event(at, "user_message", message=item["text"], images=[], local_images=[], text_elements=[])
        case "agent":
            yield _event(at, "agent_message", message=item["text"], phase="commentary")
            content = [{"type": "output_text", "text": item["text"]}]
            yield _item(at, "message", role="assistant", content=content, phase="commentary")
        case "thinking":
            yield _event(at, "agent_reasoning", text=item["text"])
            yield _item(at, "reasoning", summary=[{"type": "summary_text", "text": item["text"]}])
        case "tool":
            yield from _tool(at, call, item["label"], item["status"] == "failed", item["output"], "")
        case "notice":
            yield _event(at, "error", message=item["text"])
        case "process":
            yield from _tool(at, call, item["command"], True, "", item["output"])


def _tool(at: str, call: str, command: str, is_failed: bool, output: str, stderr: str) -> Iterator[Json]:
    code = int(is_failed)
    arguments = orjson.dumps({"cmd": command}).decode()
    yield _item(at, "function_call", name="exec_command", arguments=arguments, call_id=call)
    ended = {"command": ["bash", "-lc", command], "cwd": "/home/a", "exit_code": code, "stdout": "", "stderr": stderr}
    yield _event(at, "exec_command_end", call_id=call, aggregated_output=output, **ended)
    header = f"Chunk ID: 1a2b3c\nWall time: 0.0421 seconds\nProcess exited with code {code}\nOutput:\n"
    yield _item(at, "function_call_output", call_id=call, output=header + output)
