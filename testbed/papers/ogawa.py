"""Ogawa, Nakamura, Saito: a Publish/Subscribe map over Z-order keys, levelled by load. Which cells it is made of."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from testbed.converged.zorder_areas import Give
from testbed.converged.zorder_levelling import EOf, Movers
from testbed.converged.zorder_space import EventsAt
from testbed.papers.cells import Cell, Extent

SEED = 2010
TRIALS, QUICK_TRIALS = 30, 3  # the text tells of one
NODES = ROUNDS = 1_000
# What the text leaves open, one at a time beside what we take (the defaults of `Workload` and `Rule`).
READINGS: Mapping[str, Sequence[Any]] = {
    "k": (2, 3, 10, 20),  # this it gives: 5
    "movers": (Movers.ALL.value,),
    "events_per_sensor": (1, 10, 25, 100),
    "scale": (0.1, 0.15, 0.3),
    "side": (0.05, 0.1, 0.4),
    "events_at": (EventsAt.SENSOR.value,),
}
E = {EOf.MEAN: (0.0, 0.25, 0.75, 0.9), EOf.LOAD: (10.0, 25.0, 50.0, 100.0, 200.0)}


def full(trials: int | None = None) -> Extent:
    """All of it."""
    return _extent("full", trials or TRIALS)


def quick(trials: int | None = None) -> Extent:
    """The same with few trials."""
    return _extent("quick", trials or QUICK_TRIALS)


def _extent(name: str, trials: int) -> Extent:
    asked = [("levelling", {"give": give.value}) for give in Give]
    asked += [("levelling_reading", reading) for reading in readings()]
    cells = tuple(
        Cell(experiment, _arguments(trial, reading), float(reading.get("k", 5)))
        for experiment, reading in asked
        for trial in range(trials)
    )
    return Extent(name, trials, cells)


def readings() -> Iterator[dict[str, Any]]:
    """Each in what it differs from ours."""
    for name, values in READINGS.items():
        for value in values:
            yield {name: value}
    for e_of, values in E.items():
        for e in values:
            yield {"e": e, "e_of": e_of.value}


def _arguments(trial: int, reading: Mapping[str, Any]) -> dict[str, Any]:
    return {"seed": SEED, "trial": trial, "nodes": NODES, "rounds": ROUNDS, **reading}
