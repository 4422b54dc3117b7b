"""What a lab is doing, asked from its nodes."""

from dataclasses import dataclass

from testbed.control import ControlError, request
from testbed.errors import InputError
from testbed.places import LabPlace
from testbed.records import load_lab, read_manifest
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
    run: str | None
    run_folder: str | None
    backend: str | None
    emulator: str | None
    state: str  # up, starting, partly (some nodes do not answer), dead (none does), damaged (no record of it)
    nodes: tuple[NodeStatus, ...] = ()


def lab_status(name: str) -> LabStatus:
    """Ask every node; a lab whose files are damaged is told as such, and `down` will clear it."""
    place = LabPlace.of(name)
    record = load_lab(place)
    if record is None:
        return LabStatus(name, None, None, None, None, "damaged")
    try:
        manifest = read_manifest(record.run_place)
    except InputError:
        return LabStatus(name, record.run, record.run_folder, record.backend, None, "damaged")
    nodes = tuple(node_status(place, node) for node in from_json(manifest["topology"]).nodes)
    emulator = (manifest.get("emulator") or {}).get("name")
    return LabStatus(
        name, record.run, record.run_folder, record.backend, emulator, _state(nodes), nodes
    )


def _state(nodes: tuple[NodeStatus, ...]) -> str:
    silent = sum(node.state == "silent" for node in nodes)
    if silent == len(nodes):
        return "dead"
    if all(node.ready for node in nodes):
        return "up"
    return "partly" if silent else "starting"


def node_status(place: LabPlace, node: Node) -> NodeStatus:
    """Ask one node."""
    known = (node.name, str(node.kind), node.address, node.profile)
    try:
        answer = request(place.node_control(node.name), {"do": "status"})
    except ControlError:
        return NodeStatus(*known, "silent")
    counts = {key: answer[key] for key in ("published", "received", "queued", "playing")}
    return NodeStatus(
        *known, answer["state"], answer["ready"], peers=tuple(answer["peers"]), **counts
    )
