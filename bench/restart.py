"""How soon a server answers after it was started, and how long a search without a server takes."""

import http.client
import subprocess
import time
from pathlib import Path
from typing import Any

from bench.corpus import corpus_flags, read_manifest
from bench.queries import drawn_queries, mixed
from bench.results import percentiles
from bench.serving import COMMAND, environment, get, serving, write_settings

RUNS = 7


def measure(corpus: Path, data_dir: Path, *, runs: int = RUNS) -> dict[str, Any]:
    """Starts of processes over an archive that is indexed, imports included; milliseconds, pages of files cached."""
    settings = write_settings(data_dir.with_suffix(".toml"), corpus_flags(corpus, data_dir))
    texts = [query.text for query in mixed(drawn_queries(corpus, data_dir, count=runs)) if query.mode == "text"][:runs]
    address_ms, first_search_ms, command_ms = [], [], []
    for _ in range(runs):
        started = time.perf_counter()
        with serving(settings) as server:
            address_ms.append((time.perf_counter() - started) * 1000)
            connection = server.connect()
            status, body = get(connection, "/session_search?q=the")
            if status != http.client.OK:
                raise SystemExit(f"the first search was answered with {status}: {body[:200]!r}")
            first_search_ms.append((time.perf_counter() - started) * 1000)
            connection.close()
    for text in texts:
        started = time.perf_counter()
        command = [COMMAND, "search", "--config", str(settings), "--project", "*", "--", text]
        ended = subprocess.run(command, env=environment(), capture_output=True, check=False)
        command_ms.append((time.perf_counter() - started) * 1000)
        if ended.returncode > 1:
            raise SystemExit(f"turndex search failed: {ended.stderr.decode()}")
    return {
        "turns": read_manifest(corpus).turns,
        "runs": runs,
        "serve_says_its_address_ms": percentiles(address_ms),
        "serve_answers_first_search_ms": percentiles(first_search_ms),
        "command_without_server_ms": percentiles(command_ms),
    }
