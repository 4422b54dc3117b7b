"""Banno 2013: topic pub/sub on a Skip Graph, and Scribe as its rival. Which cells it is made of."""

from collections.abc import Sequence

from testbed.papers.cells import SIZES, Cell, Extent, topics

SEED = 2013
METHODS = ("sg-tbps", "scribe")
TRIALS, QUICK_TRIALS = 30, 3  # the paper does not tell how many it had
LOAD_WEIGHT = 1e6
QUICK_SIZES = SIZES[:2]
QUICK_LOADS = 1


def full(trials: int | None = None) -> Extent:
    """All that a converged overlay can tell."""
    count = trials or TRIALS
    return _extent("full", SIZES, count, count)


def quick(trials: int | None = None) -> Extent:
    """Without the largest overlays, and few trials; the load once."""
    return _extent("quick", QUICK_SIZES, trials or QUICK_TRIALS, QUICK_LOADS)


def _extent(name: str, sizes: Sequence[int], trials: int, loads: int) -> Extent:
    return Extent(name, trials, topics(sizes, trials, SEED, METHODS) + load(loads))


def load(trials: int) -> tuple[Cell, ...]:
    """100 topics of 1 publisher and 1,000 subscribers each, publishing by a power law."""
    return tuple(
        Cell("load", {"seed": SEED, "trial": trial}, LOAD_WEIGHT) for trial in range(trials)
    )
