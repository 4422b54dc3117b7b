"""Waiting until every node says that it is connected."""

import time

from testbed.control import ControlError, request
from testbed.errors import NodeFailure
from testbed.events import Emit, StageAdvanced, StageEnded, StageStarted
from testbed.places import LabPlace
from testbed.topology.model import Topology

PATIENCE_S = 60.0
STAGE = "connecting nodes"


def wait_until_ready(
    place: LabPlace, topology: Topology, emit: Emit, patience_s: float = PATIENCE_S
) -> None:
    """Ask all nodes again and again until each is ready; NodeFailure names those that never were."""
    emit(StageStarted(STAGE, len(topology.nodes)))
    waiting = [node.name for node in topology.nodes]
    deadline = time.monotonic() + patience_s
    while waiting:
        still = []
        for name in waiting:
            if is_ready(place, name):
                emit(StageAdvanced(STAGE, detail=name))
            else:
                still.append(name)
        waiting = still
        if waiting and time.monotonic() > deadline:
            raise NodeFailure(
                f"not connected after {patience_s:.0f} s: {', '.join(waiting)}",
                f"see `testbed logs {place.name} {waiting[0]}`; `testbed up` again retries",
            )
        if waiting:
            time.sleep(0.05)
    emit(StageEnded(STAGE))


def is_ready(place: LabPlace, node: str) -> bool:
    """Whether the node answers and is connected."""
    try:
        return bool(request(place.node_control(node), {"do": "status"})["ready"])
    except ControlError:
        return False
