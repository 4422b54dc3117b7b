"""Other people's programs, as far as a lab has any: only then the container engine's client is loaded."""

from contextlib import suppress

from testbed.backends.common.base import ExternalState
from testbed.errors import InputError, TestbedError
from testbed.places import LabPlace
from testbed.records import LabRecord, read_manifest
from testbed.topology.model import NodeKind, Topology, from_json


def external_states(place: LabPlace, topology: Topology) -> dict[str, ExternalState]:
    """How each external node fares."""
    if not topology.of_kind(NodeKind.EXTERNAL):
        return {}
    from testbed.backends.docker import external_nodes

    return external_nodes.external_states(place, topology)


def stopped_external_nodes(place: LabPlace, topology: Topology) -> list[str]:
    """Sentences on external nodes whose programs do not run; none where the engine does not tell."""
    states: dict[str, ExternalState] = {}
    with suppress(TestbedError):
        states = external_states(place, topology)
    return [
        f"the program of {name} does not run: {state.status_text}"
        for name, state in states.items()
        if not state.running
    ]


def save_outputs(record: LabRecord) -> None:
    """Bring the logs of a lab's external nodes up to date, as far as it still has any."""
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
