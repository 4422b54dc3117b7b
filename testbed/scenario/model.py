"""What a scenario consists of when it is played: publications and incidents, each at its time.

A scenario's speed divides its times; links, nodes and `settle` keep theirs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from testbed.topology.model import ActionKind


def played_ns(at_ns: int, speed: float) -> int:
    """When that is played, in whole nanoseconds; rounded down, so that what is before the end stays before it."""
    return int(at_ns / Fraction(repr(speed)))


def scenario_ns(played: int, speed: float) -> int:
    """The time of the scenario at which that is played."""
    return int(played * Fraction(repr(speed)))


@dataclass(frozen=True, slots=True)
class Publication:
    """One publication, `at_ns` after the scenario's start."""

    at_ns: int
    node: str
    topic: str
    priority: int
    size: int
    place: tuple[int, ...] = ()  # coordinates, if it has a place


ONLY = "only"  # of a restore: what it ends, `cut` or `link`; without it, both
NUMBER = "number"  # of what goes on until it is ended


@dataclass(frozen=True, slots=True)
class TimedAction:
    """What happens to these nodes, or to their links, `at_ns` after the scenario's start."""

    at_ns: int
    kind: ActionKind
    nodes: tuple[str, ...]
    details: Mapping[str, Any] = field(default_factory=dict)
