import pytest

from schemas.errors import BadCall, InvalidReference, NotASession
from schemas.references import (
    NumberedReference,
    Turns,
    can_name_project,
    is_bare_card,
    is_numbered,
    parse_bare_number,
    parse_numbered,
    parse_turns,
    split_id,
)


@pytest.mark.parametrize(
    ("written", "reference"),
    [
        ("#43", NumberedReference(43)),
        ("#043", NumberedReference(43)),
        ("#43:5", NumberedReference(43, turns=Turns(5, 5))),
        ("#43:5-7", NumberedReference(43, turns=Turns(5, 7))),
        ("#43:05-007", NumberedReference(43, turns=Turns(5, 7))),
        ("cydonia#43:5-7", NumberedReference(43, "cydonia", Turns(5, 7))),
        ("cydonia://cydonia#43:5-7", NumberedReference(43, "cydonia", Turns(5, 7), is_link=True)),
        ("cydonia://#43", NumberedReference(43, is_link=True)),
        ("文档#1", NumberedReference(1, "文档")),
        ("a.b-c_d#1", NumberedReference(1, "a.b-c_d")),
        (f"#{10**30}", NumberedReference(10**30)),
    ],
)
def test_a_numbered_reference_is_read(written: str, reference: NumberedReference) -> None:
    assert is_numbered(written)
    assert parse_numbered(written) == reference


@pytest.mark.parametrize(
    "written",
    [
        "#", "#0", "#00", "#43:", "#43:0", "#43:5-", "#43:-5", "#43:7-5", "#43:5 - 7", "#43:5-7-9", "#43:5:6", "#+43",
        "#-43", "# 43", "#43 ", "a b#43", "a:b#43", "#43#", "#٤٣", "#4３", "#43:٥", "cydonia://", "cydonia://cydonia",
        "cydonia://cydonia#", "cydonia:/cydonia#43", "https://a#43", "a/b#43", "##43", "#43\n", "\u00a0#43", "#x", "#²",
    ],
)  # fmt: skip
def test_what_does_not_fit_the_grammar_is_refused(written: str) -> None:
    with pytest.raises(InvalidReference):
        parse_numbered(written)


@pytest.mark.parametrize("written", ["#DEV-12", "cydonia#DEV-12", "cydonia://cydonia#dev2-1"])
def test_a_card_is_named_as_one(written: str) -> None:
    with pytest.raises(NotASession, match="card"):
        parse_numbered(written)


@pytest.mark.parametrize("written", ["#12#setup", "cydonia#12#Set up", "cydonia://cydonia#12#setup"])
def test_a_heading_is_named_as_one(written: str) -> None:
    with pytest.raises(NotASession, match="heading"):
        parse_numbered(written)


@pytest.mark.parametrize(
    ("written", "reference"),
    [
        ("43", NumberedReference(43)),
        ("43:5-7", NumberedReference(43, turns=Turns(5, 7))),
        ("9999999", NumberedReference(9_999_999)),
        ("12345678", None),
        ("43-5", None),
        ("４３", None),
        ("", None),
        ("43:", None),
    ],
)
def test_a_bare_number_has_one_to_seven_digits(written: str, reference: NumberedReference | None) -> None:
    assert parse_bare_number(written) == reference


@pytest.mark.parametrize("written", ["0", "000", "43:0", "43:7-5"])
def test_a_bare_number_that_counts_wrongly_is_refused(written: str) -> None:
    with pytest.raises(BadCall):
        parse_bare_number(written)


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ("0198f3c2-11:5", ("0198f3c2-11", Turns(5, 5))),
        ("0198f3c2", ("0198f3c2", None)),
        ("s0123456789ab:2-3", ("s0123456789ab", Turns(2, 3))),
        ("a:b:5", None),
        ("Fix the parser", None),
        ("0198f3c2:0", None),
        ("0198f3c2:x", None),
    ],
)
def test_an_id_is_split_at_its_last_colon(written: str, parts: tuple[str, Turns | None] | None) -> None:
    assert split_id(written) == parts


def test_turns_are_counted_from_one_and_forwards() -> None:
    assert parse_turns("5") == Turns(5, 5)
    assert parse_turns("5-5") == Turns(5, 5)
    assert [parse_turns(text) for text in ("0", "0-1", "2-1", "-1", "1-", "1 -2", "", "x")] == [None] * 8


def test_a_folder_with_a_space_has_no_name_in_a_reference() -> None:
    assert can_name_project("cydonia")
    assert not any(map(can_name_project, ["my project", "a#b", "a:b", "", "a\u2003b"]))


def test_a_card_without_its_hash_is_known_as_one() -> None:
    assert is_bare_card("DEV-12")
    assert not any(map(is_bare_card, ["DEV12", "DEV-", "-12", "D V-12"]))
