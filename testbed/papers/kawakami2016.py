"""Kawakami 2016: collecting periodic sensor data over a Skip Graph. Which cells it is made of."""

from collections.abc import Sequence

from testbed.converged.collecting_trees import Lists
from testbed.papers.cells import Cell, Extent

SEED = 2016
NODES = (100, 200, 300, 400, 500)  # one of them is the subscriber
TRIALS, QUICK_TRIALS = 10, 3
WAITS_MS = (0, 100, 250, 500, 1000, 2000)
WAITING_TRIALS, QUICK_WAITING_TRIALS = 5, 1
ROUNDS, MEASURED_S = 1, 60  # sites for each period; how long readings count
WAITING_WEIGHT = 2_000.0  # a simulated lab takes longer than any computed overlay here


def full(trials: int | None = None) -> Extent:
    """As the paper has it."""
    return _extent("full", trials or TRIALS, trials or WAITING_TRIALS)


def quick(trials: int | None = None) -> Extent:
    """The same with few trials."""
    return _extent("quick", trials or QUICK_TRIALS, trials or QUICK_WAITING_TRIALS)


def _extent(name: str, trials: int, waiting_trials: int) -> Extent:
    return Extent(name, trials, (*collection(NODES, trials), *waiting(WAITS_MS, waiting_trials)))


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


def waiting(waits_ms: Sequence[int], trials: int) -> tuple[Cell, ...]:
    """What the paper could not measure: how long brokers on simulated 3G lines should wait for each other."""
    return tuple(
        Cell(
            "waiting",
            {
                "wait_ms": wait_ms,
                "rounds": ROUNDS,
                "seed": SEED,
                "trial": trial,
                "measured_s": MEASURED_S,
            },
            WAITING_WEIGHT,
        )
        for wait_ms in waits_ms
        for trial in range(trials)
    )
