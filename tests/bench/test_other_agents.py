"""Archives in the formats of other agents have the texts that they are said to have, and all of them are found."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard

from bench import corpus, exactness, first_scan, latency, rescan
from bench.ballast import RAW_PER_TEXT
from bench.results import folder_bytes
from bench.transcripts import transcripts
from indexer.cost import cost_of
from indexer.pipeline import Pipeline
from indexer.sources import sources_for
from schemas.settings import Settings
from schemas.sources import CLAUDE_CODE, CODEX
from tests.indexer.archives import contents, hits, index, sessions_of, status_of

TURNS = 1_500
AGENTS = [CLAUDE_CODE, CODEX]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all four formats."""
    folder = tmp_path_factory.mktemp("agents") / "corpus"
    corpus.generate(folder, turns=4 * TURNS, formats=corpus.FORMATS)
    return folder


@pytest.fixture(scope="module")
def indexed(archive: Path) -> Settings:
    settings = corpus.corpus_settings(archive, archive.parent / "data")
    index(settings)
    return settings


def lines_of(folder: Path) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for path in sorted(folder.rglob("*.jsonl*")):
        if path.name in ("session_index.jsonl", "history.jsonl"):
            continue
        lines += read_lines(path)
    return lines


def read_lines(path: Path) -> list[dict[str, Any]]:
    raw = path.read_bytes()
    if path.suffix == ".zst":
        raw = zstandard.ZstdDecompressor().decompressobj().decompress(raw)
    return [json.loads(line) for line in raw.split(b"\n") if line]


def test_archives_of_our_own_formats_have_no_folders_of_other_agents(tmp_path: Path) -> None:
    manifest = corpus.generate(tmp_path, turns=20)
    assert set(manifest.by_source) <= set(corpus.OWN_FORMATS)
    assert set(corpus.corpus_flags(tmp_path, tmp_path / "data")["sources"]) == {"cydonia", "turn_file"}


def test_the_same_seed_makes_the_same_archive(tmp_path: Path) -> None:
    made = []
    for _ in range(2):
        made.append(corpus.generate(tmp_path / "same", turns=60, formats=AGENTS))
        (tmp_path / "same").rename(tmp_path / f"made-{len(made)}")
    assert made[0] == made[1]


def test_a_manifest_counts_sessions_and_bytes_by_source(archive: Path) -> None:
    manifest = corpus.read_manifest(archive)
    assert set(manifest.by_source) == set(corpus.FORMATS)
    assert sum(one.raw_bytes for one in manifest.by_source.values()) == manifest.raw_bytes
    helper = "agent-acompact-"
    claude = {path for path in archive.glob("claude/projects/**/*.jsonl") if not path.name.startswith(helper)}
    codex = set(archive.glob("codex/**/rollout-*"))
    later = {path for path in codex if "_" in path.name}
    assert later
    for source, paths, count in ((CLAUDE_CODE, claude, len(claude)), (CODEX, codex, len(codex) - len(later))):
        assert manifest.by_source[source].files == count
        assert manifest.by_source[source].raw_bytes == sum(path.stat().st_size for path in paths)


def test_text_is_about_a_fifth_of_what_agents_write(tmp_path: Path) -> None:
    manifest = corpus.generate(tmp_path, turns=3_000, formats=[CLAUDE_CODE])
    assert manifest.raw_bytes / manifest.text_bytes == pytest.approx(RAW_PER_TEXT, rel=0.3)


def test_claude_code_has_all_kinds_of_lines(tmp_path: Path) -> None:
    corpus.generate(tmp_path, turns=2 * TURNS, formats=[CLAUDE_CODE])
    lines = lines_of(tmp_path / "claude")
    kinds = {line["type"] for line in lines}
    assert kinds >= {"user", "assistant", "system", "attachment", "progress", "queue-operation", "ai-title", "mode"}
    assert kinds >= {"file-history-snapshot", "permission-mode", "last-prompt", "cost-state"}
    assert any("forkedFrom" in line for line in lines)
    assert any(line.get("sessionKind") == "bg" for line in lines)
    assert any(line.get("version") == "1.0.67" for line in lines)
    uuids = [line["uuid"] for line in lines if "uuid" in line]
    assert len(set(uuids)) < len(uuids)
    steered = [line for line in lines if '"queued_command"' in json.dumps(line)]
    assert steered
    projects = tmp_path / "claude" / "projects"
    assert list(projects.glob("*/*/subagents/agent-*.jsonl"))
    assert list(projects.glob("*/agent-[0-9a-f]*.jsonl"))
    assert list(projects.glob("*/sessions-index.json"))
    own = [line for path in projects.glob("*/*.jsonl") if path.stem.count("-") == 4 for line in read_lines(path)]
    assert any(line.get("isSidechain") for line in own)
    assert any(line.get("isCompactSummary") for line in lines)
    said = json.dumps(lines)
    assert all(f'"{name}"' in said for name in ("originalFile", "base64", "signature", "agent_progress"))


