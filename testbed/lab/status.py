"""The status of a lab: asks its nodes, its keeper and the container engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.backends.common.base import ExternalState
from testbed.backends.common.names import BACKENDS, has_boards, local_backend
from testbed.control import ControlError, request_all
from testbed.errors import InputError, TestbedError
from testbed.keeper.client import Keeper
from testbed.lab.external_nodes import external_states
from testbed.places import LabPlace
from testbed.records import LabRecord, load_lab, lock_file, lock_is_held, read_manifest
from testbed.topology.model import Node, Topology, from_json

# Parts of a lab that have died besides its nodes.


NO_KEEPER = "its keeper has died, and its links and captures with it"
DEAD_WORKERS = {
    "relay": "the relay has died, and the links with it",
    "capture": "the capture has died: nothing is recorded any more",
}


def problems(record: LabRecord) -> tuple[str, ...]:
    """Sentences on dead parts of the lab; none if all parts live."""
    if local_backend(record.backend) not in BACKENDS:
        return ()
    keeper = Keeper.connect(LabPlace.of(record.name))
    if keeper is None:
        return (NO_KEEPER,)
    try:
        workers = keeper.status()["workers"]
    except ControlError:  # it has died since
        return (NO_KEEPER,)
    return tuple(sentence for role, sentence in DEAD_WORKERS.items() if workers.get(role) == "dead")


def refuse_dead_lab(record: LabRecord) -> None:
    """TestbedError if a part of the lab has died, so that nothing would arrive or be captured."""
    if dead := problems(record):
        raise TestbedError(
            f"lab {record.name} is not whole: {'; '.join(dead)}",
            how_to_repair(record),
        )


def how_to_repair(record: LabRecord) -> str:
    """The command that repairs a lab."""
    if has_boards(record.backend):
        return f"`testbed deploy {record.source} --name {record.name} -i INVENTORY` repairs it"
    return f"`testbed up {record.source} --name {record.name}` repairs it"


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """One node as it answered; its state is `silent` if it did not answer."""

    name: str
    kind: str
    address: str
    link: str
    state: str
    ready: bool = False
    published: int = 0
    received: int = 0
    queued: int = 0
    under_way: int = 0  # bytes on one link, the most, that the peer has not acknowledged
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
    state: str  # up, starting, partly (some of it has died), dead (all nodes or the keeper), damaged (no record of it)
    nodes: tuple[NodeStatus, ...] = ()
    problems: tuple[str, ...] = ()  # what has died besides nodes


def lab_status(name: str) -> LabStatus:
    """Ask every node. A lab with damaged files has the state `damaged`; `down` clears it."""
    place = LabPlace.of(name)
    record = load_lab(place)
    if record is None:
        return LabStatus(name, None, None, None, None, "damaged")
    try:
        manifest = read_manifest(record.run_place)
    except InputError:
        return LabStatus(name, record.run, record.run_folder, record.backend, None, "damaged")
    topology = from_json(manifest["topology"])
    found = {**_other_statuses(place, topology), **node_statuses(place, topology.ours)}
    nodes = tuple(found[node.name] for node in topology.nodes)
    emulator = (manifest.get("emulator") or {}).get("name")
    at_work = lock_is_held(lock_file(place.folder, "changing"))
    dead = () if at_work else problems(record)
    return LabStatus(
        name,
        record.run,
        record.run_folder,
        record.backend,
        emulator,
        _state(nodes, dead, at_work),
        nodes,
        dead,
    )


def _state(nodes: tuple[NodeStatus, ...], dead: tuple[str, ...], at_work: bool) -> str:
    silent = sum(node.state == "silent" for node in nodes)
    if at_work and not all(node.ready for node in nodes):
        return "starting"
    if silent == len(nodes) or NO_KEEPER in dead:
        return "dead"
    if dead:
        return "partly"
    if all(node.ready for node in nodes):
        return "up"
    return "partly" if silent else "starting"


def _other_statuses(place: LabPlace, topology: Topology) -> dict[str, NodeStatus]:
    """Nodes without a control socket: ask the keeper for routers, and the engine for external nodes."""
    if len(topology.ours) == len(topology.nodes):
        return {}
    keeper = Keeper.connect(place)
    wired = frozenset(keeper.status()["wired"]) if keeper else frozenset()
    try:
        externals = external_states(place, topology)
    except TestbedError:
        externals = {}
    return {
        node.name: _external_status(node, externals.get(node.name))
        if node.external
        else _router_status(node, wired)
        for node in topology.nodes
        if not node.ours
    }


def _external_status(node: Node, found: ExternalState | None) -> NodeStatus:
    if found is None or not found.running:
        return NodeStatus(*_known(node), "silent")
    return NodeStatus(*_known(node), "running", ready=found.ready)


def _router_status(node: Node, wired: frozenset[str]) -> NodeStatus:
    forwards = node.name in wired
    return NodeStatus(*_known(node), "running" if forwards else "silent", ready=forwards)


def _known(node: Node) -> tuple[str, str, str, str]:
    return node.name, str(node.kind), node.address, node.profile


def node_statuses(place: LabPlace, nodes: Sequence[Node]) -> dict[str, NodeStatus]:
    """Ask these brokers, sensors and subscribers, all at once."""
    controls = {node.name: place.node_control(node.name) for node in nodes}
    answers = request_all(controls, {"do": "status"})
    return {node.name: _status_of(node, answers.get(node.name)) for node in nodes}


def _status_of(node: Node, answer: Mapping[str, Any] | None) -> NodeStatus:
    known = _known(node)
    if answer is None:
        return NodeStatus(*known, "silent")
    counts = {key: answer[key] for key in ("published", "received", "queued", "playing")}
    counts["under_way"] = answer.get("under_way", 0)
    return NodeStatus(
        *known, answer["state"], answer["ready"], peers=tuple(answer["peers"]), **counts
    )
