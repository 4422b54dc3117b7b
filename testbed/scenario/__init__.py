"""The scenario of a lab, compiled from the topology and its seed: publications and actions, each at its time."""

from testbed.scenario.compile import (
    Downtimes,
    compile_actions,
    compile_timeline,
    expected_deliveries,
    expected_with_downtimes,
    unreachable_at_the_end,
    without_downtimes,
)
from testbed.scenario.model import Publication, TimedAction

__all__ = [
    "Downtimes",
    "Publication",
    "TimedAction",
    "compile_actions",
    "compile_timeline",
    "expected_deliveries",
    "expected_with_downtimes",
    "unreachable_at_the_end",
    "without_downtimes",
]
