"""What has to be done: desired against actual, as ordered steps with reasons. Pure; nothing here does anything."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import groupby

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
    """One thing to do, to one target, and why."""

    kind: StepKind
    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class Actual:
    """What exists of a lab right now."""

    prepared: bool = False
    created: frozenset[str] = frozenset()  # nodes with a process or container
    wired: frozenset[str] = frozenset()  # nodes whose access link exists
    shaped: frozenset[str] = frozenset()
    captured: frozenset[str] = frozenset()
    started: frozenset[str] = frozenset()  # nodes past their gate
    fingerprints: Mapping[str, str] = field(default_factory=dict)  # node -> what it was made from


def fingerprint(topology: Topology, node: Node) -> str:
    """What a node is made from: if this changes, the node is made anew."""
    made_from = {
        "node": asdict(node),
        "profile": asdict(topology.profile(node.profile)),
        "overlay": asdict(topology.overlay),
        "delivery": asdict(topology.delivery),
        "emulator": topology.emulator,
        "capture": asdict(topology.capture),
        "seed": topology.seed,
        "brokers": [asdict(broker) for broker in topology.of_kind(NodeKind.BROKER)],
    }
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:16]


def plan_up(topology: Topology, actual: Actual) -> tuple[Step, ...]:
    """Steps that turn what exists into what the topology asks for; none if it is so already."""
    desired = {node.name: node for node in topology.nodes}
    changed = {
        name
        for name, was in actual.fingerprints.items()
        if name in desired and was != fingerprint(topology, desired[name])
    }
    surplus = actual.created - desired.keys()
    gone = changed | surplus

    def missing(present: frozenset[str]) -> Iterator[tuple[str, bool]]:
        for name in desired:
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
        steps.extend(
            Step(kind, name, "made anew" if anew else lacking) for name, anew in missing(present)
        )
    return tuple(steps)


def batches(steps: tuple[Step, ...]) -> Iterator[tuple[StepKind, tuple[Step, ...]]]:
    """Neighbouring steps of one kind, to be done together."""
    for kind, group in groupby(steps, key=lambda step: step.kind):
        yield kind, tuple(group)
