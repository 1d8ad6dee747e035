import os
import subprocess
import sys
from pathlib import Path

import pytest

from indexer.lock import LOCK_FILE, DataLock, Held
from schemas.errors import Unavailable


def test_the_second_one_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    lock = DataLock(tmp_path)
    with pytest.raises(Held) as refused:
        DataLock(tmp_path)
    assert refused.value.holder == {"pid": os.getpid()}
    lock.release()
    DataLock(tmp_path).release()


def test_a_holder_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    script = "import sys, pathlib, indexer.lock as l; lock = l.DataLock(pathlib.Path(sys.argv[1])); print(1); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        with pytest.raises(Held) as refused:
            DataLock(tmp_path)
        assert refused.value.holder == {"pid": process.pid}
        process.kill()
        process.wait()
    DataLock(tmp_path).release()


@pytest.mark.parametrize("content", [b"", b"garbage", b"[1]", b"\xff"])
def test_a_holder_that_did_not_write_who_it_is_is_unknown(tmp_path: Path, content: bytes) -> None:
    lock = DataLock(tmp_path)
    (tmp_path / LOCK_FILE).write_bytes(content)
    with pytest.raises(Held) as refused:
        DataLock(tmp_path)
    assert refused.value.holder == {}
    lock.release()


def test_the_data_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "some" / "data"
    DataLock(folder).release()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / LOCK_FILE).stat().st_mode & 0o777 == 0o600


def test_a_place_that_is_no_folder_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable, match="cannot be written"):
        DataLock(tmp_path / "file" / "data")
