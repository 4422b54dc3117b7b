"""What happens in a lab, compiled from the topology and its seed."""

from testbed.scenario.compile import (
    Action,
    compile_timeline,
    expected_deliveries,
    still_missing,
)
from testbed.scenario.incidents import (
    Downtimes,
    compile_incidents,
    expected_despite,
    without_the_fallen,
)
from testbed.scenario.unfolding import Incident

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
