"""What happens in a lab, compiled from the topology and its seed."""

from testbed.scenario.compile import (
    Downtimes,
    compile_incidents,
    compile_timeline,
    expected_deliveries,
    expected_despite,
    still_missing,
    without_the_fallen,
)
from testbed.scenario.model import Action, Incident

__all__ = [
    "Action",
    "Downtimes",
    "Incident",
    "compile_incidents",
    "compile_timeline",
    "expected_deliveries",
    "expected_despite",
    "still_missing",
    "without_the_fallen",
]
