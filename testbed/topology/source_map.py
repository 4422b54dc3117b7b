"""Where in the file each value stands, so that every problem can point at its line and column."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

Path = tuple[str | int, ...]  # keys and list places from the top: ("nodes", "broker", "kind")

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # what YAML takes as the end of a line


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of one line; line and column count from 1."""

    line: int
    column: int
    width: int = 1


@dataclass(frozen=True, slots=True)
class SourceMap:
    """The places of all keys and values of one file."""

    file: str
    lines: tuple[str, ...]
    keys: Mapping[Path, Place] = field(default_factory=dict)
    values: Mapping[Path, Place] = field(default_factory=dict)

    def value(self, path: Path) -> Place:
        """Where the value stands; for one that is not written in the file, the nearest that contains it."""
        return self._nearest(path, key_first=False)

    def key(self, path: Path) -> Place:
        """Where the key of this value stands; list items have none and give their own place."""
        return self._nearest(path, key_first=True)

    def text(self, place: Place) -> str:
        """The line that the place is on."""
        return self.lines[place.line - 1] if place.line <= len(self.lines) else ""

    def _nearest(self, path: Path, *, key_first: bool) -> Place:
        for end in range(len(path), -1, -1):
            part = path[:end]
            # A value that is not there is best shown by the key of what should contain it.
            by_key = key_first or end < len(path)
            place = self.keys.get(part) if by_key else None
            place = place or self.values.get(part)
            if place is not None:
                return place
        return Place(1, 1)


def split_lines(text: str) -> tuple[str, ...]:
    """The lines as YAML counts them."""
    return tuple(_BREAK.split(text))
