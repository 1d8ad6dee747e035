"""Archives are what they are said to be, and the same for the same seed."""

import re
from pathlib import Path

import pytest

from bench import corpus
from bench.texts import Mix
from bench.transcripts import texts_of, transcripts

TURNS = 400


def made(folder: Path, *, seed: int = 1, mix: Mix = "whole") -> tuple[corpus.Manifest, list[str]]:
    manifest = corpus.generate(folder, turns=TURNS, seed=seed, mix=mix)
    return manifest, [
        text for session in transcripts(folder) for turn in session.turns for item in turn for text in texts_of(item)
    ]


def test_the_same_seed_makes_the_same_archive_and_another_one_another(tmp_path: Path) -> None:
    one, _ = made(tmp_path / "one")
    same, _ = made(tmp_path / "same")
    other, _ = made(tmp_path / "other", seed=2)
    assert one.items == same.items
    assert one.text_bytes == same.text_bytes
    assert one.text_bytes != other.text_bytes


def test_a_manifest_counts_what_was_written(tmp_path: Path) -> None:
    manifest, texts = made(tmp_path)
    sessions = list(transcripts(tmp_path))
    assert manifest.turns == sum(len(session.turns) for session in sessions) == TURNS
    assert manifest.sessions == len(sessions)
    assert manifest.items == sum(len(turn) for session in sessions for turn in session.turns)
    assert manifest.text_bytes == sum(len(text.encode()) for text in texts)
    assert corpus.read_manifest(tmp_path) == manifest


@pytest.mark.parametrize(
    "pattern",
    [
        r"\b[0-9a-f]{40}\b",
        r"\b[0-9a-f]{8}-[0-9a-f]{4}-",
        r"^[A-Za-z0-9+/]{76}$",
        "[一-鿿]",
        "[가-힣]",
        "[ぁ-ヿ]",
        "[🌀-🫿]",
    ],
)
def test_the_whole_mix_has_what_the_plain_one_has_not(pattern: str, tmp_path: Path) -> None:
    wanted = re.compile(pattern, re.MULTILINE)
    _, whole = made(tmp_path / "whole")
    _, plain = made(tmp_path / "plain", mix="plain")
    assert any(map(wanted.search, whole))
    assert not any(map(wanted.search, plain))
