"""Parsing and formatting a reference are inverses, and no text is anything but read or refused."""

from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import InvalidReference, NotASession
from schemas.references import (
    NumberedReference,
    Turns,
    can_name_project,
    is_bare_card,
    is_id_word,
    is_numbered,
    parse_bare_number,
    parse_numbered,
    parse_turns,
    split_id,
)

COUNTS = st.integers(1, 10**25)
TURNS = st.tuples(COUNTS, COUNTS).map(lambda pair: Turns(min(pair), max(pair)))
PROJECTS = st.text(min_size=1, max_size=20).filter(can_name_project)
REFERENCES = st.builds(NumberedReference, COUNTS, st.none() | PROJECTS, st.none() | TURNS, st.booleans())

# Mostly made of what references are made of, so that many of them nearly are some.
NEARLY_REFERENCES = st.lists(
    st.sampled_from(
        ["#", ":", "-", " ", "0", "1", "43", "7", "cydonia://", "cydonia", "DEV", "\n", "+", "٣", "s0f", "/"]
    )
    | st.characters(codec=None),
    max_size=8,
).map("".join)


@given(REFERENCES)
def test_what_is_formatted_is_parsed_back(reference: NumberedReference) -> None:
    written = str(reference)
    assert is_numbered(written)
    assert parse_numbered(written) == reference


@given(REFERENCES.map(str), st.integers(0, 3))
def test_what_is_parsed_is_formatted_back_but_for_leading_zeros(written: str, zeros: int) -> None:
    assert str(parse_numbered(written.replace("#", "#" + "0" * zeros))) == written


@given(TURNS)
def test_turns_are_parsed_back(turns: Turns) -> None:
    assert parse_turns(str(turns)) == turns


@given(NEARLY_REFERENCES)
def test_every_text_is_a_reference_or_refused(written: str) -> None:
    try:
        reference = parse_numbered(written)
    except (InvalidReference, NotASession) as refused:
        assert refused.detail
    else:
        assert parse_numbered(str(reference)) == reference


@given(NEARLY_REFERENCES)
def test_every_text_is_a_bare_number_or_none_or_refused(written: str) -> None:
    try:
        reference = parse_bare_number(written)
    except InvalidReference:
        assert written[0].isdigit()
    else:
        assert reference is None or (reference.project is None and reference.number >= 1)


@given(NEARLY_REFERENCES)
def test_every_text_is_an_id_or_none(written: str) -> None:
    parts = split_id(written)
    if parts is not None:
        key, turns = parts
        assert is_id_word(key)
        assert written == key or (turns is not None and parse_turns(written.removeprefix(f"{key}:")) == turns)
    assert not is_bare_card(written) or is_id_word(written)
