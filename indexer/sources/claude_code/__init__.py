"""Claude Code's transcripts: `<config>/projects/<folder>/<session>.jsonl`, appended to line by line.

The format is undocumented and changes without notice: what is not understood is counted and hides nothing. The order of
the file is the order of reading; branches that were rewound stay, as they hold what a user wrote.
"""

from indexer.sources.claude_code.source import ClaudeCodeSource

__all__ = ["ClaudeCodeSource"]
