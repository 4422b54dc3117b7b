"""Other people's programs, as far as a lab has any: only then the container engine's client is loaded."""

from contextlib import suppress

from testbed.backends.base import GuestState
from testbed.errors import InputError, TestbedError
from testbed.places import LabPlace
from testbed.records import LabRecord, read_manifest
from testbed.topology.model import NodeKind, Topology, from_json


def guest_states(place: LabPlace, topology: Topology) -> dict[str, GuestState]:
    """How each external node fares."""
    if not topology.of_kind(NodeKind.EXTERNAL):
        return {}
    from testbed.backends import guests

    return guests.guest_states(place, topology)


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
    from testbed.backends.guest_output import save_output
    from testbed.backends.guests import guests_of

    with suppress(TestbedError):
        for guest in guests_of(LabPlace.of(record.name)):
            save_output(guest, run)
