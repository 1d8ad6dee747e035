from typing import Any

import pytest

from indexer.sources.values import iso_as_ms


@pytest.mark.parametrize(
    ("value", "at_ms"),
    [
        ("2026-11-30T10:00:00Z", 1_796_032_800_000),
        ("2026-11-30T11:00:00.250+01:00", 1_796_032_800_250),
        ("1969-12-31T23:59:59Z", None),
        ("soon", None),
        ("", None),
        (1_796_032_800, None),
        (None, None),
    ],
)
def test_a_time_is_taken_where_it_is_one(value: Any, at_ms: int | None) -> None:
    assert iso_as_ms(value) == at_ms
