"""What a new version may bring: it is counted and hides nothing."""

import pytest

from indexer.sources.claude_code import transcript as transcript_module
from tests.indexer.sources.claude_code.written import Written, agent, attachment, sidecar, system, user


def test_what_is_unknown_is_counted_by_what_it_is(written: Written) -> None:
    session = written.read(
        user("u", mood="good", haste=1),
        agent("a", mood="good", version="2.2.0"),
        agent("b", id="m2", version="2.2.0"),
        {"type": "hologram", "text": "x"},
        sidecar("hologram"),
        system("seance", content="x"),
        attachment("crystal_ball"),
        attachment("crystal_ball"),
    )
    assert session.texts == [["u", "a", "b"]]
    assert sorted(session.reasons, key=str) == [
        (1, "unknown field: haste"),
        (1, "unknown field: mood"),
        (2, "unknown version: 2.2"),
        (4, "unknown type: hologram"),
        (5, "unknown type: hologram"),
        (6, "unknown system subtype: seance"),
        (7, "unknown attachment: crystal_ball"),
    ]


@pytest.mark.parametrize("version", ["1.0.24", "2.0.14", "2.1.250", "0.2.9"])
def test_versions_that_were_seen_are_known(written: Written, version: str) -> None:
    assert written.read(user("u", version=version)).skipped == []


@pytest.mark.parametrize("version", ["2.2.0", "3.0.0", "x", "2"])
def test_other_versions_are_counted(written: Written, version: str) -> None:
    assert len(written.read(user("u", version=version)).skipped) == 1


def test_a_loud_line_of_an_unknown_kind_is_shown(written: Written) -> None:
    assert written.read(user("u"), system("seance", content="boo", level="error")).texts == [["u", "boo"]]


def test_reasons_are_short_and_few(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_module, "MAX_SKIPPED", 100)
    long = "x" * 500
    lines = [sidecar(f"type-{number}-{long}") for number in range(200)]
    others = [
        system(long),
        attachment(long),
        agent({"type": long}),
        user("", **{long: 1}),
        user("", version=f"9.{long}"),
        {"type": "system", "subtype": "informational\n"},
    ]
    session = written.read(user("u"), *others, *lines, agent("a"))
    assert session.texts == [["u", "a"]]
    assert len(session.skipped) == 100
    assert len({reason for _, reason in session.reasons}) == transcript_module.MAX_REASONS + 1
    assert {"unknown block", "unknown attachment", "unknown field", "unknown version", "unknown system subtype"} <= {
        reason.partition(":")[0] for _, reason in session.reasons
    }
    assert max(len(reason) for _, reason in session.reasons) < 120
    assert all(reason.isprintable() for _, reason in session.reasons)