def test_codex_has_all_kinds_of_lines(tmp_path: Path) -> None:
    corpus.generate(tmp_path, turns=2 * TURNS, formats=[CODEX])
    lines = lines_of(tmp_path / "codex")
    kinds = {line["type"] for line in lines if "payload" in line}
    assert kinds == {"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state"} | {
        "token_usage_record"
    }
    said = json.dumps(lines)
    assert all(f'"{name}"' in said for name in ("replacement_history", "token_count", "forked_from_id", "subagent"))
    events = {line["payload"].get("type") for line in lines if line.get("type") == "event_msg"}
    assert events >= {"user_message", "item_completed", "thread_rolled_back", "exec_command_end"}
    assert any("ordinal" in line for line in lines)
    assert any(line.get("record_type") == "state" for line in lines)
    assert '"history_base"' in said
    assert list(tmp_path.glob("codex/sessions/*/*/*/*_*.jsonl"))
    assert list(tmp_path.glob("codex/sessions/*.json"))
    assert (tmp_path / "codex" / "state_5.sqlite").is_file()
    assert list(tmp_path.glob("codex/archived_sessions/*.jsonl.zst"))
    assert list(tmp_path.glob("codex/sessions/*/*/*/*.jsonl.zst"))


def test_every_session_of_every_format_is_indexed_with_all_its_text(archive: Path, indexed: Settings) -> None:
    manifest = corpus.read_manifest(archive)
    for source in corpus.FORMATS:
        stored = [session for session in sessions_of(indexed).values() if session.source == source]
        assert len(stored) == manifest.by_source[source].sessions
        assert all(session.turns for session in stored)
    text = sum(
        len(said.encode())
        for session in contents(indexed).values()
        for _, items in session.turns
        for _, item in items
        for said in (item.text, item.label, item.input, item.output, item.command)
        if said
    )
    assert text == pytest.approx(manifest.text_bytes, rel=0.05)
    assert [error for source in status_of(indexed).sources for error in source.errors] == []


def test_what_a_scan_will_cost_is_told_by_source(archive: Path, tmp_path: Path) -> None:
    """Within a factor of two for each, as texts of this archive have the share that the agents' real ones have."""
    manifest = corpus.read_manifest(archive)
    settings = corpus.corpus_settings(archive, tmp_path)
    for source in sources_for(settings):
        cost = cost_of(
            (source, one) for root in source.roots() if root.path.is_dir() for one in source.transcripts(root)
        )
        written = manifest.by_source[source.name]
        assert cost.raw_bytes == pytest.approx(written.raw_bytes, rel=0.1)
        assert 0.5 < cost.text_bytes / written.text_bytes < 2


def test_what_a_scan_took_of_the_disk_is_about_what_was_told(archive: Path, indexed: Settings, tmp_path: Path) -> None:
    settings = corpus.corpus_settings(archive, tmp_path)
    with closing(Pipeline(settings)) as pipeline:
        told = pipeline.look().cost.disk_bytes
    assert 0.5 < told / folder_bytes(archive.parent / "data") < 2


@pytest.mark.parametrize("source", corpus.FORMATS)
def test_a_word_of_a_session_is_found_in_it(source: str, indexed: Settings) -> None:
    handles = {session.session_id for session in sessions_of(indexed).values() if session.source == source}
    found = {hit.session_id for hit in hits(indexed, "the", project="*", source=source)}
    assert found
    assert found <= handles


def test_a_scan_tells_the_rates_of_each_source(tmp_path: Path) -> None:
    corpus.generate(tmp_path / "corpus", turns=40, formats=AGENTS)
    scan = first_scan.measure(tmp_path / "corpus", tmp_path / "data")
    assert set(scan["by_source"]) <= set(AGENTS)
    assert all(one["raw_mb_per_second"] > 0 for one in scan["by_source"].values())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus", "data"]


def test_texts_are_not_compared_in_part(archive: Path) -> None:
    with pytest.raises(SystemExit, match="are not compared"):
        next(transcripts(archive))


def test_searches_answer_what_a_scan_of_the_store_does(archive: Path, indexed: Settings) -> None:
    result = exactness.measure(archive, indexed.data_dir, queries=200)
    assert (result["differences"], result["examples"]) == (0, [])
    assert result["turns_compared"] > 1000


def test_the_time_of_searches_is_measured_on_what_is_drawn_from_the_store(archive: Path, indexed: Settings) -> None:
    result = latency.measure(archive, indexed.data_dir, queries=1, cold_queries=0)
    # With detail, as what is drawn may stand in a tool's output.
    assert result["full_search_ms"]["phrase"]["hits"] >= 1


def test_a_look_at_folders_without_a_change_is_measured(tmp_path: Path) -> None:
    result = rescan.measure(tmp_path, files=30, looks=2)
    assert set(result) == set(AGENTS)
    assert all(one["files"] >= 30 and one["seconds"] >= 0 for one in result.values())
