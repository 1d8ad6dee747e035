import json
from collections.abc import Sequence
from dataclasses import fields, replace

import pytest

from schemas.answers import Indexing, LeftOut, ReadAnswer, ReadItem, ReadTurn, SearchAnswer, SessionsAnswer, TurnRange
from schemas.errors import Ambiguous, InvalidArgument, NotFound
from search_api.render import error_line, json_form, problem, text_form
from tests.search_api.answers import AT, HIT, PROJECTS, READ, SEARCHED, SESSION, STATUS, TOOL, USER


def read_answer(*items: ReadItem, **changes: object) -> ReadAnswer:
    answer = replace(READ, parts=[ReadTurn(5, "#43:5", False, list(items))])
    return replace(answer, **changes)  # type: ignore[arg-type]  # each test names fields and their values


def body(text: str) -> str:
    """A text form without its header and heading."""
    return text.split("## #43:5\n\n", 1)[1]


def test_a_hit_is_one_line_of_reference_title_and_line() -> None:
    assert text_form(SEARCHED) == "#43:5 Fix the parser — the span is off by one"


def test_matches_are_marked_where_the_door_wants_it() -> None:
    answer = replace(SEARCHED, hits=[replace(HIT, line="ab ab", spans=[(0, 2), (3, 5)])])
    assert text_form(answer, lambda match: f"[{match}]") == "#43:5 Fix the parser — [ab] [ab]"


def test_control_characters_and_line_separators_of_hits_are_spaces() -> None:
    hit = replace(HIT, title="Labels\nover\u2028lines", line="a\x1b[31mb\x85c", spans=[])
    assert text_form(replace(SEARCHED, hits=[hit])) == "#43:5 Labels over lines — a [31mb c"


def test_a_title_of_a_hit_is_cut_and_an_empty_one_is_named() -> None:
    long = replace(HIT, title="t" * 201)
    untitled = replace(HIT, title="  ")
    answer = replace(SEARCHED, hits=[long, untitled])
    assert text_form(answer) == (
        f"#43:5 {'t' * 200}… — the span is off by one\n#43:5 (untitled) — the span is off by one"
    )


def test_notes_follow_the_hits_and_each_starts_with_an_ellipsis() -> None:
    answer = replace(
        SEARCHED,
        more=True,
        cursor="8f2c",
        limit=1,
        notes=["and another"],
        left_out=[LeftOut("copies", "copies=include")],
        indexing=Indexing(12, 40, 3_000_000, 9_000_000),
    )
    assert text_form(answer) == (
        "#43:5 Fix the parser — the span is off by one\n"
        "… more than 1 turn matches; narrow the query or name a session\n"
        "… next page: cursor=8f2c\n"
        "… and another\n"
        "… left out: copies; copies=include brings them back\n"
        "… still indexing: 12 of 40 sessions, 3.0 MB of 9.0 MB"
    )


def test_no_hits_say_so_with_the_query() -> None:
    answer = replace(SEARCHED, query="off  by\tone", hits=[], notes=["searched 3 sessions, 40 turns"])
    assert text_form(answer) == "nothing matches off  by one\n… searched 3 sessions, 40 turns"


def test_the_json_form_of_a_search_has_its_keys_and_no_others() -> None:
    form = json.loads(json_form(replace(SEARCHED, more=True, cursor="8f2c")))
    assert list(form) == ["query", "hits", "more", "cursor", "notes", "left_out", "indexing", "explain", "took_ms"]
    assert form["notes"] == ["more than 20 turns match; narrow the query or name a session"]
    assert form["hits"] == [
        {
            "reference": "#43:5",
            "link": "cydonia://lighthouse#43:5",
            "project": "/home/a/lighthouse",
            "project_name": "lighthouse",
            "session": 43,
            "session_id": "1790000004300",
            "turn": 5,
            "title": "Fix the parser",
            "line": "the span is off by one",
            "spans": [[12, 22]],
            "kind": "user",
            "source": "cydonia",
            "agent": "Claude Agent",
            "at": AT,
            "archived": False,
            "deleted": False,
            "copied_from": None,
            "before": [],
            "after": [],
        }
    ]


def test_lines_around_a_hit_say_how_far_from_it_they_stand() -> None:
    hit = replace(HIT, before=["two before", "one\tbefore"], after=["one after"])
    assert text_form(replace(SEARCHED, hits=[hit])).splitlines()[1:] == [
        "  -2 two before",
        "  -1 one before",
        "  +1 one after",
    ]


def test_a_lone_surrogate_in_a_path_becomes_a_replacement_character() -> None:
    form = json.loads(json_form(replace(SEARCHED, hits=[replace(HIT, project="/home/\udcff")])))
    assert form["hits"][0]["project"] == "/home/\ufffd"
    assert form["hits"][0]["spans"] == [[12, 22]]


