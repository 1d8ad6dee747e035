"""A format that changes is seen in the status on the day it does."""

from tests.belonging.mixed import Mixed
from tests.indexer.archives import status_of
from tests.indexer.sources.claude_code.written import user
from tests.indexer.sources.codex.rollouts import event, line, meta
from tests.indexer.sources.codex.rollouts import user as asked


def test_what_is_not_understood_is_counted_by_its_type(mixed: Mixed) -> None:
    mixed.claude.add(user("Find the zebra."), {"type": "hologram"}, {"type": "hologram"}, user("And?", scent="rose"))
    mixed.codex.write(meta(cwd=str(mixed.project)), *asked("Find it."), line("hologram", {}), event("fanfare"))
    mixed.index()
    skipped = {source.source: source.skipped for source in status_of(mixed.settings()).sources}
    assert skipped["claude-code"]["unknown type: hologram"] == 2
    assert any("scent" in reason for reason in skipped["claude-code"])
    assert any("hologram" in reason for reason in skipped["codex"])
    assert any("fanfare" in reason for reason in skipped["codex"])
    assert (skipped["cydonia"], skipped["turn-file"]) == ({}, {})
    assert len(mixed.found("find")) == 2
