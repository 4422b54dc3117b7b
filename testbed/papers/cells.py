"""Cells: a paper's experiments on overlays, cut into pieces that need nothing of each other.

A cell is one call of a function of `testbed.converged` or `testbed.papers.stopping`; all that chance decides follows
from its seed and trial.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.converged import (
    PATTERNS,
    measure_collection,
    measure_levelling,
    measure_load,
    measure_mixed,
    measure_tables,
    measure_topics,
)
from testbed.papers.stopping import measure_stopping

SIZES = (1_000, 10_000, 100_000)  # nodes


@dataclass(frozen=True, slots=True)
class Cell:
    """One piece of work."""

    experiment: str  # `testbed.papers.cells` has them
    arguments: Mapping[str, Any]
    weight: float  # how long it takes, beside others

    def as_plain(self) -> dict[str, Any]:
        """As it is sent to the process that computes it."""
        return {"experiment": self.experiment, "arguments": dict(self.arguments)}


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of a paper."""

    name: str
    trials: int
    cells: tuple[Cell, ...]

    def heaviest_first(self) -> list[Cell]:
        """The heaviest cells first, so that the last ones take little time."""
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


# The computation of a cell: the only function that a worker calls, on this machine or on another.


Rows = Iterator[tuple[str, dict[str, Any]]]  # each with the name of its table


def measure(cell: Mapping[str, Any]) -> Rows:
    """The rows of a cell (`testbed.papers.cells.Cell.as_plain`)."""
    return EXPERIMENTS[cell["experiment"]](**cell["arguments"])


def _topics(**arguments: Any) -> Rows:
    for row in measure_topics(**arguments):
        yield "topics", row


def _tables(**arguments: Any) -> Rows:
    for row in measure_tables(**arguments):
        yield "tables", row


def _mixed(**arguments: Any) -> Rows:
    for row in measure_mixed(**arguments):
        yield "mixed", row


def _load(**arguments: Any) -> Rows:
    groups, totals = measure_load(**arguments)
    for row in groups:
        yield "load", row
    for row in totals:
        yield "load_totals", row


def _stopping(**arguments: Any) -> Rows:
    moments, totals = measure_stopping(**arguments)
    for row in moments:
        yield "stopping", row
    for row in totals:
        yield "stopping_totals", row


def _collection(**arguments: Any) -> Rows:
    for row in measure_collection(**arguments):
        yield "collection", row


def _waiting(**arguments: Any) -> Rows:
    # Nodes with links need more packages than the workers of other cells have.
    from testbed.papers.waiting import measure_waiting

    readings, total = measure_waiting(**arguments)
    for row in readings:
        yield "waiting_readings", row
    yield "waiting", total


def _levelling(**arguments: Any) -> Rows:
    found = measure_levelling(**arguments)
    for name, rows in (
        ("levelling", found.totals),
        ("levelling_nodes", found.nodes),
        ("levelling_histogram", found.histogram),
        ("levelling_moments", found.moments),
    ):
        for row in rows:
            yield name, row


def _levelling_reading(**arguments: Any) -> Rows:
    for row in measure_levelling(**arguments).totals:
        yield "levelling", row


EXPERIMENTS: Mapping[str, Callable[..., Rows]] = {
    "topics": _topics,
    "tables": _tables,
    "mixed": _mixed,
    "load": _load,
    "stopping": _stopping,
    "levelling": _levelling,
    "levelling_reading": _levelling_reading,
    "collection": _collection,
    "waiting": _waiting,
}
