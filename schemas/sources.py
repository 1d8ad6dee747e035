"""The kinds of transcripts that are read."""

CYDONIA = "cydonia"
TURN_FILE = "turn-file"
CODEX = "codex"

SOURCES = (CYDONIA, TURN_FILE, CODEX)
