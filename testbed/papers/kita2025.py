"""Kita 2025: priorities in topic pub/sub on Skip Graphs. Which cells it is made of."""

from collections.abc import Sequence

from testbed.papers.cells import SIZES, Cell, Extent, topics

SEED = 2025
METHODS = ("sg-tbps", "psg-tbps", "fan-tbps")
SUBSCRIBERS = (10, 20, 40, 80, 160, 320, 640, 1_280)
NODES_WITH_TABLES = 10_000
TABLE_SIZE = 60
MOST_SHARING = 160  # subscribers: from there on neighbours fill a node's table
TRIALS, QUICK_TRIALS = 30, 3
QUICK_SIZES, QUICK_SUBSCRIBERS = SIZES[:2], SUBSCRIBERS[::2]


def full(trials: int | None = None) -> Extent:
    """All of it."""
    return _extent("full", SIZES, SUBSCRIBERS, trials or TRIALS)


def quick(trials: int | None = None) -> Extent:
    """Without the largest overlays, every second number of subscribers, and few trials."""
    return _extent("quick", QUICK_SIZES, QUICK_SUBSCRIBERS, trials or QUICK_TRIALS)


def _extent(name: str, sizes: Sequence[int], subscribers: Sequence[int], trials: int) -> Extent:
    cells = topics(sizes, trials, SEED, METHODS)
    shared = [count for count in subscribers if count <= MOST_SHARING]
    return Extent(name, trials, cells + tables(subscribers, trials) + mixed(shared, trials))


def tables(subscribers: Sequence[int], trials: int) -> tuple[Cell, ...]:
    """ATM- and PATM-TBPS by number of subscribers."""
    return tuple(
        Cell(
            "tables",
            {
                "subscribers": count,
                "nodes": NODES_WITH_TABLES,
                "seed": SEED,
                "trial": trial,
                "table_size": TABLE_SIZE,
            },
            float(NODES_WITH_TABLES * count),
        )
        for count in subscribers
        for trial in range(trials)
    )


def mixed(subscribers: Sequence[int], trials: int) -> tuple[Cell, ...]:
    """Urgent and routine topics that share a table: ours, not in the thesis."""
    return tuple(
        Cell(
            "mixed",
            {
                "subscribers": count,
                "nodes": NODES_WITH_TABLES,
                "seed": SEED,
                "trial": trial,
                "table_size": TABLE_SIZE,
            },
            float(NODES_WITH_TABLES * count),
        )
        for count in subscribers
        for trial in range(trials)
    )
