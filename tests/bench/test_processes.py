"""What processes need is counted over all that one has started."""

import os
import subprocess
import sys

from bench.processes import PeakMemory, memory_of, with_descendants

GRANDCHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "kept = bytearray(50_000_000); print(flush=True); input()"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
input()
child.communicate(b"\\n")
"""


def test_the_memory_of_children_of_children_counts() -> None:
    command = [sys.executable, "-c", GRANDCHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        grandchild = int(process.stdout.readline())
        assert with_descendants(process.pid) == [process.pid, grandchild]
        with PeakMemory(process.pid) as memory:
            pass
        process.communicate("\n")
    assert memory.processes == 2
    assert 50_000_000 < memory.anonymous_bytes < memory.bytes


def test_a_process_that_is_gone_needs_nothing() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert memory_of(ended.pid) == {}
    assert memory_of(os.getpid())["resident"] > 0
