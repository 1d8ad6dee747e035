"""The kinds of transcripts that are read."""

CYDONIA = "cydonia"
TURN_FILE = "turn-file"
CLAUDE_CODE = "claude-code"
CODEX = "codex"

SOURCES = (CYDONIA, TURN_FILE, CLAUDE_CODE, CODEX)
