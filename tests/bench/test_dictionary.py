from random import Random

from bench.dictionary import bodies_of, measure, read_samples, train
from indexer.store.chunks import compress, unpack
from schemas.items import Kind


def test_samples_have_every_kind_of_item_and_no_mark_is_left_in_their_texts() -> None:
    items = [item for turn in read_samples() for item in turn]
    assert {item.kind for item in items} == set(Kind)
    texts = [text for item in items for text in (item.text, item.input, item.output) if text is not None]
    assert not [text for text in texts if text.startswith("@ ") or "\n@ " in text]


def test_bodies_are_what_the_store_would_compress() -> None:
    turns = read_samples()[:3]
    rows = [row for body in bodies_of(turns, Random(1)) for row in unpack(compress(body))]
    said = [item.text for turn in turns for item in turn if item.kind is Kind.USER]
    assert [row[2] for row in rows if row[1] == Kind.USER] == said


def test_the_same_bodies_make_the_same_dictionary() -> None:
    bodies = bodies_of(read_samples(), Random(1))
    assert train(bodies, 8_192, 9) == train(bodies, 8_192, 9)


def test_sizes_are_measured_beside_no_dictionary() -> None:
    costs = measure(None, [8_192])["costs"]
    assert costs["8 KiB"]["held-out samples"]["ratio"] < costs["none, level 3"]["held-out samples"]["ratio"]
