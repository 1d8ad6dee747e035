"""What is known of an expression, as it prints itself."""

import unicodedata

import pytest

from schemas.folding import FOLDED, fold
from search_api.regex import compile_regex
from search_api.regex_literals import MAX_LITERALS, MAX_TEXT_CHARS, NO_LINE, Literal, NothingKnown, pattern_facts


def known(pattern: str) -> str:
    return str(pattern_facts(pattern).required)


@pytest.mark.parametrize(
    ("pattern", "required"),
    [
        ("off by one", '"off by one"'),
        ("Straẞe", '"straße"'),
        ("(?-i)Straße", '"straße"'),
        ("foo.*bar", '"foo" & "bar"'),
        (r"src/[a-z_]+\.rs:\d+", '"src/" & ".rs:"'),
        ("colou?r", '"color" | "colour"'),
        ("[Ee]rr(or)?s", '"errs" | "errors"'),
        ("v[1-3]x", '"v1x" | "v2x" | "v3x"'),
        ("[a-z]{8}-x", '"-x"'),
        ("[^a]x", '"x"'),
        ("todo|fixme|todos", '"todo" | "fixme"'),
        ("(?:ab|cd.ef)gh", '("ab" | ("cd" & "ef")) & "gh"'),
        ("a{3}b", '"aaab"'),
        ("a{2,}b", '"aa" & "b"'),
        ("a{0}b", '"b"'),
        ("(?:ab)+", '"ab"'),
        ("(?:ab)*c", '"c"'),
        ("a{,3}", '"a{,3}"'),
        ("a{01}", '"a{01}"'),
        (r"\Qa.b\E+c", '"a." & "b" & "c"'),
        (r"\Qa\\E", '"a\\"'),
        (r"\x{1F389}\x41\101\.", '"🎉aa."'),
        (r"\a\t\_", '"\a\t_"'),
        ("[]a]b", '"]b" | "ab"'),
        ("[a-]b", '"-b" | "ab"'),
        (r"[\]\-]b", '"-b" | "]b"'),
        ("[[:alpha:]]b", '"b"'),
        (r"\pLb\p{Greek}c[\pN]d", '"b" & "c" & "d"'),
        ("(?P<name>a)(?<other>b)", '"ab"'),
        ("(?i)a(?-i:B)(?s)c", '"abc"'),
        (r"\bfn\s+\w+\(", '"fn " & "("'),
        (r"^def\s", '" def "'),
        (r"^\s*def\b", '" def"'),
        (r"\A#+\z", '"#"'),
        (r"a\s*=b", '"a=b" | ("a " & " =b")'),
        (r"import\s+re", '"import " & " re"'),
        ("a ?b  cd*", '"ab  c" | "a b  c"'),
        ("a {2}b +c[ \t]+d", '"a  b " & " c " & " d"'),
        (r"[ \s]a$", '" a "'),
        ("\xa0|\x1c", "nothing known"),
        (r"\s+\S+", "nothing known"),
        ("^.", "nothing known"),
        (".{10}", "nothing known"),
        ("a|.", "nothing known"),
        ("a|b|c|d.", '"a" | "b" | "c" | "d"'),
        ("a|b\nc", '"a"'),
        ("a\u1fd3b", '"a" & "b"'),
        ("(?-i)a\u1fd3b", '"a\u1fd3b"'),
        ("[\ufb05\ufb06]b", '"b"'),
    ],
)
def test_what_every_match_contains(pattern: str, required: str) -> None:
    assert known(pattern) == required


@pytest.mark.parametrize("pattern", ["a\n", r"a\nb", r"[\n]", r"(?:\n|a\x0ab)c", r"\n+a"])
def test_a_line_break_matches_no_line(pattern: str) -> None:
    assert pattern_facts(pattern).required == NO_LINE


@pytest.mark.parametrize("pattern", ["(?^a)b", "a(?=b)", r"a\Zb", r"a\8", "a)", "(a", "*a", "[a", "a\\"])
def test_of_what_cannot_be_read_nothing_is_known(pattern: str) -> None:
    assert pattern_facts(pattern).required == NothingKnown()
    assert pattern_facts(pattern).longest_bytes is None


def test_what_would_be_looked_up_too_often_is_left_out() -> None:
    assert known("|".join(f"a{number}b" for number in range(MAX_LITERALS + 1))) == "nothing known"
    assert known("[abcd]x[abcde]y") == '("ax" | "bx" | "cx" | "dx") & ("ay" | "by" | "cy" | "dy" | "ey")'
    assert known("a.bcd.cde.def.efg.f") == '"bcd" & "cde" & "def" & "efg"'


def test_a_long_text_is_cut_where_nothing_is_lost() -> None:
    tree = pattern_facts(f"{'ab' * 150}c").required
    assert MAX_TEXT_CHARS <= len(str(tree)) < 3 * MAX_TEXT_CHARS


@pytest.mark.parametrize(
    ("pattern", "longest"),
    [
        ("abc", 12),
        ("a{2,5}", 20),
        ("a?b", 8),
        ("a|bc|", 8),
        ("(?:ab){3}[a-z]", 28),
        (r"^\babc\B$", 12),
        ("^*a", 4),
        ("a+", None),
        ("a{2,}", None),
        ("(?:a|b*)c", None),
    ],
)
def test_how_long_a_match_is_at_most(pattern: str, longest: int | None) -> None:
    assert pattern_facts(pattern).longest_bytes == longest


def test_no_literal_loses_what_re2_matches_when_it_ignores_case() -> None:
    cased = [char for char in map(chr, range(0x110000)) if unicodedata.category(char) in ("Lu", "Ll", "Lt")]
    chars = sorted({*cased, *FOLDED, *FOLDED.values(), *map(chr, range(128))} - {"\n"})
    line = "".join(chars)
    for char in chars:
        regex = compile_regex(f"\\x{{{ord(char):x}}}")
        if isinstance(regex.required, Literal):
            found = {line[slice(*span)] for span in regex.matches(line, lambda: None)}
            assert {fold(other) for other in found} == {regex.required.text}
