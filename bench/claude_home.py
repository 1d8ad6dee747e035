"""Writes sessions as a folder of Claude Code's has them, with all that stands around their texts.

    ROOT/projects/<munged project>/<uuid>.jsonl                       a session
                                   <uuid>/subagents/agent-<id>.jsonl  a subagent that it started
                                   <uuid>/subagents/agent-<id>.meta.json
                                   agent-<id>.jsonl                   the same, where version 2.0 put it
                                   <other uuid>.jsonl                 nothing but marks: no session
                                   sessions-index.json                the program's own list
         history.jsonl                                                what was typed, once more

The lines of `bench.claude_corpus` and, in between, progress of hooks and tools, attachments with whole files,
snapshots, queue operations, signatures, pictures (twice, as real files have them), whole files that were edited,
compaction, subagents (also within their parent's file, as 1.0 had them), lines that were written twice, messages that
were typed while the agent worked, and copies that forks, resumed sessions and those in the background begin with.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from bench.ballast import Ballast, Lines, Written, text_bytes
from bench.claude_corpus import VERSION, claude_lines, session_uuid
from bench.claude_older import COPYING, doubled, is_message, steered
from bench.transcripts import Transcript

Json: TypeAlias = dict[str, Any]

COMPACTED_FROM_TURNS = 12
"""A session that is as long is compacted in its middle."""

SUBAGENT_SHARE = 0.15
COPY_SHARE = 0.1
COPIED_TURNS = 20
"""Turns that a file copies of another at most."""

DOUBLED_SHARE = 0.1
"""Of sessions have lines that were written twice."""

MARKS_SHARE = 0.1
"""For so many sessions there is a file that is none."""


class ClaudeHome:
    def __init__(
        self, root: Path, ballast: Ballast, digest: "hashlib._Hash", draw_turn: Callable[[], list[Json]]
    ) -> None:
        """`draw_turn` answers the items of a new turn, for subagents and for what follows a copy."""
        self._root = root
        self._ballast = ballast
        self._digest = digest
        self._draw_turn = draw_turn
        self._listed: dict[Path, list[Json]] = {}
        """By folder, what the program's own list of its sessions says."""
        self._around = cycle(
            [
                self._hook_progress,
                self._tool_progress,
                self._signature,
                self._snapshot,
                self._hook_progress,
                self._attached_file,
                self._tool_progress,
                self._queue,
                self._listing,
                self._hook_progress,
                self._marks,
                self._picture,
            ]
        )

    def write(self, transcript: Transcript) -> Written:
        """A session, now and then with a subagent, and now and then a fork of it."""
        random = self._ballast.random
        folder = self._root / "projects" / re.sub("[^A-Za-z0-9]", "-", transcript.project)
        folder.mkdir(parents=True, exist_ok=True)
        written = self._write(folder, transcript, has_subagent=random.random() < SUBAGENT_SHARE)
        if random.random() < COPY_SHARE:
            written += self._write_copy(folder, transcript)
        if random.random() < MARKS_SHARE:
            written += self._write_marks(folder, transcript)
        self._list(folder, transcript)
        return written

    def finish(self) -> None:
        """Write what tells of all sessions together."""
        for folder, entries in self._listed.items():
            index = {"version": 1, "originalPath": entries[0]["projectPath"], "entries": entries}
            (folder / "sessions-index.json").write_bytes(orjson.dumps(index))

    def _write(self, folder: Path, transcript: Transcript, *, has_subagent: bool) -> Written:
        before = self._ballast.text_bytes
        random = self._ballast.random
        session = session_uuid(transcript.key)
        path = folder / f"{session}.jsonl"
        agent_id = f"{random.getrandbits(64):016x}"
        task = self._draw_turn() if has_subagent else []
        place = random.choice([folder / session / "subagents", folder, None])
        lines = steered(self._session(transcript, agent_id, task, is_within=place is None), random)
        if random.random() < DOUBLED_SHARE:
            lines = doubled(lines, random)
        with path.open("wb") as file:
            Lines(file, self._ballast, self._digest).put(lines)
        is_within = bool(task) and place is None
        own = Written(1 + is_within, 1, path.stat().st_size, self._ballast.text_bytes - before)
        if not task or place is None:
            return own
        return own + self._write_subagent(place, transcript, agent_id, task)

    def _session(
        self, transcript: Transcript, agent_id: str = "", task: list[Json] | None = None, *, is_within: bool = False
    ) -> Iterator[Json]:
        """Its lines; with a task it ends by starting a subagent, whose lines may stand within it."""
        session = session_uuid(transcript.key)
        yield {"type": "mode", "mode": "normal", "sessionId": session}
        yield {"type": "permission-mode", "permissionMode": "default", "sessionId": session}
        edits: set[str] = set()
        last: Json = {}
        turn = 0
        for line in claude_lines(transcript):
            if is_message(line):
                yield from self._fill(_envelope(line))
                if turn >= COMPACTED_FROM_TURNS and turn == len(transcript.turns) // 2:
                    yield from self._compaction(_envelope(line))
                self._ballast.text_bytes += text_bytes(transcript.turns[turn])
                turn += 1
            yield self._with_original_file(line, edits)
            last = _envelope(line) if "uuid" in line else last  # a title, the last line of all, has none
        if task:
            within = self._subagent_lines(transcript, agent_id, task) if is_within else iter(())
            yield from self._task(last, agent_id, task[0]["text"], within)
        yield from self._fill(last)
        yield {"type": "last-prompt", "lastPrompt": transcript.turns[-1][0]["text"][:200], "sessionId": session}

    def _with_original_file(self, line: Json, edits: set[str]) -> Json:
        """The result of an edit has the whole file as it was."""
        content = line.get("message", {}).get("content")
        block = content[0] if isinstance(content, list) else {}
        if block.get("type") == "tool_use" and block["name"] == "Edit":
            edits.add(block["id"])
        if block.get("tool_use_id") not in edits:
            return line
        path = line["toolUseResult"]["file"]["filePath"]
        original = self._ballast.file(self._ballast.size(100_000))
        change = {"oldString": original[:40], "newString": "", "originalFile": original, "structuredPatch": []}
        return {**line, "toolUseResult": {"filePath": path, **change}}

    def _fill(self, envelope: Json) -> Iterator[Json]:
        """Ends only where each line is written before the next one is asked for."""
        while self._ballast.due > 0:
            yield from next(self._around)(envelope)

    # What stands between the texts.

    def _line(self, envelope: Json, **content: Any) -> Json:
        return {**envelope, **content, "uuid": self._ballast.uuid()}

    def _hook_progress(self, envelope: Json) -> Iterator[Json]:
        data = {"type": "hook_progress", "hookEvent": "PostToolUse", "hookName": "PostToolUse:Bash", "command": "check"}
        yield self._line(envelope, type="progress", data=data, toolUseID="toolu_hook", parentToolUseID="toolu_hook")

    def _tool_progress(self, envelope: Json) -> Iterator[Json]:
        output = self._ballast.texts.log(400)
        data = {
            "type": "bash_progress",
            "output": output,
            "fullOutput": output,
            "elapsedTimeSeconds": 3,
            "totalLines": 4,
        }
        yield self._line(envelope, type="progress", data=data, toolUseID="bash-progress-1")

    def _signature(self, envelope: Json) -> Iterator[Json]:
        block = {"type": "thinking", "thinking": "", "signature": self._ballast.encoded(self._ballast.size(3_000))}
        message = {"id": "msg_signed", "role": "assistant", "model": "claude-sonnet-4-5", "content": [block]}
        yield self._line(envelope, type="assistant", message=message)

    def _snapshot(self, envelope: Json) -> Iterator[Json]:
        backups = {
            self._ballast.texts.path(): {"backupFileName": f"{number:016x}@v1", "version": 1} for number in range(8)
        }
        snapshot = {"messageId": self._ballast.uuid(), "trackedFileBackups": backups}
        message = {"messageId": snapshot["messageId"], "snapshot": snapshot, "isSnapshotUpdate": True}
        yield {"type": "file-history-snapshot", **message}

    def _attached_file(self, envelope: Json) -> Iterator[Json]:
        content = self._ballast.file(self._ballast.size(150_000))
        file = {"filePath": self._ballast.texts.path(), "content": content}
        attachment = {"type": "file", "filename": file["filePath"], "content": {"type": "text", "file": file}}
        yield self._line(envelope, type="attachment", attachment=attachment)

    def _listing(self, envelope: Json) -> Iterator[Json]:
        skills = "\n".join(f"- {self._ballast.texts.identifier()}: {self._ballast.texts.path()}" for _ in range(20))
        yield self._line(envelope, type="attachment", attachment={"type": "skill_listing", "content": skills})
        hook = {"type": "hook_success", "hookName": "PreToolUse:Bash", "command": "check", "stdout": "", "exitCode": 0}
        yield self._line(envelope, type="attachment", attachment=hook)

    def _queue(self, envelope: Json) -> Iterator[Json]:
        """A message that was typed ahead and taken back."""
        common = {"type": "queue-operation", "timestamp": envelope["timestamp"], "sessionId": envelope["sessionId"]}
        yield {**common, "operation": "enqueue", "content": self._ballast.texts.path()}
        yield {**common, "operation": "popAll"}

    def _marks(self, envelope: Json) -> Iterator[Json]:
        yield self._line(envelope, type="system", subtype="turn_duration", durationMs=41_000, isMeta=False)
        yield self._line(envelope, type="system", subtype="stop_hook_summary", hookCount=1, hookInfos=[], hookErrors=[])
        caveat = {"role": "user", "content": "<local-command-caveat>not for the agent</local-command-caveat>"}
        yield self._line(envelope, type="user", isMeta=True, message=caveat)
        yield {"type": "cost-state", "sessionId": envelope["sessionId"], "totalCostUSD": 1.25}

    def _picture(self, envelope: Json) -> Iterator[Json]:
        """A picture that was looked at: the call is text, the picture is not."""
        path = f"{self._ballast.texts.path()}.png"
        call = f"toolu_{self._ballast.random.getrandbits(64):016x}"
        self._ballast.text_bytes += len(path)
        use = {"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": path}}
        message = {"id": "msg_picture", "role": "assistant", "model": "claude-sonnet-4-5", "content": [use]}
        yield self._line(envelope, type="assistant", message=message)
        encoded = self._ballast.encoded(self._ballast.size(1_000_000) // 2)
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": encoded}}
        block = {"type": "tool_result", "tool_use_id": call, "content": [image]}
        result = {"type": "image", "file": {"base64": encoded, "type": "image/png", "originalSize": len(encoded)}}
        yield self._line(envelope, type="user", message={"role": "user", "content": [block]}, toolUseResult=result)

    def _compaction(self, envelope: Json) -> Iterator[Json]:
        summary = self._ballast.texts.paragraph(8)
        self._ballast.text_bytes += len(summary.encode())
        metadata = {"trigger": "auto", "preTokens": 160_000, "postTokens": 9_000}
        boundary = {"content": "Conversation compacted", "compactMetadata": metadata, "logicalParentUuid": None}
        yield self._line(envelope, type="system", subtype="compact_boundary", level="info", **boundary)
        text = f"This session is being continued from a previous conversation. {summary}"
        message = {"role": "user", "content": text}
        yield self._line(envelope, type="user", isCompactSummary=True, isVisibleInTranscriptOnly=True, message=message)

    # Subagents and forks.

    def _task(self, envelope: Json, agent_id: str, prompt: str, within: Iterator[Json]) -> Iterator[Json]:
        """The call that starts a subagent, what is told of it meanwhile, and what it answered."""
        call = f"toolu_{agent_id}"
        arguments = {"description": "look into it", "subagent_type": "explorer", "prompt": prompt}
        self._ballast.text_bytes += len(prompt.encode())
        use = {"type": "tool_use", "id": call, "name": "Task", "input": arguments}
        message = {"id": f"msg_{agent_id}", "role": "assistant", "model": "claude-sonnet-4-5", "content": [use]}
        yield self._line(envelope, type="assistant", message=message)
        data = {"type": "agent_progress", "agentId": agent_id, "prompt": prompt}
        yield self._line(envelope, type="progress", data=data, toolUseID="agent-1", parentToolUseID=call)
        yield from within
        answer = [{"type": "text", "text": "done"}]
        block = {"type": "tool_result", "tool_use_id": call, "content": answer}
        result = {"status": "completed", "agentId": agent_id, "prompt": prompt, "content": answer}
        yield self._line(envelope, type="user", message={"role": "user", "content": [block]}, toolUseResult=result)

    def _write_subagent(self, folder: Path, parent: Transcript, agent_id: str, task: list[Json]) -> Written:
        folder.mkdir(parents=True, exist_ok=True)
        before = self._ballast.text_bytes
        path = folder / f"agent-{agent_id}.jsonl"
        with path.open("wb") as file:
            Lines(file, self._ballast, self._digest).put(self._subagent_lines(parent, agent_id, task))
        meta = path.with_suffix(".meta.json")
        meta.write_bytes(orjson.dumps({"agentType": "explorer", "toolUseId": f"toolu_{agent_id}"}))
        return Written(1, 1, path.stat().st_size, self._ballast.text_bytes - before)

    def _subagent_lines(self, parent: Transcript, agent_id: str, task: list[Json]) -> Iterator[Json]:
        run = replace(parent, key=agent_id, turns=[task], turn_ms=parent.turn_ms[-1:])
        of_parent = {"sessionId": session_uuid(parent.key), "isSidechain": True, "agentId": agent_id}
        return ({**line, **of_parent} for line in self._session(run) if "uuid" in line)

    def _write_copy(self, folder: Path, transcript: Transcript) -> Written:
        """A session that begins with a copy of another, and goes on by itself."""
        before = self._ballast.text_bytes
        key = f"{transcript.key}-copy"
        own = session_uuid(key)
        copied = transcript.part(0, COPIED_TURNS)
        self._ballast.text_bytes += sum(map(text_bytes, copied.turns))
        later = replace(transcript, key=key, turns=[self._draw_turn()], turn_ms=[transcript.turn_ms[-1] + 60_000])
        path = folder / f"{own}.jsonl"
        with path.open("wb") as file:
            lines = Lines(file, self._ballast, self._digest)
            copying = self._ballast.random.choice(COPYING)
            lines.put(copying((line for line in claude_lines(copied) if "uuid" in line), own))
            lines.put(self._session(later))
        return Written(1, 1, path.stat().st_size, self._ballast.text_bytes - before)

    # What is no session.

    def _write_marks(self, folder: Path, transcript: Transcript) -> Written:
        """A file without a line of a user or an agent, and one of a run that only summarises."""
        other = session_uuid(f"{transcript.key}-marks")
        files: dict[str, list[Json]] = {
            f"{other}.jsonl": [
                {"type": "summary", "summary": self._ballast.texts.path(), "leafUuid": self._ballast.uuid()},
                {"type": "custom-title", "customTitle": self._ballast.texts.path(), "sessionId": other},
            ],
            f"agent-acompact-{other[:8]}.jsonl": list(claude_lines(transcript.part(0, 1))),
        }
        for name, lines in files.items():
            with (folder / name).open("wb") as file:
                Lines(file, self._ballast, self._digest).put(lines)
        return Written(0, 1, (folder / f"{other}.jsonl").stat().st_size, 0)

    def _list(self, folder: Path, transcript: Transcript) -> None:
        prompt = transcript.turns[0][0]["text"]
        session = session_uuid(transcript.key)
        entry = {"sessionId": session, "firstPrompt": prompt[:200], "projectPath": transcript.project}
        self._listed.setdefault(folder, []).append(entry)
        with (self._root / "history.jsonl").open("ab") as history:
            typed = {"display": prompt, "timestamp": transcript.started_ms, "project": transcript.project}
            history.write(orjson.dumps(typed) + b"\n")


def _envelope(line: Json) -> Json:
    """What a line between others has in common with the one beside it."""
    names = ("cwd", "sessionId", "gitBranch", "timestamp", "isSidechain", "userType")
    return {"parentUuid": line["uuid"], "version": VERSION, **{name: line[name] for name in names}}
