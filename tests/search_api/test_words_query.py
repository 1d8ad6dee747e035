"""What a query of words is read as."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_api.words_query import (
    MAX_WORDS,
    AllOf,
    AnyOf,
    Facts,
    Term,
    Without,
    all_of,
    any_of,
    is_selective,
    none_of,
    parse,
)

WORDS = st.sampled_from(["a", "or", "and", "parser", "错", "ß", "0x1f", "straße", "一"])
REGULAR = st.sampled_from(["a", "pars", "0x", "ß"])
TERMS = st.builds(Term, st.lists(WORDS, min_size=1, max_size=3).map(tuple)) | st.builds(
    lambda words, last: Term((*words, last), True), st.lists(WORDS, max_size=2), REGULAR
)
LEAVES = TERMS | st.builds(Without, TERMS)
TREES = st.recursive(
    LEAVES,
    lambda parts: (
        st.lists(parts, min_size=1, max_size=3).map(all_of)
        | st.lists(parts, min_size=1, max_size=3).map(any_of)
        | parts.map(none_of)
    ),
    max_leaves=12,
)
NEARLY_QUERIES = st.lists(
    st.sampled_from(
        [
            " ",
            " ",
            "OR",
            "AND",
            "-",
            '"',
            "(",
            ")",
            "*",
            "a",
            "pars",
            "错",
            "agent:",
            "kind:user",
            ":",
            "x_y",
            "\n",
            "->",
        ]
    )
    | st.characters(codec=None),
    max_size=25,
).map("".join)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Span  PARSER", "span parser"),
        ("span AND parser", "span parser"),
        ('"Off by  one"', '"off by one"'),
        ("foo_bar it's src/parser.rs:88", '"foo bar" "it s" "src parser rs 88"'),
        ("错误", '"错 误"'),
        ("错误 v2", '"错 误" v2'),
        ("pars* snake_ca*", 'pars* "snake ca"*'),
        ('"off by"*', '"off by"*'),
        ("错*", "错"),
        ("a* *b *", "a* b"),
        ("span -draft", "span -draft"),
        ('span -"a draft" -_private', 'span -"a draft" -private'),
        ("a b OR c", "a b OR c"),
        ("a (b OR c) d", "a (b OR c) d"),
        ("((a b) (c))", "a b c"),
        ("x -(a b)", "x (-a OR -b)"),
        ("x -(a OR -b)", "x -a b"),
        ("-(-a)", "a"),
        ("a a A", "a"),
        ("or and not", "or and not"),
        ("ORDER ANDROID", "order android"),
        ('"OR" b', "or b"),
        ("(a OR b)", "a OR b"),
    ],
)
def test_a_query_is_read_as(written: str, read: str) -> None:
    parsed = parse(written)
    assert (str(parsed), parsed.trouble, parsed.filters) == (read, None, {})


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("foo()", "foo"),
        ("call(foo(x), y)", '"call foo x" y'),
        ("(see call(foo) now)", 'see "call foo" now'),
        ('print("hello world")', '"print hello" world'),
        ("--full -> a - b", "full a b"),
        ("TODO: x", "todo x"),
        ("TODO:x", '"todo x"'),
        ("kind: x", "kind x"),
        ("#tag a,b", 'tag "a b"'),
        ("a) b", "a b"),
        ("=> x {}", "x"),
        ('"" a "=>"', "a"),
        ("() a", "a"),
        ("a || b && c", "a b c"),
    ],
)
def test_signs_that_are_no_syntax_are_no_errors(written: str, read: str) -> None:
    parsed = parse(written)
    assert (str(parsed), parsed.trouble, parsed.filters) == (read, None, {})


@pytest.mark.parametrize(
    ("written", "plain", "trouble"),
    [
        ('"off by one', "off by one", "a quote is not closed"),
        ("(a OR b", "a or b", "a parenthesis is not closed"),
        ("a OR", "a or", "an OR has nothing after it"),
        ("OR a", "or a", "an OR has nothing before it"),
        ("a OR AND b", "a or and b", "an AND has nothing before it"),
        ("a (OR b)", "a or b", "an OR has nothing before it"),
        ("a OR =>", "a or", "an OR has nothing after it"),
        ("-a", "a", "every way to match it must have a word that is not excluded"),
        ("a OR -b", "a or b", "every way to match it must have a word that is not excluded"),
        ("a -agent:codex", "a agent codex", "a filter holds for the whole query and cannot be excluded"),
        ("a (kind:user OR b)", "a kind user or b", "a filter holds for the whole query and cannot be excluded"),
        ("(" * 17 + "a" + ")" * 17, "a", "its parentheses are nested more than 16 deep"),
    ],
)
def test_what_cannot_be_read_is_its_plain_words(written: str, plain: str, trouble: str) -> None:
    parsed = parse(written)
    assert (str(parsed), parsed.trouble, parsed.filters) == (plain, trouble, {})


def test_a_query_of_too_many_words_is_its_first_ones() -> None:
    words = [f"w{number}" for number in range(MAX_WORDS + 1)]
    parsed = parse(" ".join(words))
    assert str(parsed) == " ".join(words[:MAX_WORDS])
    assert parsed.trouble == "it has more than 64 words"
    assert parse(" ".join(words[1:])).trouble is None


@pytest.mark.parametrize("written", ["=> {} ()", "🎉", '""', "-", "*", "agent:codex"])
def test_a_query_may_have_no_words(written: str) -> None:
    assert parse(written).facts is None


def test_filters_hold_for_the_whole_query_wherever_they_stand() -> None:
    parsed = parse('agent:codex a OR title:"Fix the parser" b kind:user kind:agent,tool since:2026-11-30T10:00:00Z')
    assert str(parsed.facts) == "a OR b"
    assert parsed.filters == {
        "agent": ["codex"],
        "title": ["Fix the parser"],
        "kind": ["user", "agent,tool"],
        "since": ["2026-11-30T10:00:00Z"],
    }
    assert parse(str(parsed)) == parsed


@pytest.mark.parametrize("field", ["full", "mode", "limit", "order", "query", "foo", "Agent"])
def test_other_fields_are_text(field: str) -> None:
    assert parse(f"{field}:true").facts == Term((field.lower(), "true"))


@given(TREES)
def test_what_is_printed_is_read_back(facts: Facts) -> None:
    parsed = parse(str(facts))
    if is_selective(facts) and parsed.trouble is None:
        assert parsed.facts == facts
    else:
        assert parsed.trouble is not None


@given(NEARLY_QUERIES)
def test_every_text_is_read(written: str) -> None:
    parsed = parse(written)
    assert parsed.facts is None or is_selective(parsed.facts)
    if parsed.facts is not None and parsed.trouble is None:
        assert parse(str(parsed.facts)).facts == parsed.facts


@given(TREES)
def test_the_opposite_of_the_opposite_is_the_same(facts: Facts) -> None:
    assert none_of(none_of(facts)) == facts


def test_a_conjunction_of_conjunctions_is_one() -> None:
    a, b, c = (Term((word,)) for word in "abc")
    assert all_of([all_of([a, b]), c, a]) == AllOf((a, b, c))
    assert any_of([any_of([a, b]), any_of([b])]) == AnyOf((a, b))
