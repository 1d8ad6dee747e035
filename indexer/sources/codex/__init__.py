"""Codex's own transcripts, "rollouts": JSON Lines below `sessions/` and `archived_sessions/` of a Codex home."""

from indexer.sources.codex.source import CodexSource, codex_home_of

__all__ = ["CodexSource", "codex_home_of"]
