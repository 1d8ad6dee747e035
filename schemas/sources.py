"""The kinds of transcripts that are read."""

CYDONIA = "cydonia"
TURN_FILE = "turn-file"
CLAUDE_CODE = "claude-code"
CODEX = "codex"

AGENTS_OWN = (CLAUDE_CODE, CODEX)
"""Transcripts that an agent writes itself; of a session that Cydonia recorded too, they are twins of the record."""

SOURCES = (CYDONIA, TURN_FILE, CLAUDE_CODE, CODEX)
