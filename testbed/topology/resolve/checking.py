"""What every check across sections needs: the sound part of the file, the places in it, and where to put problems."""

import pathlib
from dataclasses import dataclass

from testbed.topology.diagnostics.problems import ProblemList
from testbed.topology.diagnostics.source_map import Path
from testbed.topology.parse.shape import Shaped
from testbed.topology.parse.yaml_reader import Document
from testbed.topology.schema.sections import TopologyFile


@dataclass(frozen=True, slots=True)
class Checking:
    """One file in the middle of being checked."""

    document: Document
    shaped: Shaped
    problems: ProblemList
    folder: pathlib.Path  # where the paths in the file begin

    @property
    def file(self) -> TopologyFile:
        """The sound part of the file."""
        return self.shaped.file

    @property
    def counts(self) -> dict[str, int | None]:
        """How many nodes each group has; None if that is wrong in the file, and so not known."""
        return {
            name: group.count if self.shaped.sound("groups", name, "count") else None
            for name, group in self.file.groups.items()
        }

    def value(self, path: Path, message: str, hint: str = "") -> None:
        """The value at this path is wrong."""
        self.problems.at(self.document.source.value(path), message, hint)

    def key(self, path: Path, message: str, hint: str = "") -> None:
        """The key at this path is wrong, or what belongs to it is missing."""
        self.problems.at(self.document.source.key(path), message, hint)

    def written(self, *path: str) -> tuple[str, ...]:
        """The names that a section of the file mentions, sound or not: nobody is told that those do not exist."""
        section = self.document.data
        for step in path:
            section = section.get(step) if isinstance(section, dict) else None
        return tuple(section) if isinstance(section, dict) else ()
