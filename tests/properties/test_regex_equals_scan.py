"""A text searched at once is its lines searched one by one, and every line that matches has what was said it must.

The oracle is RE2 itself in its plainest use: one line after the other, as text. `REGEX_PATTERNS` in the
environment asks for more than a usual run tries.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import re2  # type: ignore[import-untyped]  # the package carries no types

from schemas.errors import InvalidQuery
from search_api.regex import CompiledRegex, compile_regex
from search_api.regex_finder import RegexFinder
from search_api.regex_literals import Every, Literal, LiteralTree, NothingKnown, OneOf
from tests.properties.oracle import fold, lines_of
from tests.properties.random_texts import WORDS, random_case, random_text

PATTERNS = int(os.environ.get("REGEX_PATTERNS", "1500"))
TEXTS = 4
PIECES = [1, 7, 64, 16_384]

_SOUP = "aab|()[]{}*+?\\^$.-:,0189QEPLNsSdwbBxAzniUm<> \t\nkKſß\u1fd3\ufb06é文🎉"

REPEATS = [
    *[("?", 0, 1), ("*", 0, 3), ("+", 1, 3), ("*?", 0, 3), ("+?", 1, 3), ("??", 0, 1)],
    *[("{2}", 2, 2), ("{0}", 0, 0), ("{1,}", 1, 3), ("{2,3}", 2, 3), ("{0,2}?", 0, 2), ("{20,}", 20, 22)],
]
"""Each with how often a sample has what it repeats."""


@dataclass(frozen=True)
class Made:
    """An expression, and what makes texts that it may match."""

    pattern: str
    sample: Callable[[], str]


def test_an_expression_finds_what_a_scan_finds() -> None:
    random = Random(1)
    matched = 0
    for _ in range(PATTERNS):
        made = random_expression(random, depth=3)
        regex = compiled(made.pattern)
        if regex is not None:
            texts = [text_around(random, made.sample()) for _ in range(TEXTS)]
            matched += sum(check(random, regex, text) for text in texts)
    assert matched > PATTERNS


def test_an_expression_of_random_characters_finds_what_a_scan_finds() -> None:
    random = Random(2)
    matched = 0
    for _ in range(PATTERNS * 8):
        regex = compiled("".join(random.choices(_SOUP, k=random.randint(1, 9))))
        if regex is not None:
            texts = ["".join(random.choices(_SOUP + "\r\n", k=random.randint(1, 30))) for _ in range(TEXTS)]
            matched += sum(check(random, regex, text) for text in texts)
    assert matched > PATTERNS / 2


def test_texts_looked_at_together_may_match_where_one_of_them_does() -> None:
    random = Random(3)
    ruled_out = 0
    for _ in range(PATTERNS):
        made = random_expression(random, depth=3)
        regex = compiled(made.pattern)
        if regex is not None:
            samples = [made.sample() if random.random() < 0.2 else "" for _ in range(TEXTS)]
            texts = [text_around(random, sample) + random.choice(["", "", "", "\n", "\r"]) for sample in samples]
            finder = RegexFinder.of(regex, all_the_time)
            is_in_one = any(finder.find(text) >= 0 for text in texts)
            may_match = finder.may_be_in(texts)
            assert may_match or not is_in_one, (regex, texts)
            assert may_match == is_in_one or any("\r" in text for text in texts), (regex, texts)
            ruled_out += not may_match
    assert ruled_out > PATTERNS / 50


def compiled(pattern: str) -> CompiledRegex | None:
    try:
        return compile_regex(pattern)
    except InvalidQuery:
        return None


def check(random: Random, regex: CompiledRegex, text: str) -> bool:
    """Compare with a scan; whether the text matches."""
    regex = replace(regex, piece_bytes=random.choice(PIECES))
    expected: tuple[int, int] | None = None
    start = 0
    for raw_line, line in zip(text.split("\n"), lines_of(text), strict=True):
        spans = scanned(regex.pattern, line)
        assert list(regex.matches(line, all_the_time)) == spans, (regex, line)
        if spans:
            assert holds(regex.required, line), (regex, line)
            if expected is None:
                expected = (start + spans[0][0], start + spans[0][1])
        start += len(raw_line) + 1
    assert regex.search(text, all_the_time) == expected, (regex, text)
    return expected is not None


def all_the_time() -> None:
    pass


def scanned(pattern: str, line: str) -> list[tuple[int, int]]:
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    return [found.span() for found in re2.finditer(pattern, line, options)]


def holds(tree: LiteralTree, line: str) -> bool:
    """Whether a line has it; a space at an end of a text is white space or an end of the line."""
    folded = fold(line)

    def holds_in_line(tree: LiteralTree) -> bool:
        match tree:
            case NothingKnown():
                return True
            case Literal(text):
                before = r"(?<![^\t\v\f\r ])" if text[0] == " " else ""
                after = r"(?![^\t\v\f\r ])" if text[-1] == " " else ""
                return re.search(before + re.escape(text.strip(" ")) + after, folded) is not None
            case Every(parts):
                return all(map(holds_in_line, parts))
            case OneOf(parts):
                return any(map(holds_in_line, parts))

    return holds_in_line(tree)


def text_around(random: Random, sample: str) -> str:
    sample = random_case(random, sample) if random.random() < 0.5 else sample
    ends = ["", "", " ", "\n", "\r\n", "x", "é", "\t"]
    before, after = (random_text(random, words=random.choice([0, 0, 3])) for _ in range(2))
    text = before + random.choice(ends) + sample + random.choice(ends) + after
    return text.encode("utf-8", "replace").decode()


def random_expression(random: Random, *, depth: int) -> Made:
    """An expression of the whole grammar; most of its samples are matches."""
    roll = random.random()
    if depth == 0 or roll < 0.35:
        return random_atom(random)
    if roll < 0.7:
        parts = [random_expression(random, depth=depth - 1) for _ in range(random.randint(2, 4))]
        return Made("".join(part.pattern for part in parts), lambda: "".join(part.sample() for part in parts))
    if roll < 0.82:
        parts = [random_expression(random, depth=depth - 1) for _ in range(random.randint(2, 3))]
        group = random.choice(["(", "(?:", "(?i:", "(?-i:", "(?s:", "(?-m:", "(?U:", "(?P<a>", "(?<b>"])
        return Made(group + "|".join(part.pattern for part in parts) + ")", lambda: random.choice(parts).sample())
    part = random_expression(random, depth=depth - 1)
    repeat, least, most = random.choice(REPEATS)
    return Made(
        f"(?:{part.pattern}){repeat}", lambda: "".join(part.sample() for _ in range(random.randint(least, most)))
    )


def random_atom(random: Random) -> Made:
    def one_of(pattern: str, chars: str) -> Made:
        return Made(pattern, lambda: random.choice(chars))

    def text(pattern: str, sample: str) -> Made:
        return Made(pattern, lambda: sample)

    word = random.choice(WORDS)
    char = random.choice(word)
    match random.randrange(14):
        case 0:
            return text(rf"\Q{word}\E", word)
        case 1:
            return text(f"\\x{{{ord(char):x}}}", char)
        case 2:
            return one_of(f"[{re.escape(char)}x-z]", char + "xyz")
        case 3:
            return random.choice(
                [one_of(r"[\s-]", "- \t"), one_of("[^x]", "aé文"), one_of("[]^-]", "]^-"), one_of(r"[\d_a-cK]", "1_bk")]
            )
        case 4:
            return random.choice(
                [one_of(r"\w", "aZ_0ſ"), one_of(r"\d", "09"), one_of(r"\s", " \t\r"), one_of(r"\S", "a文")]
            )
        case 5:
            return random.choice([one_of(r"\pL", "aé文"), one_of("[[:alpha:]]", "aZ"), one_of(r"[^\PN]", "1²")])
        case 6:
            return one_of(".", "aé文🎉 \t")
        case 7:
            return text(
                random.choice(["^", "$", r"\A", r"\z", r"\b", r"\B", "(?i)", "(?-i)", "(?m)", "(?-m)", "()"]), ""
            )
        case 8:
            return random.choice([text(r"\s+", " \t "), text(r"\s*", random.choice(["", "  "])), text(" ", " ")])
        case 9:
            return random.choice([text(r"\t", "\t"), text(r"\101", "A"), text("[[:space:]]", "\v"), text(r"\n", "\n")])
        case 10:
            return one_of("[k-ſ]", "ksK\u212aſ")
        case 11:
            return random.choice(
                [text("\u1fd3", "\u0390"), text("\ufb05", "\ufb06"), text("\u212a", "k"), text("ẞ", "ß")]
            )
        case _:
            return text(re.escape(word), word)
