"""A look through the folders of a source: what is new or changed in them, and what is gone."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from indexer.cost import Cost, cost_of
from indexer.sources.base import Root, Source, Transcript
from indexer.store.writer import StoreWriter


@dataclass(slots=True)
class Survey:
    """What one look found."""

    changed: list[Transcript] = field(default_factory=list)
    """New, or other than when they were read last."""
    went_quiet: list[Transcript] = field(default_factory=list)
    """As when they were read last, but since the last look taken for at rest: what runs in them has ended."""
    cost: Cost = field(default_factory=Cost)
    """What reading these will cost."""
    files: int = 0
    bytes: int = 0


def survey(store: StoreWriter, source: Source, roots: Iterable[Root], since_until_ms: tuple[int, int]) -> Survey:
    """Look through some roots of a source, and note which files and which folders are gone.

    `since_until_ms` are the times of the look before and of this one.
    A file is deleted only when its folder was read and does not list it. A root that is missing, empty
    where it was not, or on another device is unavailable: what is known of it stays as it is.
    """
    known = store.files.signatures(source.name)
    found = Survey()
    for root in roots:
        listed: list[Transcript] = []
        why = None
        try:
            for transcript in source.transcripts(root):
                listed.append(transcript)
        except OSError as error:
            why = error.strerror or str(error)
        found.files += len(listed)
        found.bytes += sum(transcript.size for transcript in listed)
        changed = [one for one in listed if known.get(os.fsencode(one.file)) != one.signature]
        found.changed += changed
        if source.quiet_seconds is not None:
            since_ns, until_ns = ((at_ms - source.quiet_seconds * 1000) * 1_000_000 for at_ms in since_until_ms)
            found.went_quiet += [
                one
                for one in listed
                if since_ns < one.mtime_ns <= until_ns and known.get(os.fsencode(one.file)) == one.signature
            ]
        found.cost += cost_of((source, one) for one in changed)
        with store.transaction():
            _note_root(store, source, root, listed, why)
    return found


def _note_root(store: StoreWriter, source: Source, root: Root, listed: list[Transcript], why: str | None) -> None:
    present = {os.fsencode(transcript.file) for transcript in listed}
    missing = [path for path in store.files.of_root(source.name, root.path) if path not in present]
    device = _device(root)
    if why is None and device is None:
        why = "it is not there"
    elif why is None and missing and not listed:
        why = "it is empty where it was not"
    elif why is None and missing and store.files.device_of_root(source.name, root.path) not in (None, device):
        why = "it is on another device than before"
    if why is not None or device is None:
        if why is not None and (missing or present or root.is_named or os.path.lexists(root.path)):
            store.files.set_root_unavailable(source.name, root.path, why)
        return
    store.files.put_root(source.name, root.path, device)
    for path in missing:
        if not os.path.lexists(path):
            store.files.set_gone(source.name, path)


def _device(root: Root) -> int | None:
    try:
        return root.path.stat().st_dev
    except OSError:
        return None
