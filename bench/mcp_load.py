"""How the MCP door bears many clients: two hundred connected ones that offer a hundred calls a second.

Calls are offered by the clock, whether or not earlier ones were answered, and a call's time runs from when it was
due: a server that falls behind cannot hide it. Half of the clients speak the current revision of the protocol, half
the older one. Threads, files and memory of the server are taken after a warm-up and at the end.
"""

import asyncio
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import httpx

from bench.corpus import RARE_WORD, corpus_flags, read_manifest
from bench.processes import memory_of
from bench.results import percentiles
from bench.serving import get, serving, write_settings
from tests.search_api.calling_mcp import JSON_HEADERS, LEGACY, modern, request, tool_request

CLIENTS = 200
CALLS_A_SECOND = 100
WARM_UP_SECONDS = 10

_MB = 1_000_000


def measure(corpus: Path, data_dir: Path, *, seconds: int = 60) -> dict[str, Any]:
    """Serve an archive that is indexed and call its tools; milliseconds, and what the server holds before and after."""
    settings = write_settings(data_dir.with_suffix(".toml"), corpus_flags(corpus, data_dir))
    with serving(settings) as server:
        server.wait_until_ready()
        status, listed = get(server.connect(), "/sessions?limit=200")
        assert status == httpx.codes.OK, listed
        calls = mixed_calls([session["reference"] for session in json.loads(listed)["sessions"]])
        return {
            "turns": read_manifest(corpus).turns,
            "clients": CLIENTS,
            "calls_per_second": CALLS_A_SECOND,
            "seconds": seconds,
            **asyncio.run(_load(f"http://{server.host}:{server.port}", server.pid, calls, seconds)),
        }


def mixed_calls(references: Sequence[str]) -> list[dict[str, Any]]:
    """What agents ask, in a fixed random order."""
    random = Random(1)
    searches: list[dict[str, Any]] = [
        *({"query": word} for word in ("parser", RARE_WORD, "arse", "src/parser/error.rs", "错误", "too many open")),
        {"query": "no such words as these", "full": True},
        {"query": "the", "since": "7d", "kind": ["user"]},
    ]
    calls = [tool_request("session_search", {**search, "project": "*"}) for search in searches for _ in range(6)]
    for rarer in ({"query": "parser error", "mode": "words"}, {"query": r"fn \w+_error", "mode": "regex"}):
        calls += [tool_request("session_search", {**rarer, "project": "*"})] * 3
    calls += [tool_request("session_read", {"session": reference}) for reference in references[:30]]
    calls += [tool_request("session_list", {"limit": 20})] * 10
    calls += [request("tools/list")] * 6
    random.shuffle(calls)
    return calls


async def _load(url: str, pid: int, calls: Sequence[Mapping[str, Any]], seconds: int) -> dict[str, Any]:
    took_ms: dict[str, list[float]] = {}
    errors: list[str] = []

    async def one(client: httpx.AsyncClient, number: int, due: float) -> None:
        call = calls[number % len(calls)]
        body, headers = modern(call) if number % 2 else (dict(call), LEGACY)
        try:
            response = await client.post("/mcp", content=json.dumps(body).encode(), headers=headers)
            result = response.json().get("result", {})
            if response.status_code != httpx.codes.OK or not result or result.get("isError"):
                errors.append(response.text[:300])
        except httpx.HTTPError as error:
            errors.append(repr(error))
        took_ms.setdefault("warm-up" if due < measured_from else _name(call), []).append(
            (time.perf_counter() - due) * 1000
        )

    clients = [
        httpx.AsyncClient(base_url=url, headers=JSON_HEADERS, timeout=30, trust_env=False) for _ in range(CLIENTS)
    ]
    began = time.perf_counter()
    measured_from = began + WARM_UP_SECONDS
    before: dict[str, float] = {}
    running = set[asyncio.Task[None]]()
    for number in range((WARM_UP_SECONDS + seconds) * CALLS_A_SECOND):
        due = began + number / CALLS_A_SECOND
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        if due >= measured_from and not before:
            before = held(pid)
        task = asyncio.create_task(one(clients[number % CLIENTS], number, due))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)
    after = held(pid)
    for client in clients:
        await client.aclose()
    took_ms.pop("warm-up")
    everything = [value for values in took_ms.values() for value in values]
    return {
        "calls": len(everything),
        "errors": len(errors),
        "first_errors": errors[:3],
        "call_ms": percentiles(everything),
        "call_ms_by_kind": {kind: percentiles(values) for kind, values in sorted(took_ms.items())},
        "server_cpu_ms_per_call": round((after["cpu_seconds"] - before["cpu_seconds"]) * 1000 / len(everything), 2),
        "server_before": before,
        "server_after": after,
    }


def _name(call: Mapping[str, Any]) -> str:
    params = call.get("params", {})
    return " ".join([params.get("name", call["method"]), params.get("arguments", {}).get("mode", "")]).strip()


def held(pid: int) -> dict[str, float]:
    """What a process holds (Linux): threads, files and connections, memory of its own in MB, seconds of CPU it had."""
    times = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return {
        "threads": len(os.listdir(f"/proc/{pid}/task")),
        "files": len(os.listdir(f"/proc/{pid}/fd")),
        "memory_mb": memory_of(pid)["anonymous"] // _MB,
        "cpu_seconds": sum(map(int, times[11:13])) / os.sysconf("SC_CLK_TCK"),
    }
