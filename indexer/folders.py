"""The folders of all sources, and what a path that changed may mean for the transcripts in them."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from indexer.schedule import Unit
from indexer.sources.base import Root, Source

FOLDER_ENTRIES = 500
"""How many entries of a folder that showed up are looked at right away."""


class Folders:
    """The roots of the sources, as these name them now, and the files beside them that tell of transcripts."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self.roots: list[tuple[Source, Root]] = []
        self._state_files: set[Path] = set()

    def refresh(self) -> None:
        """Ask the sources anew."""
        self.roots = [(source, root) for source in self._sources for root in source.roots()]
        self._state_files = {file for source in self._sources for file in source.state_files()}

    def of(self, source: Source, only: Collection[Path] | None = None) -> list[Root]:
        """The roots of a source, all or those named."""
        return [root for one, root in self.roots if one is source and (only is None or root.path in only)]

    def unit_at(self, path: Path) -> Unit | None:
        """The transcript that a path is by its place and name."""
        for source, root in self.roots:
            if path.is_relative_to(root.path) and source.owns(root, path):
                return Unit(source, root, path)
        return None

    def units_of(self, paths: Collection[Path]) -> tuple[list[Unit], bool]:
        """The transcripts that may have changed where these paths did; whether it takes a look to know all."""
        units: list[Unit] = []
        needs_look = False
        for path in paths:
            is_file = os.path.isfile(path)  # unlike `Path.is_file` it does not raise where a folder may not be entered
            unit = self.unit_at(path) if is_file else None
            if unit is not None and not _is_linked(unit):
                units.append(unit)
            elif not is_file and (below := self._units_below(path)) is not None:
                units += below
            elif unit is not None or not is_file or path in self._state_files:
                needs_look = needs_look or self._concerns(path)
        return units, needs_look

    def _units_below(self, folder: Path) -> list[Unit] | None:
        """The transcripts in a folder that showed up within a root; None where it takes a look to know them.

        Agents make folders all the time, for each day or session, and a look through all others takes long.
        """
        if not os.path.isdir(folder):
            return None
        root = next((one for one in self.roots if one[1].is_recursive and one[1].path in folder.parents), None)
        if root is None or _is_linked(Unit(root[0], root[1], folder)):
            return None
        units: list[Unit] = []
        seen = 0
        for parent, folders, files in os.walk(folder):
            paths = [Path(parent, name) for name in (*folders, *files)]
            seen += len(paths)
            if seen > FOLDER_ENTRIES or any(path.is_symlink() for path in paths):
                return None
            units += (unit for path in paths[len(folders) :] if (unit := self.unit_at(path)) is not None)
        return units

    def _concerns(self, path: Path) -> bool:
        """Whether a folder, something that is gone, or a state file may change which transcripts there are."""
        return any(file.is_relative_to(path) for file in self._state_files) or any(
            root.path.is_relative_to(path)
            or (path.is_relative_to(root.path) and (root.is_recursive or source.owns(root, path)))
            for source, root in self.roots
        )


def _is_linked(unit: Unit) -> bool:
    """Whether a link leads there, so that the file may be listed by another name: a look sees each file once."""
    steps = len(unit.path.relative_to(unit.root.path).parts)
    return any(one.is_symlink() for one in (unit.path, *unit.path.parents[: steps - 1]))