def test_a_read_is_a_header_and_a_block_for_every_turn() -> None:
    answer = replace(
        READ,
        turns=TurnRange(5, 6),
        parts=[
            ReadTurn(5, "#43:5", False, [USER, TOOL]),
            ReadTurn(6, "#43:6", False, [ReadItem(6, 0, "notice", text="stopped by the user")]),
        ],
    )
    assert text_form(answer) == (
        "#43 Fix the parser — turns 5-6 of 9\n"
        "\n"
        "## #43:5\n"
        "\n"
        "user: The span is off.\n"
        "See src/parser.rs:88\n"
        "tool: cargo test parser — failed\n"
        "\n"
        "## #43:6\n"
        "\n"
        "notice: stopped by the user"
    )


@pytest.mark.parametrize(
    ("changes", "header"),
    [
        ({}, "#43 Fix the parser — turn 5 of 9"),
        ({"archived": True, "deleted": True}, "#43 Fix the parser — turn 5 of 9 · archived · deleted at source"),
        ({"title": "Labels\nover lines"}, "#43 Labels over lines — turn 5 of 9"),
        ({"title": ""}, "#43 (untitled) — turn 5 of 9"),
    ],
)
def test_the_header_says_which_turns_and_how_the_session_stands(changes: dict[str, object], header: str) -> None:
    assert text_form(read_answer(USER, **changes)).split("\n")[0] == header


def test_a_session_without_turns_says_so() -> None:
    answer = replace(READ, title="Nothing yet", turns=None, count=0, parts=[], archived=True)
    assert text_form(answer) == "#43 Nothing yet has no turns yet · archived"
    assert json.loads(json_form(answer))["turns"] is None


@pytest.mark.parametrize(
    ("label", "line"),
    [
        ("python - <<'EOF'\nprint('a   b')\nEOF", "tool: python - <<'EOF' print('a b') EOF — failed"),
        ("z" * 201, f"tool: {'z' * 200}… — failed"),
        (None, "tool: (unknown) — failed"),
        ("  ", "tool: (unknown) — failed"),
    ],
)
def test_a_tool_call_is_one_line(label: str | None, line: str) -> None:
    assert body(text_form(read_answer(replace(TOOL, label=label)))) == line


def test_full_shows_input_that_says_more_and_then_output() -> None:
    tool = replace(TOOL, input="cargo test parser -- --nocapture", output="left: 4\r\nright: 5")
    same = replace(TOOL, input=" cargo test parser\n", output="")
    process = ReadItem(5, 3, "process", command="codex", output="warning: retrying")
    thinking = ReadItem(5, 4, "thinking", text="Hm.")
    assert body(text_form(read_answer(tool, same, process, thinking, is_full=True))) == (
        "tool: cargo test parser — failed\n"
        "cargo test parser -- --nocapture\n"
        "left: 4\n"
        "right: 5\n"
        "tool: cargo test parser — failed\n"
        "process: codex\n"
        "warning: retrying\n"
        "thinking: Hm."
    )


def test_items_have_what_their_kind_has_and_detail_only_with_full() -> None:
    tool = replace(TOOL, input="-- --nocapture")
    process = ReadItem(5, 2, "process", command="codex", output="warning", at=AT)
    plain = json.loads(json_form(read_answer(USER, TOOL)))["items"]
    full = json.loads(json_form(read_answer(tool, process, is_full=True)))["items"]
    assert plain == [
        {"turn": 5, "index": 0, "kind": "user", "text": "The span is off.\nSee src/parser.rs:88", "at": AT},
        {"turn": 5, "index": 1, "kind": "tool", "label": "cargo test parser", "status": "failed", "at": None},
    ]
    assert full == [
        {
            "turn": 5,
            "index": 1,
            "kind": "tool",
            "label": "cargo test parser",
            "status": "failed",
            "at": None,
            "input": "-- --nocapture",
            "output": None,
        },
        {"turn": 5, "index": 2, "kind": "process", "command": "codex", "output": "warning", "at": AT},
    ]


def test_the_json_form_of_a_read_has_its_keys_and_no_others() -> None:
    form = json.loads(json_form(READ))
    assert list(form) == [
        "reference",
        "link",
        "project",
        "project_name",
        "session",
        "session_id",
        "title",
        "source",
        "agent",
        "archived",
        "deleted",
        "turns",
        "count",
        "items",
        "more",
        "cursor",
        "notes",
    ]
    assert form["turns"] == {"from": 5, "to": 5}


def cut(items: Sequence[ReadItem], number: int, *, is_last: bool = False) -> str:
    """The text of a page of one turn; the first one has the heading."""
    is_first = number == 0
    return text_form(
        replace(
            READ,
            parts=[ReadTurn(5, "#43:5", not is_first, list(items))],
            is_continuation=not is_first,
            max_chars=1000,
            more=not is_last,
            cursor=None if is_last else f"c{number}",
        )
    )


