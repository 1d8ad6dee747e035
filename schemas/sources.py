"""The kinds of transcripts that are read."""

CYDONIA = "cydonia"
TURN_FILE = "turn-file"
CLAUDE_CODE = "claude-code"

SOURCES = (CYDONIA, TURN_FILE, CLAUDE_CODE)
