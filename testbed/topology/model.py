"""The resolved topology: immutable, complete, with every group expanded and every unit in SI.

`testbed.topology.load` makes it from YAML; everything behind (plan, backends, scenario, manifest) sees only this.
`to_json`/`from_json` are exact inverses; the JSON form stands in each run's manifest, where `analysis` reads it.
"""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from nodes.kinds import NodeKind

__all__ = [
    "PREFIX",
    "Capture",
    "Emulator",
    "Method",
    "Node",
    "NodeKind",
    "Profile",
    "Publish",
    "Scenario",
    "Shape",
    "Topology",
    "from_json",
    "to_json",
]

PREFIX = "10.77.0.0/16"  # a lab's own addresses, in namespaces of its own


class Emulator(StrEnum):
    """Who shapes the links; AUTO takes the best the machine has."""

    AUTO = "auto"
    NETEM = "netem"
    TBF = "tbf"
    RELAY = "relay"


@dataclass(frozen=True, slots=True)
class Shape:
    """One direction of a link. None: not limited."""

    rate_bps: float | None = None  # bits per second
    delay_s: float = 0.0
    jitter_s: float = 0.0  # the delay varies uniformly by +- this much, order kept
    loss: float = 0.0  # share of packets, 0..1
    queue_bytes: int | None = (
        None  # waiting room in front of the line; None: one second's worth, at least 16 packets
    )


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of access link: `up` is from the node to the core, `down` toward the node."""

    name: str
    up: Shape = Shape()
    down: Shape = Shape()
    mtu: int = 1500


@dataclass(frozen=True, slots=True)
class Node:
    """One broker, sensor or subscriber with its access link to the core."""

    name: str
    number: int  # 1, 2, ... in file order: address, message ids and interface names follow from it
    kind: NodeKind
    profile: str  # name of the link profile
    group: str | None = None
    index: int = 0  # place within the group
    topics: tuple[str, ...] = ()  # what a subscriber wants
    at: tuple[float, float] | None = None  # latitude, longitude
    platform: str | None = None
    board: str | None = None  # `class:` in the file
    address: str = ""  # IPv4 address inside the lab


@dataclass(frozen=True, slots=True)
class Method:
    """A chosen overlay or delivery method with its parameters (sorted pairs)."""

    method: str
    parameters: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Publish:
    """Messages that the named nodes publish, from `at_s` on.

    `period_s` None: once; else `per_period` times, evenly, in each period: two numbers keep 3/s exact, which no decimal
    period is. The end (of `for_s`, of the scenario) is excluded. `probability`: each tick is published only with this
    chance (seeded).
    `{node}` and `{group}` in the topic stand for the publisher.
    """

    at_s: float
    nodes: tuple[str, ...]
    topic: str
    priority: int
    size: int  # payload bytes
    period_s: float | None = None
    for_s: float | None = None  # length of the repetition; None: to the scenario's end
    count: int | None = None
    probability: float = 1.0
    spread_s: float = 0.0  # each node starts at a seeded moment within this time
    per_period: int = 1


@dataclass(frozen=True, slots=True)
class Scenario:
    """What happens, and for how long."""

    duration_s: float = 0.0
    settle_s: float = 10.0  # at the end, wait at most this long for messages still under way
    publish: tuple[Publish, ...] = ()


@dataclass(frozen=True, slots=True)
class Capture:
    """What is kept of each packet."""

    enabled: bool = True
    snaplen: int = 65535


@dataclass(frozen=True, slots=True)
class Topology:
    """A whole lab."""

    name: str
    seed: int
    profiles: tuple[Profile, ...]
    nodes: tuple[Node, ...]
    overlay: Method = Method("star")
    delivery: Method = Method("fifo")
    emulator: Emulator = Emulator.AUTO
    scenario: Scenario = Scenario()
    capture: Capture = Capture()
    prefix: str = PREFIX

    def profile(self, name: str) -> Profile:
        """The link profile of this name."""
        return next(profile for profile in self.profiles if profile.name == name)

    def node(self, name: str) -> Node:
        """The node of this name."""
        return next(node for node in self.nodes if node.name == name)

    def of_kind(self, kind: NodeKind) -> tuple[Node, ...]:
        """All nodes of a kind, in file order."""
        return tuple(node for node in self.nodes if node.kind is kind)


def to_json(topology: Topology) -> dict[str, Any]:
    """Plain JSON values."""
    return asdict(topology)


def from_json(data: dict[str, Any]) -> Topology:
    """The inverse of `to_json`, also after a trip through a JSON file."""

    def method(value: dict[str, Any]) -> Method:
        return Method(value["method"], tuple((str(k), v) for k, v in value["parameters"]))

    def node(value: dict[str, Any]) -> Node:
        at = value["at"]
        return Node(
            **{
                **value,
                "kind": NodeKind(value["kind"]),
                "topics": tuple(value["topics"]),
                "at": (at[0], at[1]) if at else None,
            }
        )

    scenario = data["scenario"]
    return Topology(
        name=data["name"],
        seed=data["seed"],
        profiles=tuple(
            Profile(p["name"], Shape(**p["up"]), Shape(**p["down"]), p["mtu"])
            for p in data["profiles"]
        ),
        nodes=tuple(node(n) for n in data["nodes"]),
        overlay=method(data["overlay"]),
        delivery=method(data["delivery"]),
        emulator=Emulator(data["emulator"]),
        scenario=Scenario(
            scenario["duration_s"],
            scenario["settle_s"],
            tuple(Publish(**{**p, "nodes": tuple(p["nodes"])}) for p in scenario["publish"]),
        ),
        capture=Capture(**data["capture"]),
        prefix=data["prefix"],
    )
