"""What happens in a lab, compiled from the topology and its seed."""

from testbed.scenario.compile import (
    Action,
    compile_timeline,
    expected_deliveries,
    expected_receivers,
    still_missing,
)

__all__ = [
    "Action",
    "compile_timeline",
    "expected_deliveries",
    "expected_receivers",
    "still_missing",
]
