"""The JSON form of a read has what a tool was given and what it said where detail is asked for, and only there."""

from pathlib import Path

from tests.indexer.archives import Transcripts, index, user
from tests.regressions.asking import answered

TOOL = {
    "type": "tool",
    "id": "t1",
    "label": "cargo test",
    "status": "ok",
    "input": "cargo test -q",
    "output": "1 passed",
}


def test_a_tool_has_its_input_and_output_where_detail_is_asked_for(tmp_path: Path) -> None:
    transcripts = Transcripts(tmp_path)
    transcripts.turn_file("a-session", user("test it"), TOOL)
    index(transcripts.settings())
    _, tool = answered(transcripts.settings(), "/session_read", session="a-session", full="true")["items"]
    assert (tool["input"], tool["output"]) == ("cargo test -q", "1 passed")
    _, tool = answered(transcripts.settings(), "/session_read", session="a-session")["items"]
    assert not {"input", "output"} & tool.keys()
