"""The problems of a topology file, reported together: each with its place, the line, a caret and a hint."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from testbed.errors import InputError
from testbed.topology.diagnostics.hints import visible
from testbed.topology.diagnostics.source_map import Place, SourceMap

MOST_SHOWN = 50  # a longer list does not help
ENOUGH = 200  # problems after which checks stop
_WINDOW = 100  # characters of a long line that are shown


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. Without a line it concerns the whole file."""

    file: str
    line: int | None
    column: int | None
    message: str
    hint: str = ""
    snippet: str = ""  # the source line
    width: int = 1  # characters that the caret underlines

    def __str__(self) -> str:
        if self.line is None or self.column is None:
            head = f"{self.file}: {self.message}"
            return f"{head}\n  hint: {self.hint}" if self.hint else head
        parts = [f"{self.file}:{self.line}:{self.column}: {self.message}"]
        shown, caret = _excerpt(self.snippet, self.column, self.width)
        margin = " " * len(str(self.line))
        parts.append(f"  {self.line} | {shown}".rstrip())
        parts.append(f"  {margin} | {caret}")
        if self.hint:
            parts.append(f"  hint: {self.hint}")
        return "\n".join(parts)


class TopologyErrors(InputError):
    """All problems of one topology, in the order of its lines; those of a scenario file after the others."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        found = tuple(problems)
        files = list(dict.fromkeys(problem.file for problem in found))
        self.problems = tuple(
            sorted(found, key=lambda p: (files.index(p.file), p.line or 0, p.column or 0))
        )
        blocks = [str(problem) for problem in self.problems[:MOST_SHOWN]]
        if (hidden := len(self.problems) - len(blocks)) > 0:
            blocks.append(f"... and {hidden} more")
        super().__init__("\n\n".join(blocks))

    def as_json(self) -> list[dict[str, Any]]:
        """The problems for `--json` and editors."""
        return [
            {
                "file": problem.file,
                "line": problem.line,
                "column": problem.column,
                "message": problem.message,
                "hint": problem.hint,
            }
            for problem in self.problems
        ]


class ProblemList:
    """Collects the problems of one file while it is checked."""

    def __init__(self, source: SourceMap) -> None:
        self.source = source
        self.found: list[Problem] = []

    def at(self, place: Place, message: str, hint: str = "") -> None:
        """Add a problem at this place; TopologyErrors after `ENOUGH` problems."""
        self.found.append(
            Problem(
                place.file or self.source.file,
                place.line or None,
                place.column or None,
                message,
                hint,
                self.source.text(place),
                place.width,
            )
        )
        if len(self.found) >= ENOUGH:
            raise TopologyErrors(self.found)

    def raise_if_any(self) -> None:
        """TopologyErrors with all problems, if there are any."""
        if self.found:
            raise TopologyErrors(self.found)


def _excerpt(line: str, column: int, width: int) -> tuple[str, str]:
    """The line, cut around the column and safe for a terminal, and the caret line below it."""
    start = max(0, column - 1 - _WINDOW // 2) if len(line) > _WINDOW else 0
    cut = line[start : start + _WINDOW]
    before = "..." if start else ""
    after = "..." if start + _WINDOW < len(line) else ""
    shown = before + "".join(visible(character) for character in cut.replace("\t", " ")) + after
    offset = column - 1 - start
    indent = len(before) + _cells(cut[:offset])
    marked = max(1, _cells(cut[offset : offset + width]))
    return shown, " " * indent + "^" * marked


def _cells(text: str) -> int:
    """Columns on a terminal: Japanese characters take two."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
