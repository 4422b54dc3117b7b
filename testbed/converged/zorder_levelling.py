"""Levelling of load on a Publish/Subscribe map: nodes with little to do leave, and help nodes with much."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from testbed.converged.zorder_areas import Areas, Give
from testbed.converged.zorder_space import Numbers


class Movers(StrEnum):
    """Who moves, when a sample has several light and heavy nodes."""

    ONE = "one"  # the lightest, to the heaviest
    ALL = "all"  # all light ones, the lightest first, to the heavy ones in turn, the heaviest first


class EOf(StrEnum):
    """What e is measured in."""

    MEAN = "mean"  # a share of the sample's mean
    LOAD = "load"  # events x subscriptions


@dataclass(frozen=True, slots=True)
class Rule:
    """When is a node heavy or light? The text leaves open what e is, and whether several of a sample move."""

    k: int = 5  # nodes in a sample
    e: float = 0.5  # how far from the sample's mean
    e_of: str = EOf.MEAN
    give: str = Give.BOTH
    movers: str = Movers.ONE


def level(areas: Areas, rule: Rule, rounds: int, random: np.random.Generator) -> Iterator[int]:
    """Level round by round; how many nodes have moved in each."""
    for _ in range(rounds):
        sample = random.choice(len(areas.starts), rule.k, replace=False)
        yield sum(
            areas.move(light, heavy, Give(rule.give)) for light, heavy in pairs(areas, sample, rule)
        )


def pairs(areas: Areas, sample: Numbers, rule: Rule) -> list[tuple[int, int]]:
    """Of the nodes at these places: who is to move (by name), and next to whom."""
    held = np.bitwise_count(areas.held[sample]).sum(axis=1, dtype=np.int64)
    loads = areas.events[sample] * held
    mean = loads.mean()
    far = rule.e * mean if EOf(rule.e_of) is EOf.MEAN else rule.e
    order = np.argsort(loads, kind="stable")
    light = [int(areas.names[sample[n]]) for n in order if loads[n] < mean - far]
    heavy = [int(areas.names[sample[n]]) for n in order[::-1] if loads[n] > mean + far]
    if not light or not heavy:
        return []
    if Movers(rule.movers) is Movers.ONE:
        return [(light[0], heavy[0])]
    return [(each, heavy[turn % len(heavy)]) for turn, each in enumerate(light)]
