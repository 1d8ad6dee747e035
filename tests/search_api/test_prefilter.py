"""What the look at a chunk's bytes rejects can hold no match."""

from hypothesis import example, given
from hypothesis import strategies as st

from indexer.store.chunks import pack, texts_of
from schemas.folding import fold
from schemas.items import Kind, Layer
from search_api.prefilter import Prefilter

CHARS = 'aksAKS"\\\n\t/u00é\u212a\u017fß错🎉 '
TEXTS = st.text(st.sampled_from(CHARS), min_size=1, max_size=30)


@given(text=TEXTS, start=st.integers(0, 29), length=st.integers(1, 6), other=TEXTS)
@example(text="\u212aelvin", start=0, length=3, other="x")
@example(text='say "no"', start=3, length=4, other="x")
@example(text="C:\\Temp", start=1, length=3, other="x")
def test_a_chunk_with_a_text_is_never_rejected(text: str, start: int, length: int, other: str) -> None:
    (packed,) = pack([[0, Kind.USER, text, 1]])
    needle = fold(text)[start : start + length]
    if needle:
        assert Prefilter([needle]).may_hold(packed.json)
    if Prefilter([fold(other)]).may_hold(packed.json):
        return
    assert all(fold(other) not in fold(one) for one in texts_of([0, Kind.USER, text, 1], Layer.CONVERSATION))


def test_most_chunks_without_a_text_are_rejected() -> None:
    (packed,) = pack([[0, Kind.USER, "the span is off", 1]])
    assert not Prefilter(["parser"]).may_hold(packed.json)
    assert not Prefilter(["⚠ 错"]).may_hold(packed.json)
    assert not Prefilter(["span", "parser"]).may_hold(packed.json)
