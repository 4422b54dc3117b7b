"""Banno 2013: topic pub/sub on a Skip Graph, and Scribe as its rival. Which cells it is made of."""

from collections.abc import Sequence

from testbed.papers.cells import SIZES, Cell, Extent, topics

SEED = 2013
METHODS = ("sg-tbps", "scribe")
TRIALS, QUICK_TRIALS = 30, 3  # the paper does not give its number
LOAD_WEIGHT = 1e6
# Publishers and method, and how long it takes beside others.
STOPPING = {(100, "scribe"): 4e9, (100, "sg-tbps"): 2e9, (10, "sg-tbps"): 1e9, (10, "scribe"): 5e8}
QUICK_SIZES = SIZES[:2]
QUICK_LOADS = 1
STOPPING_NODES, QUICK_STOPPING_NODES = 100_000, 1_000


def full(trials: int | None = None) -> Extent:
    """All of it."""
    count = trials or TRIALS
    return _extent("full", SIZES, count, count, STOPPING_NODES)


def quick(trials: int | None = None) -> Extent:
    """Without the largest overlays, and few trials; the load once."""
    return _extent("quick", QUICK_SIZES, trials or QUICK_TRIALS, QUICK_LOADS, QUICK_STOPPING_NODES)


def _extent(
    name: str, sizes: Sequence[int], trials: int, loads: int, stopping_nodes: int
) -> Extent:
    cells = topics(sizes, trials, SEED, METHODS) + load(loads) + stopping(stopping_nodes)
    return Extent(name, trials, cells)


def load(trials: int) -> tuple[Cell, ...]:
    """100 topics of 1 publisher and 1,000 subscribers each, publishing by a power law."""
    return tuple(
        Cell("load", {"seed": SEED, "trial": trial}, LOAD_WEIGHT) for trial in range(trials)
    )


def stopping(nodes: int) -> tuple[Cell, ...]:
    """Subscribers come and go: one run each, since it is a course over time and no mean."""
    return tuple(
        Cell(
            "stopping",
            {
                "publishers": publishers,
                "nodes": nodes,
                "seed": SEED,
                "trial": 0,
                "methods": [method],
            },
            weight,
        )
        for (publishers, method), weight in STOPPING.items()
    )
