"""The kinds of transcripts that are read."""

CYDONIA = "cydonia"
TURN_FILE = "turn-file"

SOURCES = (CYDONIA, TURN_FILE)
