"""Listing transcripts, whatever else lies beside them."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from indexer.sources.base import Root, Transcript


def listed(root: Root, is_transcript: Callable[[str], bool]) -> Iterator[Transcript]:
    """The regular files of a root whose names fit, in its subfolders too where it is recursive.

    Symbolic links are followed, after everything that is really there, and no file or folder is visited
    twice: a link back to a parent makes no loop, a second name of a file no second transcript.

    Raises:
        OSError: a folder could not be read; it comes after all that could be listed.
    """
    folders, links = [root.path], list[os.DirEntry[str]]()
    seen: set[tuple[int, int]] = set()
    failure: OSError | None = None
    while folders or links:
        if not folders:
            entries, links = links, []
        else:
            folder = folders.pop()
            try:
                if not _is_new(folder.stat(), seen):
                    continue
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError as error:
                # A subfolder that vanished since its parent was read holds nothing any more.
                if folder == root.path or not isinstance(error, FileNotFoundError):
                    failure = failure or error
                continue
            links += [entry for entry in entries if entry.is_symlink()]
            entries = [entry for entry in entries if not entry.is_symlink()]
        for entry in entries:
            try:
                if entry.is_dir():
                    if root.is_recursive:
                        folders.append(Path(entry.path))
                elif is_transcript(entry.name) and entry.is_file() and _is_new(found := entry.stat(), seen):
                    yield Transcript(entry.path, root, found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev)
            except OSError as error:
                if not isinstance(error, FileNotFoundError):
                    failure = failure or error
    if failure is not None:
        raise failure


def holds(folder: Path, is_transcript: Callable[[str], bool]) -> bool:
    """Whether a file whose name fits lies somewhere below a folder."""
    try:
        return next(listed(Root(folder), is_transcript), None) is not None
    except OSError:
        return False


def outermost(folders: Iterable[Path]) -> list[Path]:
    """The folders, without those that lie in another one and would be listed twice."""
    distinct = list(dict.fromkeys(folders))
    return [folder for folder in distinct if not any(parent in distinct for parent in folder.parents)]


def _is_new(found: os.stat_result, seen: set[tuple[int, int]]) -> bool:
    identity = found.st_dev, found.st_ino
    if identity in seen:
        return False
    seen.add(identity)
    return True
