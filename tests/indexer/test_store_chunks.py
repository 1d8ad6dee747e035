from hypothesis import given
from hypothesis import strategies as st

from indexer.store.chunks import CLOSED_BYTES, compress, merged, pack, row_of, texts_of, unpack
from schemas.items import Item, Kind, Layer, Status

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
MAYBE = st.none() | TEXTS
MAYBE_DETAIL = st.none() | TEXTS.filter(bool)
TIMES = st.none() | st.integers(0, 2**45)

ITEMS = st.one_of(
    st.builds(Item, st.sampled_from([Kind.USER, Kind.AGENT, Kind.THINKING, Kind.NOTICE]), text=TEXTS, at_ms=TIMES),
    st.builds(
        Item,
        st.just(Kind.TOOL),
        label=MAYBE,
        status=st.sampled_from(Status),
        input=MAYBE_DETAIL,
        output=MAYBE_DETAIL,
        at_ms=TIMES,
    ),
    st.builds(Item, st.just(Kind.PROCESS), command=MAYBE, output=MAYBE, at_ms=TIMES),
)


@given(st.lists(ITEMS, max_size=20))
def test_items_come_back_from_the_rows_of_both_layers(items: list[Item]) -> None:
    rows = {
        layer: [row for index, item in enumerate(items) if (row := row_of(index, item, layer)) is not None]
        for layer in Layer
    }
    packed = {layer: [compress(one.json) for one in pack(rows[layer])] for layer in Layer}
    back = {layer: [row for body in packed[layer] for row in unpack(body)] for layer in Layer}
    assert merged(back[Layer.CONVERSATION], back[Layer.DETAIL]) == list(enumerate(items))


@given(st.lists(ITEMS, max_size=20))
def test_every_text_of_an_item_is_looked_through_in_the_layer_that_it_belongs_to(items: list[Item]) -> None:
    for item in items:
        looked_through = {
            layer: list(texts_of(row, layer)) if (row := row_of(0, item, layer)) is not None else [] for layer in Layer
        }
        talk = {Kind.USER: item.text, Kind.AGENT: item.text, Kind.NOTICE: item.text, Kind.TOOL: item.label}
        detail = [item.text] if item.kind is Kind.THINKING else [item.command, item.input, item.output]
        assert [text for text in looked_through[Layer.CONVERSATION] if text] == [
            text for text in [talk.get(item.kind)] if text
        ]
        assert [text for text in looked_through[Layer.DETAIL] if text] == [text for text in detail if text]


@given(st.lists(st.integers(0, 3 * CLOSED_BYTES), max_size=12))
def test_a_chunk_is_closed_by_the_item_with_which_it_reaches_its_size(sizes: list[int]) -> None:
    rows = [[index, "user", "x" * size, None] for index, size in enumerate(sizes)]
    packed = pack(rows)
    assert [row for one in packed for row in unpack(compress(one.json))] == rows
    assert [one.first for one in packed[1:]] == [one.last + 1 for one in packed[:-1]]
    for one in packed[:-1]:
        *earlier, _ = unpack(compress(one.json))
        assert len(one.json) >= CLOSED_BYTES
        assert sum(len(row[2]) for row in earlier) < CLOSED_BYTES
