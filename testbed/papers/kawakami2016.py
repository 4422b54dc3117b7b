"""Kawakami 2016: collecting periodic sensor data over a Skip Graph. Which cells it is made of."""

from collections.abc import Mapping, Sequence

from testbed.converged.collection import Lists
from testbed.papers.cells import Cell, Extent
from testbed.papers.waiting import WaitingLab

WAITING = "waiting"  # the experiment
SEED = 2016
NODES = (100, 200, 300, 400, 500)  # one of them is the subscriber
TRIALS, QUICK_TRIALS = 10, 3
WAITS_MS = (0, 100, 250, 500, 1000, 2000)
QUICK_WAITS_MS = (0, 500, 2000)
WAITING_TRIALS, QUICK_WAITING_TRIALS = 5, 1
SITES = {"longest_s": 10, "measured_s": 60}
QUICK_SITES = {"longest_s": 5, "measured_s": 20}  # short periods are soon learnt
# Of these there are labs on real links, too; more at once would be too much for two cores.
REAL_TRIAL, REAL_WAITS_MS = 0, (0, 250, 500, 1000, 2000)
WAITING_WEIGHT = 2_000.0  # a simulated lab takes longer than any computed overlay here


def full(trials: int | None = None) -> Extent:
    """As the paper has it."""
    waits = waiting(WAITS_MS, SITES, trials or WAITING_TRIALS)
    return _extent("full", trials or TRIALS, waits)


def quick(trials: int | None = None) -> Extent:
    """The same with few trials."""
    waits = waiting(QUICK_WAITS_MS, QUICK_SITES, trials or QUICK_WAITING_TRIALS)
    return _extent("quick", trials or QUICK_TRIALS, waits)


def real_labs(extent: Extent) -> tuple[WaitingLab, ...]:
    """What cells of the extent simulate, for namespaces."""
    return tuple(
        WaitingLab(
            seed=cell.arguments["seed"] + REAL_TRIAL,
            **{name: cell.arguments[name] for name in ("wait_ms", *SITES)},
        )
        for cell in extent.cells
        if cell.experiment == WAITING
        and cell.arguments["trial"] == REAL_TRIAL
        and cell.arguments["wait_ms"] in REAL_WAITS_MS
    )


def _extent(name: str, trials: int, waits: Sequence[Cell]) -> Extent:
    return Extent(name, trials, (*collection(NODES, trials), *waits))


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


def waiting(waits_ms: Sequence[int], sites: Mapping[str, int], trials: int) -> tuple[Cell, ...]:
    """What the paper could not measure: how long brokers on 3G links should wait for each other, simulated."""
    return tuple(
        Cell(WAITING, {"wait_ms": wait_ms, **sites, "seed": SEED, "trial": trial}, WAITING_WEIGHT)
        for wait_ms in waits_ms
        for trial in range(trials)
    )
