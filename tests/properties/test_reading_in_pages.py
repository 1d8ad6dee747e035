"""The pages of a cut read, one after the other, are the uncut answer."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from indexer.service import index_once
from schemas.answers import ReadAnswer
from schemas.requests import ReadRequest
from search_api.archive import Archive
from search_api.binding import Binding
from search_api.caller import Caller
from search_api.mcp_answers import LAST_NOTE
from search_api.mcp_calls import ArchiveTools
from search_api.mcp_server import mcp_server
from search_api.render import json_form, text_form
from tests.mcp_clients import CallTool, connected, text_of
from tests.properties.random_archive import archive_settings

SMALLEST_PAGE = 1000
FIELDS = ("text", "input", "output")


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("is_full", [False, True])
def test_the_pages_of_a_read_are_the_uncut_answer(seed: int, is_full: bool, tmp_path: Path) -> None:
    random = Random(seed)
    write_session(random, tmp_path)
    index_once(archive_settings(tmp_path), lambda _: None)
    archive = Archive.open(archive_settings(tmp_path))
    arguments: dict[str, Any] = {"session": "the-session", "turns": "1-99", "full": is_full}
    whole = archive.read(ReadRequest.read(arguments), Caller())
    for max_chars in (SMALLEST_PAGE, 1003, 1500, 4096, 20_000):
        pages = read_pages(archive, {**arguments, "max_chars": max_chars})
        assert "".join(map(body_of, pages)) == text_form(whole)
        assert joined([item for page in pages for item in items_of(page)]) == joined(items_of(whole))
        assert all(len(body_of(page)) <= max_chars + 2 for page in pages)
    archive.close()


@pytest.mark.parametrize("seed", range(3))
def test_the_pages_of_a_read_over_mcp_are_the_uncut_answer(seed: int, tmp_path: Path) -> None:
    write_session(Random(seed), tmp_path)
    settings = archive_settings(tmp_path)
    index_once(settings, lambda _: None)
    note = f"\n… {LAST_NOTE}"
    with closing(Archive.open(settings)) as archive:
        tools = ArchiveTools(archive, settings.mcp, asyncio.to_thread, lambda _: Binding())
        with connected(mcp_server(tools)) as call:
            arguments: dict[str, Any] = {"session": "the-session", "turns": "1-99", "full": True}
            whole = text_of(call("session_read", {**arguments, "max_chars": 10**9}))
            for max_chars in (SMALLEST_PAGE, 4096):
                assert "".join(pages_over_mcp(call, {**arguments, "max_chars": max_chars})) == whole.removesuffix(note)


def pages_over_mcp(call: CallTool, arguments: dict[str, Any]) -> Iterator[str]:
    """The texts of the pages, without what is said behind them."""
    cut = re.compile(rf"… cut at {arguments['max_chars']} characters; read on with cursor=(\S+)\Z")
    while True:
        text = text_of(call("session_read", arguments)).removesuffix(f"\n… {LAST_NOTE}")
        found = cut.search(text)
        yield text[: found.start()] if found else text
        if found is None:
            return
        arguments = {**arguments, "cursor": found[1]}


def test_a_page_is_cut_between_items_where_they_fit(tmp_path: Path) -> None:
    write_lines(tmp_path, [{"type": "user", "text": "a" * 600}, {"type": "agent", "text": "b" * 600}])
    index_once(archive_settings(tmp_path), lambda _: None)
    archive = Archive.open(archive_settings(tmp_path))
    first, second = read_pages(archive, {"session": "the-session", "max_chars": SMALLEST_PAGE})
    assert text_form(first).startswith(f"p#1 The session — turn 1 of 1\n\n## p#1:1\n\nuser: {'a' * 600}\n… cut at 1000")
    assert text_form(second) == f"agent: {'b' * 600}"
    archive.close()


def read_pages(archive: Archive, arguments: dict[str, Any]) -> list[ReadAnswer]:
    pages = [archive.read(ReadRequest.read(arguments), Caller())]
    while pages[-1].cursor is not None:
        pages.append(archive.read(ReadRequest.read({**arguments, "cursor": pages[-1].cursor}), Caller()))
    return pages


def body_of(page: ReadAnswer) -> str:
    """The text of a page without the line that says where it was cut."""
    text = text_form(page)
    if not page.more:
        return text
    body, note, _ = text.rpartition(f"… cut at {page.max_chars} characters; read on with cursor=")
    assert note
    return body


def items_of(page: ReadAnswer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = orjson.loads(json_form(page))["items"]
    return items


def joined(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Items with the pieces of each put together."""
    whole: dict[tuple[int, int], dict[str, Any]] = {}
    for item in items:
        known = whole.setdefault((item["turn"], item["index"]), item)
        if known is not item:
            for field in FIELDS:
                if item.get(field) is not None:
                    known[field] = (known.get(field) or "") + item[field]
    return list(whole.values())


def write_session(random: Random, folder: Path) -> None:
    lines: list[dict[str, Any]] = []
    for number in range(random.randint(1, 30)):
        match random.choice(["user", "agent", "agent", "thinking", "notice", "tool", "tool", "process"]):
            case "tool":
                label = random_text(random, 300)
                given = random.choice([label, random_text(random, 3000), ""])
                output = random.choice(["", random_text(random, 6000)])
                lines.append({"type": "tool", "label": label, "status": "ok", "input": given, "output": output})
            case "process":
                lines.append({"type": "process", "command": f"run {number}", "output": random_text(random, 5000)})
            case kind:
                lines.append({"type": kind, "text": random_text(random, 5000)})
    write_lines(folder, [{"type": "user", "text": "begin"}, *lines])


def write_lines(folder: Path, lines: list[dict[str, Any]]) -> None:
    (folder / "turns").mkdir()
    header = {"type": "session", "version": 1, "id": "the-session", "project": "/invented/p", "title": "The session"}
    raw = b"".join(orjson.dumps(line) + b"\n" for line in [header, *lines])
    (folder / "turns" / "a.turns.jsonl").write_bytes(raw)


def random_text(random: Random, longest: int) -> str:
    """Text with lines of any length, the long ones too long for a page; some end with a line break."""
    length = random.choice([0, 1, 20, random.randrange(longest)])
    alphabet = random.choice(["ab\n", "abcdefgh" * 40 + "\n", "ab\r\n", "é漢🎉 \n"])
    text = "".join(random.choice(alphabet) for _ in range(length))
    return text.replace("\r", "\r\n")
