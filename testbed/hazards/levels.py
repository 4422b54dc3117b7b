"""Warning levels 1 to 5 over time, as Japan's disaster information has them since 2019.

1 early attention: be prepared; 2 advisory: look at the hazard map; 3 the elderly and others who need time evacuate;
4 all evacuate (landslide alert information); 5 emergency safety measures: it happens, or has happened already.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LOWEST, HIGHEST = 1, 5
EVACUATE = 4  # the level of sites near a failure
ELDERLY = 3  # the level of sites in its region


@dataclass(frozen=True, slots=True)
class Change:
    """This level holds from this second on."""

    at_s: float
    level: int


Course = tuple[Change, ...]  # in the order of time; the first at 0


def course(steps: Iterable[tuple[float, float]], bounds: Sequence[float], slack: float) -> Course:
    """Levels from (second, value), each at the start of its step; `bounds`: of levels 2 and above, in order.

    A level is reached at its bound and lost when the value is below it by the share `slack`: it does not flicker.
    """
    changes: list[Change] = []
    level = LOWEST
    for at_s, value in steps:
        reached = LOWEST + sum(value >= bound for bound in bounds)
        held = LOWEST + sum(value >= bound * (1.0 - slack) for bound in bounds)
        level = max(reached, min(level, held))
        if not changes or changes[-1].level != level:
            changes.append(Change(at_s, level))
    return tuple(changes) or (Change(0.0, LOWEST),)


def at_least(levels: Course, from_s: float, floor: int) -> Course:
    """The same levels, but no lower than `floor` from this second on."""
    moments = sorted({*(change.at_s for change in levels), from_s})
    return _merged(
        Change(at_s, max(level_at(levels, at_s), floor if at_s >= from_s else LOWEST))
        for at_s in moments
    )


def level_at(levels: Course, at_s: float) -> int:
    """The level at this second."""
    found = bisect_right([change.at_s for change in levels], at_s)
    return levels[max(0, found - 1)].level


def highest(levels: Course) -> int:
    """The highest level."""
    return max(change.level for change in levels)


def _merged(changes: Iterable[Change]) -> Course:
    merged: list[Change] = []
    for change in changes:
        if not merged or merged[-1].level != change.level:
            merged.append(change)
    return tuple(merged)
