"""The place of each value in a file, so that every problem has a line and a column."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

Path = tuple[str | int, ...]  # keys and list indices from the top: ("nodes", "broker", "kind")

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # line breaks of YAML


@dataclass(frozen=True, slots=True)
class Place:
    """A part of one line; line and column count from 1."""

    line: int  # 0: not in a file, but in the `--set` that `file` names
    column: int
    width: int = 1
    file: str | None = None  # None: the topology file


@dataclass(frozen=True, slots=True)
class SourceMap:
    """The places of all keys and values of one file, and of sections in files of their own."""

    file: str
    lines: tuple[str, ...]
    keys: Mapping[Path, Place] = field(default_factory=dict)
    values: Mapping[Path, Place] = field(default_factory=dict)
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # file -> its lines

    def with_section(self, name: str, section: "SourceMap") -> "SourceMap":
        """Replace a section by that of another file."""

        def joined(own: Mapping[Path, Place], others: Mapping[Path, Place]) -> dict[Path, Place]:
            remaining = {path: place for path, place in own.items() if path[:1] != (name,)}
            added = {
                (name, *path): replace(place, file=section.file) for path, place in others.items()
            }
            return {**remaining, **added}

        return SourceMap(
            self.file,
            self.lines,
            joined(self.keys, section.keys),
            joined(self.values, section.values),
            {**self.others, section.file: section.lines},
        )

    def value(self, path: Path) -> Place:
        """The place of the value; for a missing one, the place of the innermost container in the file."""
        return self._nearest(path, key_first=False)

    def key(self, path: Path) -> Place:
        """The place of the value's key; a list item has none and gives its own place."""
        return self._nearest(path, key_first=True)

    def text(self, place: Place) -> str:
        """The line of this place."""
        lines = self.lines if place.file is None else self.others[place.file]
        return lines[place.line - 1] if place.line <= len(lines) else ""

    def _nearest(self, path: Path, *, key_first: bool) -> Place:
        for end in range(len(path), -1, -1):
            part = path[:end]
            # The best place for a missing value is the key of its container.
            by_key = key_first or end < len(path)
            place = self.keys.get(part) if by_key else None
            place = place or self.values.get(part)
            if place is not None:
                return place
        return Place(1, 1)


def split_lines(text: str) -> tuple[str, ...]:
    """The lines as YAML counts them."""
    return tuple(_BREAK.split(text))
