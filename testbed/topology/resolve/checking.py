"""The context of checks across sections: the valid part of the file, the places in it, and the list of problems."""

import pathlib
from dataclasses import dataclass

from testbed.topology.diagnostics.problems import ProblemList
from testbed.topology.diagnostics.source_map import Path
from testbed.topology.parse.shape import Shaped
from testbed.topology.parse.yaml_reader import Document
from testbed.topology.schema.sections import TopologyFile


@dataclass(frozen=True, slots=True)
class Checking:
    """One file while it is checked."""

    document: Document
    shaped: Shaped
    problems: ProblemList
    folder: pathlib.Path  # base of relative paths in the file

    @property
    def file(self) -> TopologyFile:
        """The valid part of the file."""
        return self.shaped.file

    @property
    def counts(self) -> dict[str, int | None]:
        """The number of nodes of each group; None if it is invalid in the file."""
        return {
            name: group.count if self.shaped.sound("groups", name, "count") else None
            for name, group in self.file.groups.items()
        }

    def value(self, path: Path, message: str, hint: str = "") -> None:
        """Report a problem with the value at this path."""
        self.problems.at(self.document.source.value(path), message, hint)

    def key(self, path: Path, message: str, hint: str = "") -> None:
        """Report a problem with the key at this path, or with a part that is missing there."""
        self.problems.at(self.document.source.key(path), message, hint)

    def written(self, *path: str) -> tuple[str, ...]:
        """The names in a section of the file, valid or not: none of them is reported as missing."""
        section = self.document.data
        for step in path:
            section = section.get(step) if isinstance(section, dict) else None
        return tuple(section) if isinstance(section, dict) else ()
