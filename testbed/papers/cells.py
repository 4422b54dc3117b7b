"""Cells: a paper's experiments on overlays, cut into pieces that need nothing of each other.

A cell is one call of a function of `testbed.converged` or `testbed.protocol_runs`; all that chance decides follows from
its seed and trial.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.converged import PATTERNS

SIZES = (1_000, 10_000, 100_000)  # nodes


@dataclass(frozen=True, slots=True)
class Cell:
    """One piece of work."""

    experiment: str  # `testbed.papers.measuring` has them
    arguments: Mapping[str, Any]
    weight: float  # how long it takes, beside others

    def as_plain(self) -> dict[str, Any]:
        """As it is sent to whoever computes it."""
        return {"experiment": self.experiment, "arguments": dict(self.arguments)}


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of a paper."""

    name: str
    trials: int
    cells: tuple[Cell, ...]

    def heaviest_first(self) -> list[Cell]:
        """So that no core is left alone with a heavy one at the end."""
        return sorted(self.cells, key=lambda cell: -cell.weight)


def topics(
    sizes: Sequence[int], trials: int, seed: int, methods: Sequence[str]
) -> tuple[Cell, ...]:
    """Paths and messages in topics of each pattern."""
    return tuple(
        Cell(
            "topics",
            {
                "pattern": pattern,
                "nodes": nodes,
                "seed": seed,
                "trial": trial,
                "methods": list(methods),
            },
            float(nodes * sum(counts)),
        )
        for pattern, counts in PATTERNS.items()
        for nodes in sizes
        for trial in range(trials)
    )
