"""Which files are transcripts, and what their places tell."""

import os
from pathlib import Path
from typing import Any

import pytest

from indexer.sources.base import Root, Waiting
from indexer.sources.claude_code import ClaudeCodeSource
from tests.indexer.sources.claude_code.written import CWD, SESSION, Written, agent, attachment, sidecar, user
from tests.indexer.sources.model import snapshot, transcript_of

LISTED = [
    f"-home-a-kettle/{SESSION}.jsonl",
    "-home-a-kettle/odd name.jsonl",
    "-home-a-kettle/agent-a1.jsonl",
    f"-home-a-kettle/{SESSION}/subagents/agent-a2.jsonl",
    f"-home-a-kettle/{SESSION}/subagents/workflows/wf_1/agent-a3.jsonl",
    f"C--x/{SESSION}.jsonl",
    "-home-a-empty/empty.jsonl",
]
NOT_LISTED = [
    "a.jsonl",
    "-home-a-kettle/journal.jsonl",
    "-home-a-kettle/notes.txt",
    "-home-a-kettle/a.turns.jsonl",
    "-home-a-kettle/sessions-index.json",
    "-home-a-kettle/agent-acompact-1.jsonl",
    "-home-a-kettle/memory/a.jsonl",
    f"-home-a-kettle/{SESSION}/a.jsonl",
    f"-home-a-kettle/{SESSION}/agent-a9.jsonl",
    f"-home-a-kettle/{SESSION}/subagents/a.jsonl",
    f"-home-a-kettle/{SESSION}/subagents/agent-a2.meta.json",
    f"-home-a-kettle/{SESSION}/subagents/agent-aprompt_suggestion-1.jsonl",
    f"-home-a-kettle/{SESSION}/subagents/deep/agent-a9.jsonl",
    f"-home-a-kettle/{SESSION}/subagents/workflows/agent-a9.jsonl",
    f"-home-a-kettle/{SESSION}/subagents/workflows/wf_1/journal.jsonl",
    f"-home-a-kettle/{SESSION}/tool-results/t1.txt",
    f"-home-a-kettle/{SESSION}/tool-results/agent-a9.jsonl",
    f"-home-a-kettle/{SESSION}/session-memory/summary.md",
]


def test_only_transcripts_are_listed_each_where_it_may_lie(written: Written) -> None:
    projects = written.root.path
    for name in LISTED + NOT_LISTED:
        (projects / name).parent.mkdir(parents=True, exist_ok=True)
        (projects / name).write_text("" if "empty" in name else "{}\n")
    (projects / "-home-a-kettle" / "folder.jsonl").mkdir()
    os.mkfifo(projects / "-home-a-kettle" / "pipe.jsonl")
    (projects / "-home-a-kettle" / "again.jsonl").symlink_to(projects / LISTED[0])
    (projects / "-home-a-kettle" / "dangling.jsonl").symlink_to(projects / "nowhere")
    found = list(written.source.transcripts(written.root))
    assert sorted(str(transcript.path.relative_to(projects)) for transcript in found) == sorted(LISTED)
    assert all(written.source.owns(written.root, projects / name) for name in LISTED)
    assert not any(written.source.owns(written.root, projects / name) for name in NOT_LISTED)


def test_what_else_lies_in_the_folder_of_the_program_is_not_read(written: Written) -> None:
    written.add(user("u"))
    config = written.root.path.parent
    for name in (
        "history.jsonl",
        "sessions/4711.json",
        "plans/brisk-kettle.md",
        "todos/a.json",
        f"file-history/{SESSION}/a.jsonl",
        "shell-snapshots/a.jsonl",
        f"tasks/{SESSION}.jsonl",
    ):
        (config / name).parent.mkdir(exist_ok=True, parents=True)
        (config / name).write_bytes(written.encoded(user("typed before")))
    source = ClaudeCodeSource([config])
    assert [one.path for root in source.roots() for one in source.transcripts(root)] == [written.path]
    assert source.state_files() == ()


def test_a_folder_whose_name_was_cut_and_ends_in_a_hash_is_like_any_other(written: Written) -> None:
    deep = f"/home/a/{'kettle_and_pot/' * 16}x"
    cut = written.beside(f"{deep.replace('/', '-').replace('_', '-')[:200]}-1x9f3k/{SESSION}.jsonl", cwd=deep)
    cut.add(user("u"))
    assert [one.path for one in written.source.transcripts(written.root)] == [cut.path]
    assert str(cut.read().the_facts.project) == deep


def test_a_worktree_is_a_project_of_its_own(written: Written) -> None:
    moved = {"type": "worktree-state", "worktreeSession": {"worktreePath": f"{CWD}/.worktrees/x"}, "cwd": None}
    session = written.read(user("u", cwd=f"{CWD}/.worktrees/x"), moved, agent("a"))
    assert str(session.the_facts.project) == f"{CWD}/.worktrees/x"


def test_a_second_name_of_a_folder_lists_nothing_twice(written: Written) -> None:
    written.add(user("u"))
    (written.root.path / "-a-link").symlink_to(written.folder)
    assert [transcript.path for transcript in written.source.transcripts(written.root)] == [written.path]


def test_a_root_that_is_missing_is_an_error_and_not_empty(written: Written) -> None:
    with pytest.raises(FileNotFoundError):
        list(written.source.transcripts(written.root))


