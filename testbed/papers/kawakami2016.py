"""Kawakami 2016: collecting periodic sensor data over a Skip Graph. Which cells it is made of."""

from collections.abc import Sequence

from testbed.converged.collecting_trees import Lists
from testbed.papers.cells import Cell, Extent

SEED = 2016
NODES = (100, 200, 300, 400, 500)  # one of them is the subscriber
TRIALS, QUICK_TRIALS = 10, 3


def full(trials: int | None = None) -> Extent:
    """As the paper has it."""
    return _extent("full", trials or TRIALS)


def quick(trials: int | None = None) -> Extent:
    """The same with few trials."""
    return _extent("quick", trials or QUICK_TRIALS)


def _extent(name: str, trials: int) -> Extent:
    return Extent(name, trials, collection(NODES, trials))


def collection(sizes: Sequence[int], trials: int) -> tuple[Cell, ...]:
    """Load and hops of all methods, by each reading of what lists are."""
    return tuple(
        Cell(
            "collection",
            {"nodes": nodes, "seed": SEED, "trial": trial, "lists": str(lists)},
            float(nodes),
        )
        for nodes in sizes
        for trial in range(trials)
        for lists in Lists
    )
