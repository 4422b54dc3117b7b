"""The parts of a compiled scenario: publications and actions, each at its time.

A scenario's speed divides its times; links, nodes and `settle` keep theirs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from testbed.topology.model import ActionKind


def played_ns(at_ns: int, speed: float) -> int:
    """Convert a time of the scenario to the time at which it is played.

    The result is rounded down, so that a time before the scenario's end stays before it.
    """
    return int(at_ns / Fraction(repr(speed)))


def scenario_ns(played: int, speed: float) -> int:
    """Convert the time at which something is played to the time of the scenario."""
    return int(played * Fraction(repr(speed)))


@dataclass(frozen=True, slots=True)
class Publication:
    """One publication, `at_ns` after the scenario's start."""

    at_ns: int
    node: str
    topic: str
    priority: int
    size: int
    place: tuple[int, ...] = ()  # coordinates in the lab's space; empty without a space


ONLY = "only"  # detail of a restore: the kind that it undoes, `cut` or `link`; without it, both
NUMBER = "number"  # detail of an action that lasts, and of the action that ends it


@dataclass(frozen=True, slots=True)
class TimedAction:
    """An action on these nodes, or on their links, `at_ns` after the scenario's start."""

    at_ns: int
    kind: ActionKind
    nodes: tuple[str, ...]
    details: Mapping[str, Any] = field(default_factory=dict)
