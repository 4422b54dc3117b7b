"""Other people's programs, as far as a lab has any: only then the container engine's client is loaded."""

from contextlib import suppress

from testbed.backends.common.base import GuestState
from testbed.errors import InputError, TestbedError
from testbed.places import LabPlace
from testbed.records import LabRecord, read_manifest
from testbed.topology.model import NodeKind, Topology, from_json


def guest_states(place: LabPlace, topology: Topology) -> dict[str, GuestState]:
    """How each external node fares."""
    if not topology.of_kind(NodeKind.EXTERNAL):
        return {}
    from testbed.backends.docker import external_nodes

    return external_nodes.guest_states(place, topology)


def idle_guests(place: LabPlace, topology: Topology) -> list[str]:
    """Sentences on external nodes whose programs do not run; none where the engine does not tell."""
    states: dict[str, GuestState] = {}
    with suppress(TestbedError):
        states = guest_states(place, topology)
    return [
        f"the program of {name} does not run: {state.words}"
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
    from testbed.backends.docker.external_nodes import guests_of, save_output

    with suppress(TestbedError):
        for guest in guests_of(LabPlace.of(record.name)):
            save_output(guest, run)
