"""Projects that the settings keep from callers are kept from them everywhere."""

import shutil
from pathlib import Path

from tests.indexer.archives import Transcripts, index, user, write_record
from tests.regressions.asking import answered


def test_status_shows_nothing_of_projects_that_callers_may_not_see(tmp_path: Path) -> None:
    transcripts = Transcripts(tmp_path)
    shown = transcripts.turn_file("kettle", user("seen by all"), b"a broken line\n")
    transcripts.turn_file("vault", user("seen by none"), b"a broken line\n", user("and no more"))
    (transcripts.turns / "vault-notes.turns.jsonl").write_bytes(b"no session line\n")
    closet = transcripts.project("closet")
    write_record(closet, "1790000000000", "seen by none")
    index(transcripts.settings())
    shutil.rmtree(closet / ".cydonia" / "sessions")
    index(transcripts.settings())

    everything = answered(transcripts.settings(), "/status")
    assert (everything["projects"], everything["sessions"], everything["turns"], everything["chunks"]) == (3, 3, 4, 4)
    assert [(source["files"], len(source["errors"])) for source in everything["sources"][:2]] == [(1, 0), (3, 3)]
    assert [source["files"] for source in everything["sources"][2:] if source["files"]] == []
    assert len(everything["sources"][0]["unavailable"]) == 1

    allowed = answered(transcripts.settings(access={"projects": ["/home/a/kettle"]}), "/status")
    assert (allowed["projects"], allowed["sessions"], allowed["turns"], allowed["chunks"]) == (1, 1, 1, 1)
    assert allowed["sources"][:2] == [
        {
            "source": "cydonia",
            "files": 0,
            "sessions": 0,
            "turns": 0,
            "bytes": 0,
            "lag_ms": 0,
            "unavailable": [],
            "skipped": {},
            "errors": [],
        },
        {
            "source": "turn-file",
            "files": 1,
            "sessions": 1,
            "turns": 1,
            "bytes": shown.stat().st_size,
            "lag_ms": 0,
            "unavailable": [],
            "skipped": {"not JSON": 1},
            "errors": [{"file": str(shown), "line": 3, "reason": "not JSON", "count": 1}],
        },
    ]