def test_an_unreadable_folder_is_an_error_after_all_that_could_be_listed(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    written.add(user("u"))
    other = written.beside("-z/a.jsonl")
    other.add(user("u"))
    scandir = os.scandir

    def refusing(folder: Any) -> Any:
        if Path(folder) == written.folder:
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    listing = written.source.transcripts(written.root)
    assert next(listing).path == other.path
    with pytest.raises(PermissionError):
        next(listing)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [sidecar("file-history-snapshot", messageId="m", snapshot={}), sidecar("summary", summary="s", leafUuid="l")],
        [sidecar("queue-operation", operation="enqueue", content="x"), sidecar("custom-title", customTitle="t")],
        [attachment("hook_success"), {"type": "system", "subtype": "informational"}],
        [user("Warmup"), agent("Ready.")],
    ],
)
def test_a_file_without_a_line_of_user_or_agent_is_no_session(written: Written, lines: list[Any]) -> None:
    with pytest.raises(Waiting):
        written.read(*lines)
    written.add(user("u"))
    assert written.read().texts == [["u"]]


def test_many_lines_may_stand_before_the_first_that_counts(written: Written) -> None:
    lines = [sidecar("file-history-snapshot", messageId=f"m{number}", cwd=None) for number in range(500)]
    assert written.read(*lines, user("u")).the_facts.project == Path(CWD)


def test_a_session_is_its_folder_and_file(written: Written) -> None:
    facts = written.read(user("u", sessionId="another")).the_facts
    assert (facts.key, facts.session_id, facts.agent) == (f"-home-a-kettle/{SESSION}", SESSION, "Claude Code")
    assert facts.parent_id is None


def test_the_ids_that_its_lines_have_are_other_names_of_a_session(written: Written) -> None:
    others = [user("u", sessionId=f"old-{number}") for number in range(40)]
    fork = {"sessionId": "source", "messageUuid": "m"}
    session = written.read(user("u"), user("v", sessionId=None, forkedFrom=fork), user("w", sessionId="../x"))
    assert session.the_facts.aliases == ()
    written.add(user("x", sessionId="old-1"), agent("a", sessionId="old-1"), *others)
    aliases = written.read_on(session).the_facts.aliases
    assert aliases[:3] == ("old-1", "old-0", "old-2")
    assert len(aliases) == 16


def test_the_same_id_in_two_folders_is_two_sessions(written: Written) -> None:
    moved = written.beside(f"-home-a-moved/{SESSION}.jsonl")
    keys = {written.read(user("u")).the_facts.key, moved.read(user("u")).the_facts.key}
    assert len(keys) == 2


def test_a_project_is_a_real_path(written: Written, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert written.read(user("u", cwd=f"{tmp_path}/link/")).the_facts.project == tmp_path / "real"


@pytest.mark.parametrize("cwd", [None, "", "a\0b", 7])
def test_without_a_directory_the_folder_stands_for_the_project(written: Written, cwd: Any) -> None:
    session = written.read(user("u", cwd=cwd))
    assert session.the_facts.project == written.folder
    written.add(agent("a"))
    assert written.read_on(session).the_facts.project == Path(CWD)


def test_a_directory_of_another_system_is_kept_as_it_is(written: Written) -> None:
    session = written.read(
        user("u", cwd="C:\\kettle"),
        agent({"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "C:\\kettle\\a.rs"}}),
    )
    assert str(session.the_facts.project) == "C:\\kettle"
    assert session.texts == [["u", "Read a.rs"]]


def test_the_head_of_a_file_tells_what_session_it_is(written: Written) -> None:
    written.add(sidecar("mode", mode="plan"), attachment("hook_success"), user("Fix it"), *[agent("x" * 99)] * 50)
    facts = written.source.facts(transcript_of(written.path, written.root))
    assert facts is not None
    assert (facts.session_id, facts.project, facts.title) == (SESSION, Path(CWD), "Fix it")
    assert facts.started_ms == written.read().the_facts.started_ms


@pytest.mark.parametrize("count", [1, 300])
def test_a_head_that_does_not_tell_says_nothing(written: Written, count: int) -> None:
    written.add(*[sidecar("mode", mode="plan", cwd=None)] * count)
    assert written.source.facts(transcript_of(written.path, written.root)) is None


def test_the_head_of_a_file_that_nowhere_tells_a_directory_says_so(written: Written) -> None:
    written.add(user("Fix it", cwd=None))
    facts = written.source.facts(transcript_of(written.path, written.root))
    assert facts is not None
    assert (facts.session_id, facts.project, facts.title) == (SESSION, written.folder, "Fix it")


def test_nothing_is_written_or_touched_beside_the_files(written: Written) -> None:
    written.add(user("u"))
    config = written.root.path.parent
    before = snapshot(config)
    written.source.facts(transcript_of(written.path, written.root))
    written.read()
    list(written.source.transcripts(written.root))
    assert snapshot(config) == before


def test_a_folder_is_named_by_what_holds_projects_or_is_it(tmp_path: Path) -> None:
    outer, inner = tmp_path / "claude", tmp_path / "projects"
    outer.mkdir()
    inner.mkdir()
    roots = ClaudeCodeSource([outer, inner], [tmp_path / "usual", outer]).roots()
    assert roots == (
        Root(outer / "projects", is_named=True),
        Root(inner, is_named=True),
        Root(tmp_path / "usual" / "projects"),
    )