def joined(pages: Sequence[str]) -> str:
    return "".join(page.split("… cut at 1000 characters")[0] for page in pages)


def test_a_cut_between_items_ends_in_a_line_of_its_own() -> None:
    first = cut([USER], 0)
    assert first.endswith("See src/parser.rs:88\n… cut at 1000 characters; read on with cursor=c0")
    assert cut([TOOL], 1, is_last=True) == "tool: cargo test parser — failed"
    assert joined([first, cut([TOOL], 1, is_last=True)]) == text_form(READ)


@pytest.mark.parametrize("at", range(1, len("one\ntwo\n\nthree\n")))
def test_pages_of_a_cut_text_joined_are_the_uncut_text(at: int) -> None:
    text = "one\ntwo\n\nthree\n"
    item = ReadItem(5, 0, "user", text=text)
    pages = [
        cut([replace(item, text=text[:at], is_cut=True)], 0),
        cut([replace(item, text=text[at:], is_continued=True), TOOL], 1, is_last=True),
    ]
    assert joined(pages) == text_form(read_answer(item, TOOL))


def test_a_cut_inside_a_line_is_said_at_that_place() -> None:
    page = cut([ReadItem(5, 0, "user", text="xxxx", is_cut=True)], 0)
    assert page.endswith("user: xxxx… cut at 1000 characters; read on with cursor=c0")


@pytest.mark.parametrize(
    "pieces",
    [
        [{"input": "in 1\n", "output": None}, {"input": "in 2", "output": "out 1\nout 2"}],
        [{"input": "in 1\nin 2", "output": ""}, {"input": None, "output": "out 1\nout 2"}],
        [{"input": "in 1\nin 2", "output": "out 1\n"}, {"input": None, "output": "out 2"}],
        [{"input": "in 1\nin 2", "output": "ou"}, {"input": None, "output": "t 1\nout 2"}],
    ],
)
def test_pages_of_a_cut_tool_joined_are_the_uncut_text(pieces: list[dict[str, str | None]]) -> None:
    whole = replace(TOOL, input="in 1\nin 2", output="out 1\nout 2")
    first = replace(TOOL, input=pieces[0]["input"], output=pieces[0]["output"], is_cut=True)
    second = replace(
        TOOL, label=None, status=None, is_continued=True, input=pieces[1]["input"], output=pieces[1]["output"]
    )
    assert joined([cut([first], 0), cut([second], 1, is_last=True)]) == text_form(read_answer(whole, is_full=True))


def test_an_input_that_says_no_more_is_not_shown_where_the_output_is_cut() -> None:
    page = cut([replace(TOOL, input="cargo test parser", output="out\n", is_cut=True)], 0)
    assert body(page).startswith("tool: cargo test parser — failed\nout\n… cut at")


def test_sessions_projects_and_status_are_lines() -> None:
    assert text_form(SessionsAnswer([SESSION], more=True, cursor="c")) == (
        "#43 Fix the parser — 9 turns, 2026-11-30T10:00:00.000Z, Claude Agent · archived\n… next page: cursor=c"
    )
    assert text_form(PROJECTS) == (
        "lighthouse /home/a/lighthouse — 3 sessions, 40 turns, 2026-11-30T10:00:00.000Z, cydonia"
    )
    assert text_form(STATUS) == (
        "turndex 0.1.0 · ready · up 0 min 12 s\n"
        "data: /home/a/.local/share/turndex\n"
        "sizes: store 1.0 MB, index 0.5 MB, vocabulary 0.1 MB\n"
        "holds: 1 project, 3 sessions, 40 turns, 80 chunks"
    )
    assert text_form(SessionsAnswer([], more=False, cursor=None)) == "no sessions"


def test_a_refusal_names_its_first_ten_candidates() -> None:
    candidates = [f"p{number}#1" for number in range(12)]
    error = Ambiguous("#1 is in several projects", candidates)
    detail = "#1 is in several projects; one of: p0#1, p1#1, p2#1, p3#1, p4#1, p5#1, p6#1, p7#1, p8#1, p9#1 and 2 more"
    assert error_line(error) == f"Error (ambiguous): {detail}"
    assert problem(error).detail == detail
    assert problem(error).candidates == candidates


def test_a_refusal_that_names_its_candidates_already_says_them_once() -> None:
    assert error_line(InvalidArgument("x", "unknown argument x; there are a, b", ["a", "b"])) == (
        "Error (invalid_argument): unknown argument x; there are a, b"
    )


def test_a_refusal_is_one_line() -> None:
    assert error_line(NotFound("no session\x1b[2J\nhere")) == "Error (not_found): no session [2J here"


def test_the_form_of_a_search_lacks_only_the_limit() -> None:
    form = json.loads(json_form(SEARCHED))
    renamed = {"explanation": "explain"}
    assert {renamed.get(field.name, field.name) for field in fields(SearchAnswer)} - set(form) == {"limit"}
