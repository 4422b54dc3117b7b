"""What a lab is doing, asked from its nodes."""

from dataclasses import dataclass

from testbed.control import ControlError, request
from testbed.places import LabPlace
from testbed.records import LabRecord, read_manifest
from testbed.topology.model import Node, from_json


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """One node as it answered; state `silent` if it did not."""

    name: str
    kind: str
    address: str
    link: str
    state: str
    ready: bool = False
    published: int = 0
    received: int = 0
    queued: int = 0
    playing: int = 0
    peers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabStatus:
    """A lab and its nodes."""

    name: str
    run: str
    run_folder: str
    backend: str
    emulator: str | None
    state: str  # up, starting, partly (some nodes do not answer), dead (none does)
    nodes: tuple[NodeStatus, ...]


def lab_status(record: LabRecord) -> LabStatus:
    """Ask every node."""
    manifest = read_manifest(record.run_place)
    place = LabPlace.of(record.name)
    nodes = tuple(node_status(place, node) for node in from_json(manifest["topology"]).nodes)
    ready = sum(node.ready for node in nodes)
    silent = sum(node.state == "silent" for node in nodes)
    if silent == len(nodes):
        state = "dead"
    elif ready == len(nodes):
        state = "up"
    else:
        state = "partly" if silent else "starting"
    emulator = manifest.get("emulator") or {}
    return LabStatus(
        record.name,
        record.run,
        record.run_folder,
        record.backend,
        emulator.get("name"),
        state,
        nodes,
    )


def node_status(place: LabPlace, node: Node) -> NodeStatus:
    """Ask one node."""
    try:
        answer = request(place.node_control(node.name), {"do": "status"})
    except ControlError:
        return NodeStatus(node.name, node.kind, node.address, node.profile, "silent")
    return NodeStatus(
        node.name,
        node.kind,
        node.address,
        node.profile,
        answer["state"],
        answer["ready"],
        answer["published"],
        answer["received"],
        answer["queued"],
        answer["playing"],
        tuple(answer["peers"]),
    )
