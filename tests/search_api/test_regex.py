"""What an expression finds, and why it is refused."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest

from schemas.errors import InvalidQuery, Timeout
from schemas.folding import FOLDED, fold
from search_api import regex
from search_api.regex import MAX_PATTERN_CHARS, compile_regex


def all_the_time() -> None:
    pass


def first(pattern: str, text: str) -> str | None:
    found = compile_regex(pattern).search(text, all_the_time)
    return None if found is None else text[slice(*found)]


def every(pattern: str, line: str) -> list[str]:
    return [line[slice(*span)] for span in compile_regex(pattern).matches(line, all_the_time)]


def refusal(pattern: str) -> str:
    with pytest.raises(InvalidQuery) as caught:
        compile_regex(pattern)
    return caught.value.detail


def test_case_is_ignored_until_the_expression_says_otherwise() -> None:
    assert first("span", "The SPAN is off") == "SPAN"
    assert first("(?-i)span", "The SPAN is off") is None
    assert first("(?-i:s)pan", "SPAN sPAN") == "sPAN"
    assert first("straẞe", "STRAßE") == "STRAßE"
    assert first("σίσυφος", "ΣΊΣΥΦΟΣ") == "ΣΊΣΥΦΟΣ"


def test_an_expression_is_not_trimmed() -> None:
    assert first(" off", "off off") == " off"
    assert first("off ", "off") is None


def test_spans_are_code_points_of_the_text() -> None:
    text = "🎉 Köln\r\n文档 Köln, köln\n"
    assert compile_regex("KÖLN").search(text, all_the_time) == (2, 6)
    assert compile_regex("KÖLN,").search(text, all_the_time) == (11, 16)
    assert list(compile_regex("KÖLN").matches("文档 Köln, köln", all_the_time)) == [(3, 7), (9, 13)]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("[^a]+", "b"),
        (r"b\s+c", None),
        ("(?s)b.+", None),
        (r"[\s\S]{2,}", "ab"),
        (r"\W+", "\t"),
        (r"\PL+", "\t"),
        ("^b", None),
        ("b$", "b"),
        ("^c$", "c"),
        (r"\bd", "d"),
        (r"\Bd", None),
        ("b.", None),
        (r"\Ac\z", "c"),
        ("(?-m)^c$", "c"),
        (r"(?m:\Ad)", "d"),
        (r"\t\z", "\t"),
    ],
)
def test_a_match_lies_within_one_line(pattern: str, found: str | None) -> None:
    assert first(pattern, "ab\r\nc\nd\t") == found


def test_only_the_line_break_s_own_carriage_return_is_no_part_of_the_line() -> None:
    assert first("a$", "a\r\n") == "a"
    assert first("a.$", "a\r\r\n") == "a\r"
    assert first("a$", "a\r") is None
    assert first("a.b", "a\rb") == "a\rb"


def test_all_matches_of_a_line_do_not_overlap() -> None:
    assert every("a.a", "abaca, ada") == ["aba", "ada"]
    assert every("a|ab", "ab ab") == ["a", "a"]
    assert every(r"^\w", "one two") == ["o"]
    assert every(r"\w$", "one two") == ["o"]
    assert every("x", "one two") == []


def test_classes_are_ascii_and_unicode_has_its_own() -> None:
    assert every(r"\w+", "Köln 文档 a_1") == ["K", "ln", "a_1"]
    assert every(r"\pL+", "Köln 文档 a_1") == ["Köln", "文档", "a"]
    assert every(r"\d", "1٣²") == ["1"]
    assert every(r"\s", "\t\v\f\r \x85\xa0\u3000") == ["\t", "\f", "\r", " "]
    assert every(r"\bl\b", "öl lö l") == ["l", "l", "l"]


def test_classes_that_ignore_case_take_what_folds_to_ascii() -> None:
    assert every(r"\w", "k\u212asſ") == ["k", "\u212a", "s", "ſ"]
    assert every(r"(?-i)\w", "k\u212asſ") == ["k", "s"]
    assert every("[^k]", "k\u212as") == ["s"]


def test_case_is_ignored_as_in_a_text_search_but_for_three_pairs() -> None:
    pairs = ["\u0390\u1fd3", "\u03b0\u1fe3", "\ufb05\ufb06"]
    chars = sorted({*FOLDED, *FOLDED.values(), *map(chr, range(128)), *"".join(pairs), *"İıŉǰᾳ"} - {"\n"})
    by_folded: dict[str, set[str]] = {}
    for char in chars:
        by_folded.setdefault(fold(char), set()).add(char)
    line = "".join(chars)
    for char in chars:
        expected = by_folded[fold(char)].union(*(pair for pair in pairs if char in pair))
        assert set(every(f"\\x{{{ord(char):x}}}", line)) == expected, f"{ord(char):04x}"


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("", "matches the empty string"),
        ("a*", "matches the empty string"),
        ("a|", "matches the empty string"),
        (r"\b", "matches the empty string"),
        (r"\b|a", "matches the empty string"),
        (r"a?\B", "matches the empty string"),
        (r"^\s*$", "matches the empty string"),
        (r"^\bx*", "matches the empty string"),
        (r"\bx*$", "matches the empty string"),
        (r"a*\z", "matches the empty string"),
        (r"(?:\ba*)\B|b", None),
        ("a(?=b)", "no look-around ((?=…)"),
        ("a(?!b)", "no look-around ((?!…)"),
        ("(?<=a)b", "no look-around ((?<=…)"),
        ("(?<!a)b", "no look-around ((?<!…)"),
        (r"(a)\1", r"no back-references (\1)"),
        (r"(?P<a>a)\k<a>", r"no back-references (\k)"),
        (r"(?P<a>a)(?P=a)", "no back-references"),
        ("(?>a)", "there is no (?>…)"),
        ("(?x) a", "there is no (?x…)"),
        (r"a\Z", r"no escape \Z"),
        (r"a\C", r"\C matches a part of a character"),
        (r"\QD:\Code\E", None),
        ("a**", "repetition of a repetition"),
        ("*a", "nothing stands before *"),
        ("a{3,2}", "{3,2} runs backwards"),
        ("a{1001}", "more than 1,000"),
        ("((a{100}){100}){100}", "more than 1,000"),
        (r"\pL{100}", "too large"),
        (r"(?:\pL{100}){9}", "too large"),
        ("(a", "missing )"),
        ("a)", "unexpected )"),
        ("[a", "missing ]"),
        ("a\\", "trailing \\"),
        ("[z-a]", "z-a"),
        (r"\p{Klingon}", "Klingon"),
        ("a\nb", "within one line"),
        (r"a\nb", "within one line"),
        (r"a\x0ab|\n", "within one line"),
        (r"a\nb|c", None),
        ("a" * MAX_PATTERN_CHARS, None),
        ("a" * (MAX_PATTERN_CHARS + 1), "1,001 characters; at most 1,000"),
        ("\ud800", None),
    ],
)
def test_what_cannot_be_searched_for_is_refused_with_the_reason(pattern: str, reason: str | None) -> None:
    if reason is None:
        compile_regex(pattern)
    else:
        assert reason in refusal(pattern)


@pytest.mark.parametrize("pattern", ["(" * 400 + "a" + ")" * 400, "(?:a|" * 160 + "b" + ")" * 160, "a|" * 499 + "b"])
def test_an_expression_may_be_nested_deeply(pattern: str) -> None:
    assert first(pattern, "xa") == "a"


@pytest.mark.parametrize("pattern", ["a.{200}c", "a[ab]*c", r"(?-m)a[ab]*c"])
def test_one_long_line_is_searched_in_pieces_with_a_look_at_the_clock_before_each(pattern: str) -> None:
    looks = count()

    def check_time() -> None:
        if next(looks) == 2:
            raise Timeout("late")

    expression = replace(compile_regex(pattern), piece_bytes=1000)
    with pytest.raises(Timeout):
        expression.search("ab" * 50_000, check_time)
    assert next(looks) == 3


def test_a_match_beyond_a_piece_is_whole() -> None:
    expression = replace(compile_regex("ab{1,3}"), piece_bytes=16)
    for before in range(80):
        assert expression.search(f"{'-' * before}abbb", all_the_time) == (before, before + 4)


def test_a_long_line_that_would_take_too_long_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "monotonic", ticks(seconds=0.3).__next__)
    expression = compile_regex("(?:a|b)*a(?:a|b){20}c")
    with pytest.raises(Timeout, match="a line of 200,000 bytes takes too long"):
        expression.search("ab" * 100_000, all_the_time)
    assert expression.search("ab" * 10_000, all_the_time) is None


def ticks(*, seconds: float) -> Iterator[float]:
    """A clock on which so much time passes between two looks."""
    return (tick * seconds for tick in count())
