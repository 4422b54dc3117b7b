"""Nothing may begin or go on behind the scenario's end: what a file is told then."""

from testbed.topology.checking import Checking
from testbed.topology.source_map import Path
from testbed.topology.units import DURATION
from testbed.topology.volume import SECOND_NS, nanoseconds

LONGER = "lengthen the scenario's `duration`, or let the event {} earlier"


def check_beginning(checking: Checking, path: Path, at_s: float, duration_s: float) -> bool:
    """Whether the event at this path begins before the scenario ends."""
    begin, end = nanoseconds(at_s), nanoseconds(duration_s)
    if begin < end:
        return True
    message = f"the event begins at {written(begin)}, but {ends(end, begin)}"
    checking.value((*path, "at"), message, LONGER.format("begin"))
    return False


def ends(end: int, moment: int) -> str:
    """When the scenario ends; that the end itself is too late, if that is the mistake."""
    excluded = ", the end excluded" if moment == end else ""
    return f"the scenario ends at {written(end)}{excluded}"


def written(time_ns: int) -> str:
    """A moment as it would stand in the file."""
    return DURATION.write(time_ns / SECOND_NS)
