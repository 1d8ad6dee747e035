"""Every benchmark runs on a tiny archive and says what it promises to."""

import re
import shutil
from pathlib import Path

import pytest
import re2  # type: ignore[import-untyped]  # the package carries no types

from bench import (
    exactness,
    freshness,
    growing_turn,
    growth,
    latency,
    memory,
    reads,
    restart,
    throughput,
)
from bench.corpus import corpus_flags, corpus_settings, read_manifest
from bench.queries import UNSELECTIVE, drawn_queries, mixed
from bench.results import percentiles
from bench.serving import write_settings
from bench.turns import turns_in_time
from schemas.settings import load_settings
from tests.bench.conftest import TURNS, Scanned


def test_a_scan_is_measured_in_time_memory_and_disk_by_part(scanned: Scanned) -> None:
    scan = scanned.scan
    parts = sum(scan[f"{part}_per_text"] for part in ("store", "journal", "index", "vocabulary"))
    assert scan["turns"] == TURNS
    assert 0 < scan["text_mb_per_second"] < scan["raw_mb_per_second"]
    assert 0 < scan["peak_anonymous_mb"] < scan["peak_memory_mb"]
    assert parts == pytest.approx(scan["data_per_text"], rel=0.05)


def test_queries_of_a_class_are_in_the_archive_but_for_those_that_shall_not_be(scanned: Scanned) -> None:
    scan = exactness.Scan(turns_in_time(scanned.corpus, scanned.data_dir))
    drawn = drawn_queries(scanned.corpus, scanned.data_dir, count=5)
    assert len(drawn) >= 12
    for name, queries in drawn.items():
        assert len(set(queries)) == len(queries) <= 5
        for query in queries:
            if query.mode == "regex":
                re2.compile(query.text)
            elif query.mode == "text":
                assert bool(scan.find(query.text, full=True)) == (name != "fragment without match"), query
    assert set(mixed(drawn)) == {query for name, some in drawn.items() if name != UNSELECTIVE for query in some}


def test_latency_is_measured_for_every_class_warm_and_cold(scanned: Scanned) -> None:
    result = latency.measure(scanned.corpus, scanned.data_dir, queries=2, cold_queries=0)
    classes = set(drawn_queries(scanned.corpus, scanned.data_dir, count=2))
    assert set(result["search_ms"]) == set(result["full_search_ms"]) == classes
    assert all(one["p50"] > 0 for one in result["search_ms"].values())
    assert result["full_search_ms"]["frequent word"]["hits"] > 0


def test_a_cold_search_is_one_of_a_process_of_its_own(scanned: Scanned) -> None:
    query = drawn_queries(scanned.corpus, scanned.data_dir, count=1)["phrase"]
    cold = latency.cold_searches(corpus_settings(scanned.corpus, scanned.data_dir), scanned.data_dir, query)
    assert cold["p50"] > 0
    assert cold["open_p50"] > 0


def test_reads_are_measured(scanned: Scanned) -> None:
    result = reads.measure(scanned.corpus, scanned.data_dir, reads=5)
    assert result["sessions"] == read_manifest(scanned.corpus).sessions
    assert result["full_one_turn_ms"]["p50"] > 0
    assert result["longest_session_page_ms"]["p50"] > 0


def test_throughput_has_no_errors(scanned: Scanned) -> None:
    result = throughput.measure(scanned.corpus, scanned.data_dir, seconds=0.2, connections=2, queries=1)
    assert result["errors"] == 0
    assert result["searches"] > 0


def test_memory_is_told_by_part(scanned: Scanned) -> None:
    result = memory.measure(scanned.corpus, scanned.data_dir, searches=20, queries=1)
    assert result["errors"] == 0
    assert result["searches"] >= 20
    assert 0 < result["idle_mb"]["anonymous"] < result["after_searches_mb"]["peak"]


def test_restarts_are_measured_with_and_without_a_server(scanned: Scanned) -> None:
    result = restart.measure(scanned.corpus, scanned.data_dir, runs=1)
    assert result["serve_says_its_address_ms"]["p50"] < result["serve_answers_first_search_ms"]["p50"]
    assert result["command_without_server_ms"]["p50"] > 0


def test_freshness_is_measured_on_its_own_and_during_a_scan(scanned: Scanned, tmp_path: Path) -> None:
    alone = freshness.measure(tmp_path / "alone", samples=2)
    beside = freshness.measure_during_scan(tmp_path / "beside", scanned.corpus, samples=2)
    assert alone["samples"] == 2
    assert alone["fresh_ms"]["p50"] > 0
    assert beside["samples"] >= 1


def test_appending_to_a_long_turn_is_compared_with_a_short_one(tmp_path: Path) -> None:
    result = growing_turn.measure(tmp_path, short=5, long=40, samples=2)
    assert result["turn_file"]["long"]["written_bytes_mean"] > 0
    assert result["whole_record"]["long"]["read_bytes_mean"] > result["whole_record"]["short"]["read_bytes_mean"]


def test_growth_is_told_class_by_class(scanned: Scanned) -> None:
    place = (scanned.corpus, scanned.data_dir)
    result = growth.measure(place, place, queries=1, rounds=1)
    assert set(result["by_class"]) == set(drawn_queries(scanned.corpus, scanned.data_dir, count=1))
    assert result["largest_p95_ratio"] > 0


def test_a_crowd_of_queries_is_answered_as_by_a_scan(scanned: Scanned) -> None:
    result = exactness.measure(scanned.corpus, scanned.data_dir, queries=101, workers=2)
    assert result["queries"] == 101
    assert result["differences"] == 0, result["examples"]
    assert 0 < result["without_match"] < 101


def test_a_crowd_notices_a_turn_that_is_not_as_it_was_indexed(scanned: Scanned, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(scanned.corpus, changed)
    for path in changed.rglob("*.json"):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"(?<=[a-z]) (?=[a-z])", "_", text), encoding="utf-8")
    result = exactness.measure(changed, scanned.data_dir, queries=50)
    assert result["differences"] > 0
    assert any(example["missed"] for example in result["examples"])


def test_a_settings_file_says_what_the_settings_in_this_process_say(scanned: Scanned, tmp_path: Path) -> None:
    path = write_settings(tmp_path / "settings.toml", corpus_flags(scanned.corpus, scanned.data_dir))
    assert load_settings(path) == corpus_settings(scanned.corpus, scanned.data_dir)


def test_a_single_value_is_all_of_its_percentiles() -> None:
    assert percentiles([2.5]) == {"p50": 2.5, "p95": 2.5, "p99": 2.5, "max": 2.5}
