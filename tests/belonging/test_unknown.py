"""A format that changes is seen in the status on the day it does."""

from tests.belonging.mixed import Mixed
from tests.indexer.archives import status_of
from tests.indexer.sources.claude_code.written import agent, attachment, system, user
from tests.indexer.sources.codex.rollouts import event, line, meta
from tests.indexer.sources.codex.rollouts import user as asked


def test_types_fields_and_versions_that_are_not_understood_are_counted_by_what_they_are(mixed: Mixed) -> None:
    mixed.claude.add(user("Find the zebra."), {"type": "hologram"}, {"type": "hologram"})
    mixed.claude.add(user("And?", scent="rose"), agent("Yes.", scent="rose", version="3.1.4"), system("seance"))
    mixed.claude.add(attachment("crystal_ball"), user([{"type": "scent"}]))
    header = meta(cwd=str(mixed.project), cli_version="2.7.1", scent="rose")
    mixed.codex.write(header, *asked("Find it."), line("hologram", {}), event("fanfare"), event("fanfare"))
    mixed.index()
    skipped = {source.source: source.skipped for source in status_of(mixed.settings()).sources}
    assert skipped == {
        "claude-code": {
            "unknown type: hologram": 2,
            "unknown field: scent": 2,
            "unknown version: 3.1": 1,
            "unknown system subtype: seance": 1,
            "unknown attachment: crystal_ball": 1,
            "unknown block: scent": 1,
        },
        "codex": {
            "unknown type: hologram": 1,
            "unknown type: event_msg/fanfare": 2,
            "unknown field: session_meta.scent": 1,
            "unknown version: 2.7": 1,
        },
        "cydonia": {},
        "turn-file": {},
    }
    assert len(mixed.found("find")) == 2
