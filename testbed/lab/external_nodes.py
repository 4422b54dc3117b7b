"""External nodes of a lab: their states and outputs. Only labs that have some load the container engine's client."""

from contextlib import suppress

from testbed.backends.common.base import ExternalState
from testbed.errors import InputError, TestbedError
from testbed.places import LabPlace
from testbed.records import LabRecord, read_manifest
from testbed.topology.model import NodeKind, Topology, from_json


def external_states(place: LabPlace, topology: Topology) -> dict[str, ExternalState]:
    """The state of each external node."""
    if not topology.of_kind(NodeKind.EXTERNAL):
        return {}
    from testbed.backends.docker import external_nodes

    return external_nodes.external_states(place, topology)


def stopped_external_nodes(place: LabPlace, topology: Topology) -> list[str]:
    """One sentence for each external node whose program does not run; none if the engine does not answer."""
    states: dict[str, ExternalState] = {}
    with suppress(TestbedError):
        states = external_states(place, topology)
    return [
        f"the program of {name} does not run: {state.status_text}"
        for name, state in states.items()
        if not state.running
    ]


def save_outputs(record: LabRecord) -> None:
    """Save the output of a lab's external nodes, as far as their containers still exist."""
    run = record.run_place
    try:
        topology = from_json(read_manifest(run)["topology"])
    except InputError:
        return
    if not topology.of_kind(NodeKind.EXTERNAL):
        return
    from testbed.backends.docker.external_nodes import external_containers, save_output

    with suppress(TestbedError):
        for container in external_containers(LabPlace.of(record.name)):
            save_output(container, run)
