"""Ogawa, Nakamura, Saito: a Publish/Subscribe map over Z-order keys, levelled by load. Which cells it is made of."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from testbed.converged.zorder_areas import EventsAt, Give
from testbed.converged.zorder_levelling import EOf, Movers
from testbed.papers.cells import Cell, Extent

SEED = 2010
TRIALS, QUICK_TRIALS = 30, 10  # the text has one
QUICK_READINGS = 3  # trials of each other reading
NODES = ROUNDS = 1_000
# What the text leaves open, one at a time beside what we take (the defaults of `Workload` and `Rule`).
READINGS: Mapping[str, Sequence[Any]] = {
    "k": (2, 3, 10, 20),  # this it gives: 5
    "movers": (Movers.ALL.value,),
    "events_per_sensor": (1, 10, 20, 80),
    "scale": (0.1, 0.15, 0.3),
    "side": (0.05, 0.1, 0.4),
    "events_at": (EventsAt.SENSOR.value,),
}
E = {EOf.MEAN: (0.0, 0.25, 0.75, 0.9), EOf.LOAD: (10.0, 25.0, 50.0, 100.0, 200.0)}


def full(trials: int | None = None) -> Extent:
    """All of it."""
    count = trials or TRIALS
    return _extent("full", count, count)


def quick(trials: int | None = None) -> Extent:
    """The same with fewer trials, and few of readings other than the usual one."""
    return _extent("quick", trials or QUICK_TRIALS, min(trials or QUICK_TRIALS, QUICK_READINGS))


def _extent(name: str, trials: int, of_readings: int) -> Extent:
    usual = [
        Cell("levelling", _arguments(trial, {"give": give.value}), 1.0)
        for give in Give
        for trial in range(trials)
    ]
    others = [
        Cell("levelling_reading", _arguments(trial, reading), 1.0)
        for reading in readings()
        for trial in range(of_readings)
    ]
    return Extent(name, trials, (*usual, *others))


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
