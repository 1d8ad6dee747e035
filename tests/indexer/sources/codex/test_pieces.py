"""However a file is cut into readings, it says the same."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.sources.base import Unsettled, Waiting
from indexer.sources.codex import CodexSource
from indexer.sources.codex import source as source_module
from tests.indexer.sources.codex.rollouts import (
    CHILD,
    OTHER,
    THREAD,
    CodexHome,
    Line,
    ReadSession,
    agent,
    agent_event,
    call,
    complete,
    context,
    custom_call,
    encoded,
    event,
    item,
    line,
    meta,
    output,
    reasoning,
    shell_output,
    shown,
    spawned,
    started,
    user,
    user_item,
)

WORDS = st.sampled_from(["é你🎉 off by one", "span\nopen\u2028range", "x" * 700, "", "go on"])
IDS = st.sampled_from(["c1", "c2", "c3"])


def flat(*groups: list[Line]) -> list[Line]:
    return [one for group in groups for one in group]


RECORDS = st.one_of(
    WORDS.map(agent),
    WORDS.map(agent_event),
    WORDS.map(lambda text: reasoning(text)),
    WORDS.map(lambda text: event("agent_reasoning", text=text)),
    st.builds(lambda id_, text: call("exec_command", {"cmd": text}, id_), IDS, WORDS),
    st.builds(lambda id_, text: custom_call("exec", text, id_), IDS, WORDS),
    st.builds(lambda id_, text, code: output(shell_output(text, code), id_), IDS, WORDS, st.integers(0, 1)),
    st.builds(
        lambda id_, text: event("exec_command_end", call_id=id_, command=["x"], exit_code=1, stderr=text), IDS, WORDS
    ),
    st.builds(lambda id_, text: shown("CommandExecution", id_, command=text, status="completed"), IDS, WORDS),
    st.builds(lambda id_, text: call("github__create_issue", {"title": text}, id_), IDS, WORDS),
    st.builds(lambda id_, text: event("mcp_tool_call_end", call_id=id_, result={"Err": text}), IDS, WORDS),
    st.builds(lambda text: item("web_search_call", action={"type": "search", "query": text}), WORDS),
    st.builds(lambda text: event("web_search_end", query=text), WORDS),
    WORDS.map(lambda text: line("compacted", {"message": text, "replacement_history": [agent("old")] * 20})),
    st.just(event("context_compacted")),
    st.just(event("token_count", info=None)),
    st.just(event("turn_aborted", reason="interrupted")),
    WORDS.map(lambda text: event("thread_name_updated", thread_name=text)),
    st.just(line("novelty", {})),
)

SEARCH = {"type": "search", "query": "kettles"}
GROUPS = st.one_of(
    RECORDS.map(lambda one: [one]),
    st.just([item("web_search_call", action=SEARCH), event("web_search_end", action=SEARCH)]),
    st.just([line("compacted", {}), event("context_compacted")]),
    WORDS.map(lambda text: [agent_event(text), agent(text)]),
)


@st.composite
def tasks(draw: st.DrawFn, *, first: int = 1) -> list[Line]:
    lines: list[Line] = []
    for number in range(first, first + draw(st.integers(0, 3))):
        turn_id = f"T{number}"
        is_told = draw(st.booleans())
        lines += [started(turn_id)] * is_told
        for text in draw(st.lists(WORDS, min_size=1, max_size=2)):
            lines += [*user(text), context(turn_id), *flat(*draw(st.lists(GROUPS, max_size=5)))]
        lines += [complete(turn_id)] * is_told
    return lines


@st.composite
def older_tasks(draw: st.DrawFn) -> list[Line]:
    """Without any event."""
    texts = draw(st.lists(WORDS, max_size=3))
    return flat(*([user_item(text), *flat(*draw(st.lists(GROUPS, max_size=3)))] for text in texts))


FILES = st.one_of(
    tasks().map(lambda lines: [meta(), *lines]),
    older_tasks().map(lambda lines: [meta(), *lines]),
    st.builds(lambda copied, own: [meta(OTHER, forked_from_id=THREAD), meta(), *copied, *own], tasks(), tasks(first=8)),
    st.builds(lambda copied, own: [spawned(), meta(), *copied, *own], tasks(), tasks(first=8)),
)
PARENT = encoded(
    [meta(), *flat(*([started(f"T{number}"), *user("One"), context(f"T{number}")] for number in range(1, 5)))]
)


@contextmanager
def homes() -> Iterator[CodexHome]:
    with tempfile.TemporaryDirectory() as folder:
        codex = CodexHome(Path(folder))
        codex.write().write_bytes(PARENT)
        yield codex


def read_on(codex: CodexHome, path: Path, session: ReadSession) -> None:
    try:
        codex.read_on(path, session)
    except (Unsettled, Waiting):
        return


@settings(max_examples=80)
@given(FILES, st.lists(st.integers(0, 20_000), max_size=8), st.booleans())
def test_a_file_read_in_pieces_says_what_it_says_in_one(lines: list[Line], cuts: list[int], is_fresh: bool) -> None:
    raw = encoded(lines)
    with homes() as codex:
        path = codex.write(thread=CHILD)
        session = ReadSession()
        for cut in [*sorted(cut for cut in cuts if cut < len(raw)), len(raw)]:
            with path.open("r+b") as file:
                file.seek(0, 2)
                file.write(raw[file.tell() : cut])
            read_on(codex, path, session)
            if is_fresh:  # as after a restart, when all that is known is the checkpoint
                codex.source = CodexSource([codex.path])
        whole = codex.read(path)
        assert session.state == whole.state
        assert json.dumps(session.checkpoint)


@settings(max_examples=30)
@given(FILES)
def test_a_file_read_line_by_line_with_a_restart_after_each_says_what_it_says_in_one(lines: list[Line]) -> None:
    with homes() as codex:
        path = codex.write(thread=CHILD)
        session = ReadSession()
        for number, one in enumerate(lines):
            codex.append(path, one, first=number)
            codex.source = CodexSource([codex.path])
            read_on(codex, path, session)
        whole = codex.read(path)
        assert session.state == whole.state


@settings(max_examples=30)
@given(FILES, st.integers(1, 3000))
def test_a_file_told_in_parts_of_any_size_says_what_it_says_in_one(lines: list[Line], size: int) -> None:
    with homes() as codex:
        path = codex.write(*lines, thread=CHILD)
        whole = codex.read(path)
        usual, source_module.PART_BYTES = source_module.PART_BYTES, size
        try:
            session = codex.read(path)
        finally:
            source_module.PART_BYTES = usual
        assert session.state == whole.state
