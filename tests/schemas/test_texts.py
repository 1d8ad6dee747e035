import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.texts import WHITE_SPACE, collapsed, lines_of, printable, trimmed, without_surrogates

ANY_TEXT = st.text(st.characters(codec=None))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("one", ["one"]),
        ("one\ntwo", ["one", "two"]),
        ("one\ntwo\n", ["one", "two", ""]),
        ("one\r\ntwo\r\n", ["one", "two", ""]),
        ("one\r\r\ntwo\rthree\r", ["one\r", "two\rthree\r"]),
        ("a\u2028b\u2029c\x85d\x0be\x0cf\x1cg", ["a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"]),
        ("\n\n", ["", "", ""]),
    ],
)
def test_lines_end_at_a_line_feed_and_at_nothing_else(text: str, lines: list[str]) -> None:
    assert lines_of(text) == lines


@given(ANY_TEXT)
def test_lines_are_the_text_but_for_their_ends(text: str) -> None:
    assert "\n".join(lines_of(text)) == text.replace("\r\n", "\n")


@given(ANY_TEXT)
def test_a_lone_surrogate_becomes_a_replacement_character(text: str) -> None:
    mended = without_surrogates(text)
    assert len(mended) == len(text)
    assert all(
        new == ("\ufffd" if unicodedata.category(old) == "Cs" else old) for old, new in zip(text, mended, strict=True)
    )
    mended.encode("utf-8")


def test_white_space_is_the_unicode_property() -> None:
    pythons = {char for char in map(chr, range(sys.maxunicode + 1)) if char.isspace()}
    assert set(WHITE_SPACE) == pythons - set("\x1c\x1d\x1e\x1f")


@given(ANY_TEXT)
def test_trimming_takes_white_space_at_the_ends_only(text: str) -> None:
    inner = trimmed(text)
    assert inner in text
    assert inner == "" or (inner[0] not in WHITE_SPACE and inner[-1] not in WHITE_SPACE)
    assert set(text.replace(inner, "", 1)) <= set(WHITE_SPACE)


def test_runs_of_white_space_collapse() -> None:
    assert collapsed("\u3000 Labels\r\n\tover \u00a0 lines\x85") == "Labels over lines"


@given(ANY_TEXT)
def test_collapsing_twice_is_collapsing_once(text: str) -> None:
    assert collapsed(collapsed(text)) == collapsed(text)


@given(ANY_TEXT)
def test_what_is_printable_has_no_controls_and_the_same_length(text: str) -> None:
    line = printable(text)
    assert len(line) == len(text)
    assert not any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in line)
    assert printable(line) == line


def test_a_terminal_escape_does_not_get_through() -> None:
    assert printable("\x1b[31mred\x9b0m\u2028\u2029\x7f\x00") == " [31mred 0m    "
