"""The plan of an `up`: the steps from the actual to the desired state, in order, with reasons. Pure."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Any

from nodes.overlay.reliability.settings import STAR
from nodes.protocol.kinds import EDGE
from testbed.topology.model import Node, NodeKind, Topology


class StepKind(StrEnum):
    """The steps, in the order in which an `up` does them."""

    REMOVE = "remove"
    PREPARE = "prepare"
    CREATE = "create"
    WIRE = "wire"
    SHAPE = "shape"
    CAPTURE = "capture"
    START = "start"


@dataclass(frozen=True, slots=True)
class Step:
    """One step for one target, and its reason."""

    kind: StepKind
    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class Actual:
    """The parts of a lab that exist now."""

    prepared: bool = False
    created: frozenset[str] = frozenset()  # nodes with a process or container
    wired: frozenset[str] = frozenset()  # nodes whose link exists
    shaped: frozenset[str] = frozenset()
    captured: frozenset[str] = frozenset()
    started: frozenset[str] = frozenset()  # nodes past their gate
    fingerprints: Mapping[str, str] = field(
        default_factory=dict
    )  # node -> fingerprint of its configuration


class Fingerprints:
    """Fingerprints of the nodes' configurations: a node whose fingerprint changes is created again.

    In a star, all nodes of ours depend on the broker: a broker that is removed with its link cannot close its
    connections, and a subscriber would wait for it forever. In an overlay of several brokers, missing heartbeats show
    a client that its broker is gone, and the client connects to another. So a sensor or subscriber depends only on its
    own list of brokers and their addresses. A broker knows all brokers: a further one, or one less, creates all brokers
    again, but only those sensors and subscribers whose own lists change.
    """

    def __init__(self, topology: Topology) -> None:
        self._profiles = {profile.name: asdict(profile) for profile in topology.profiles}
        self._routers_of = topology.routers
        self._routers = {node.name: asdict(node) for node in topology.of_kind(NodeKind.ROUTER)}
        self._links = _written(
            {
                "emulator": topology.emulator,
                "capture": asdict(topology.capture),
                "seed": topology.seed,
                **({"tcp": topology.tcp} if topology.tcp else {}),
            }
        )
        brokers = topology.of_kind(NodeKind.BROKER)
        self._addresses = {node.name: (node.name, node.number, node.address) for node in brokers}
        star = topology.overlay.method == STAR
        methods = {
            "overlay": asdict(topology.overlay),
            "delivery": asdict(topology.delivery),
            "deliveries": _deliveries(topology),
            "dimensions": len(topology.space),
        }
        whole = [self._own(node) for node in brokers] if star else [*self._addresses.values()]
        self._program = _written({**methods, "brokers": whole})
        self._edge_program = self._program if star else _written({"overlay": methods["overlay"]})

    def of(self, node: Node) -> str:
        """The fingerprint of this node."""
        program = b""
        if node.kind in EDGE:
            brokers = [self._addresses[broker] for broker in node.brokers]
            program = self._edge_program + _written({"brokers": brokers})
        elif node.ours:
            program = self._program
        return hashlib.sha256(self._links + program + _written(self._own(node))).hexdigest()[:16]

    def _own(self, node: Node) -> dict[str, Any]:
        """The node and its link; behind routers, also these and their links, which the node shares."""
        return {
            "node": asdict(node),
            "profile": self._profiles[node.profile],
            "routers": [
                (self._routers[router.name], self._profiles[router.profile])
                for router in self._routers_of(node)
            ],
        }


def _deliveries(topology: Topology) -> dict[str, Any]:
    """The delivery methods of the links of a broker's clients."""
    return {name: asdict(chosen) for name, chosen in topology.other_deliveries.items()}


def _written(made_from: Mapping[str, Any]) -> bytes:
    return json.dumps(made_from, sort_keys=True).encode()


def plan_up(topology: Topology, actual: Actual) -> tuple[Step, ...]:
    """The steps from the actual state to the topology; none if they agree."""
    desired = {node.name: node for node in topology.nodes}
    fingerprints = Fingerprints(topology)
    changed = {
        name
        for name, was in actual.fingerprints.items()
        if name in desired and was != fingerprints.of(desired[name])
    }
    obsolete = (actual.created | actual.wired | actual.fingerprints.keys()) - desired.keys()
    gone = changed | obsolete
    startable = [name for name, node in desired.items() if node.kind is not NodeKind.ROUTER]

    def missing(targets: Iterable[str], present: frozenset[str]) -> Iterator[tuple[str, bool]]:
        for name in targets:
            if name in changed:
                yield name, True
            elif name not in present:
                yield name, False

    steps = [
        Step(StepKind.REMOVE, name, "changed" if name in changed else "no longer in the topology")
        for name in sorted(gone)
    ]
    if not actual.prepared:
        steps.append(Step(StepKind.PREPARE, topology.name, "the lab has no core yet"))
    for kind, present, lacking in (
        (StepKind.CREATE, actual.created, "does not exist"),
        (StepKind.WIRE, actual.wired, "has no link"),
        (StepKind.SHAPE, actual.shaped, "link is not shaped"),
        (StepKind.CAPTURE, actual.captured, "link is not captured"),
        (StepKind.START, actual.started, "is not started"),
    ):
        targets = startable if kind is StepKind.START else desired
        steps.extend(
            Step(kind, name, "made anew" if anew else lacking)
            for name, anew in missing(targets, present)
        )
    return tuple(steps)


def batches(steps: tuple[Step, ...]) -> Iterator[tuple[StepKind, tuple[Step, ...]]]:
    """Group neighbouring steps of one kind, which are performed together."""
    for kind, group in groupby(steps, key=lambda step: step.kind):
        yield kind, tuple(group)
