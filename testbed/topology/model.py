"""The resolved topology: immutable, complete, with every group expanded and every unit in SI.

`testbed.topology.load` makes it from YAML; all later stages (plan, backends, scenario, manifest) use only this.
`to_json`/`from_json` are exact inverses; each run's manifest has the JSON form, where `analysis` reads it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from ipaddress import ip_address, ip_network
from typing import Any

from nodes.protocol.interests import Interest, parse
from nodes.protocol.kinds import EDGE, OURS, NodeKind
from nodes.protocol.space import Dimension, Space
from testbed.hazards.model import LEVELS, Hazard
from testbed.hazards.model import from_json as hazard_from_json

__all__ = [
    "PREFIX",
    "ActionEvent",
    "ActionKind",
    "Arrivals",
    "Capture",
    "CongestionControl",
    "Dimension",
    "Emulator",
    "External",
    "Method",
    "Node",
    "NodeKind",
    "Profile",
    "PublishEvent",
    "Scenario",
    "Shape",
    "Topology",
    "Trigger",
    "TriggerKind",
    "from_json",
    "to_json",
]

PREFIX = "10.77.0.0/16"  # a lab's own addresses, in namespaces of its own


BOARDS = "boards"  # value of `place`


class CongestionControl(StrEnum):
    """TCP's congestion control: how much a sender has in flight."""

    CUBIC = "cubic"  # RFC 9438
    BBR = "bbr"
    RENO = "reno"  # RFC 5681


class Emulator(StrEnum):
    """The link emulator; AUTO takes the best that the machine has."""

    AUTO = "auto"
    NETEM = "netem"
    TBF = "tbf"
    RELAY = "relay"


@dataclass(frozen=True, slots=True)
class Shape:
    """One direction of a link. None: not limited."""

    rate_bps: float | None = None  # bits per second
    delay_s: float = 0.0
    jitter_s: float = 0.0  # the delay varies uniformly by +- this much; the order is preserved
    loss: float = 0.0  # share of packets, 0..1
    queue_bytes: int | None = (
        None  # capacity of the queue; None: one second at the link's rate, at least 16 packets
    )
    burst_bytes: int | None = None  # credit that tbf stores while the link is idle; None: one frame


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of link: `up` is from the node to the core, `down` toward the node."""

    name: str
    up: Shape = Shape()
    down: Shape = Shape()
    mtu: int = 1500


@dataclass(frozen=True, slots=True)
class External:
    """The program of an external node: a container image by name, or one made of Debian packages."""

    image: str | None = None
    packages: tuple[str, ...] = ()
    command: tuple[str, ...] = ()  # empty: the image's default
    env: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()  # path inside the container, content
    port: int | None = None  # the node is ready when it listens on this port; None: when it runs


@dataclass(frozen=True, slots=True)
class Method:
    """A chosen overlay or delivery method with its parameters (sorted pairs)."""

    method: str
    parameters: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """One node with its link to the core, or to its router."""

    name: str
    number: int  # 1, 2, ... in file order: address, message ids and interface names follow from it
    kind: NodeKind
    profile: str  # name of the link profile
    group: str | None = None
    index: int = 0  # within the group
    topics: tuple[str, ...] = ()  # subscriptions, as texts of `nodes.protocol.interests`
    at: tuple[float, float] | None = None  # latitude, longitude
    platform: str | None = None
    board: str | None = None  # `class:` in the file
    address: str = ""  # IPv4 address inside the lab
    router: str | None = (
        None  # name of the node whose link this one shares, and which may have a router itself
    )
    external: External | None = None  # of external nodes
    delivery: Method | None = None  # of a sensor's or subscriber's link, both ways; None: the lab's
    tags: tuple[str, ...] = ()
    brokers: tuple[str, ...] = ()  # brokers of a sensor or subscriber, the nearest first
    place: str | None = None  # boards: `testbed deploy` installs the node on a board

    @property
    def on_board(self) -> bool:
        """Whether a deployment installs the node on a board."""
        return self.place == BOARDS

    @property
    def interests(self) -> tuple[Interest, ...]:
        """The subscriptions of a subscriber."""
        return tuple(parse(text) for text in self.topics)

    @property
    def subscribed_topics(self) -> tuple[str, ...]:
        """The topics of the subscriptions, each once."""
        return tuple(dict.fromkeys(interest.topic for interest in self.interests))

    @property
    def ours(self) -> bool:
        """Whether the node runs the program of `nodes`, and so has a control socket."""
        return self.kind in OURS


class TriggerKind(StrEnum):
    """The kind of a trigger."""

    RECEIVED = "received"
    DELAY = "delay"
    STABLE = "stable"


@dataclass(frozen=True, slots=True)
class Trigger:
    """The condition for which an event waits; it fires once. Fields of other kinds have their defaults."""

    kind: TriggerKind
    nodes: tuple[str, ...] = ()  # receivers; empty: any
    level: int = 1  # lowest level
    topic: str | None = None  # None: any
    count: int = 1  # received: number of messages
    percentile: float = 95.0  # delay: of the recent delays ...
    above_s: float = 0.0  # ... exceeds this value
    over_s: float = 10.0  # ... within this window
    quiet_s: float = 3.0  # stable: time without a change of a broker's place
    within_s: float | None = None  # deadline since the scenario's start; None: its end

    def describe(self) -> str:
        """The trigger as a text for people."""
        if self.kind is TriggerKind.STABLE:
            return f"the overlay is stable for {self.quiet_s:g} s"
        receivers = " or ".join(self.nodes[:3]) + (" or others" if len(self.nodes) > 3 else "")
        what = f"level {self.level}" + (f" of {self.topic}" if self.topic else "")
        if self.kind is TriggerKind.RECEIVED:
            times = "" if self.count == 1 else f", {self.count} times"
            return f"{receivers or 'a subscriber'} has received {what}{times}"
        where = f" at {receivers}" if receivers else ""
        return f"the delay of {what}{where} has p{self.percentile:g} above {self.above_s:g} s"


class Arrivals(StrEnum):
    """How the messages of a repeated publish event are spread over time."""

    PERIODIC = "periodic"
    POISSON = "poisson"  # exponential times between messages, seeded, of each node for itself


@dataclass(frozen=True, slots=True)
class PublishEvent:
    """Messages that the named nodes publish, from `at_s` on.

    `period_s` None: once; else `per_period` times in each period, evenly or in the mean (`arrivals`): two numbers keep
    3/s exact, which no decimal period is. The end (of `for_s`, of the scenario) is excluded. `probability`: each tick
    is published only with this chance (seeded).
    `{node}` and `{group}` in the topic stand for the publisher. `values`: of dimensions of the lab's space.
    With `when`, `at_s` counts from the moment at which the trigger fires.
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
    share: float = 1.0  # of the nodes, chosen by the seed
    values: tuple[tuple[str, float], ...] = ()
    when: Trigger | None = None
    arrivals: Arrivals = Arrivals.PERIODIC


class ActionKind(StrEnum):
    """The kind of an action; publications are no actions here."""

    CRASH = "crash"  # the node's process is killed
    STOP = "stop"  # the node is asked to end, and shuts down in order
    START = "start"  # nodes that are down are started again
    CUT = "cut"  # the node's link loses all packets
    RESTORE = "restore"  # links that were cut or changed are as in the file again
    LINK = "link"  # the node's link gets other values
    FLAP = "flap"  # the node's link is cut and restored, again and again
    CHURN = "churn"  # nodes leave and come back at random moments
    PARTITION = "partition"  # nodes of one side cannot reach those of the others
    HEAL = "heal"  # a partition ends
    LOAD = "load"  # background traffic between nodes
    UNLOAD = "unload"  # a load ends
    EXEC = "exec"  # a command is run inside the node
    MARK = "mark"  # a moment gets a name

    @property
    def of_links(self) -> bool:
        """Whether the action affects the links of nodes, not the nodes."""
        return self in (ActionKind.CUT, ActionKind.RESTORE, ActionKind.LINK, ActionKind.FLAP)


@dataclass(frozen=True, slots=True)
class ActionEvent:
    """An action on nodes or their links at `at_s`; on this share of the nodes (seeded).

    After `for_s` the action is undone; None: never. `details` are the values of its kind.
    With `when`, `at_s` counts from the moment at which the trigger fires.
    """

    at_s: float
    kind: ActionKind
    nodes: tuple[str, ...]
    share: float = 1.0
    for_s: float | None = None
    details: tuple[tuple[str, Any], ...] = ()
    when: Trigger | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expectation of a run: a line of `expect:` (`topology.parse.expectations`). The analysis checks it."""

    quantity: str
    statistic: str | None
    relation: str
    limit: float  # seconds, a number, or a share
    share: bool = False
    levels: tuple[int, int] | None = None  # from, to; None: all
    topic: str | None = None
    node: str | None = None  # receiver: a subscriber, or a group
    origin: str | None = None  # publisher: a sensor, or a group
    text: str = ""  # the line as reports show it


@dataclass(frozen=True, slots=True)
class Scenario:
    """The events of a scenario, and its duration."""

    duration_s: float = 0.0
    settle_s: float = 10.0  # longest wait after the end for messages in transit
    publish: tuple[PublishEvent, ...] = ()
    actions: tuple[ActionEvent, ...] = ()
    speed: float = 1.0  # divides all times but `settle_s` when the scenario is played
    expect: tuple[Expectation, ...] = ()
    hazard: Hazard | None = None  # from which further publications follow

    @property
    def publish_events(self) -> tuple[PublishEvent, ...]:
        """All publish events: those of the file, and one for each topic and level of the hazard."""
        return (*self.publish, *(_hazard_publish_events(self.hazard) if self.hazard else ()))

    @property
    def lasts_s(self) -> float:
        """The duration as played."""
        return self.duration_s / self.speed


@dataclass(frozen=True, slots=True)
class Capture:
    """Whether packets are captured, and how many bytes of each."""

    enabled: bool = True
    snaplen: int = 65535


@dataclass(frozen=True)  # without slots, because of the cached properties
class Topology:
    """A lab: nodes, links, methods and scenario."""

    name: str
    seed: int
    profiles: tuple[Profile, ...]
    nodes: tuple[Node, ...]
    overlay: Method = Method("star")
    delivery: Method = Method("fifo")
    emulator: Emulator = Emulator.AUTO
    tcp: CongestionControl | None = None  # None: as the machine's kernel does it
    scenario: Scenario = Scenario()
    capture: Capture = Capture()
    prefix: str = PREFIX
    space: tuple[Dimension, ...] = ()  # of the places of publications; empty: they have none
    deadlines: tuple[
        tuple[int, float], ...
    ] = ()  # level, and seconds after which a message is late
    overrides: tuple[tuple[str, str], ...] = ()  # path and value: set by `--set`, not by the file

    def place(self, name: str, values: Mapping[str, float]) -> tuple[int, ...]:
        """The coordinates of a publication of this node with these values; empty without a place."""
        at = self.node(name).at
        return Space(self.space).place(at, values) if self.space and at else ()

    def receivers(self, topic: str, priority: int, place: tuple[int, ...]) -> tuple[str, ...]:
        """The subscribers that should get a message of this topic and level from this place, in file order."""
        wanting = (
            name
            for name, interest in self.subscriptions.get(topic, ())
            if interest.accepts(priority, place)
        )
        return tuple(dict.fromkeys(wanting))

    @cached_property
    def subscriptions(self) -> dict[str, list[tuple[str, Interest]]]:
        """Topic -> subscribers and their interests."""
        found: dict[str, list[tuple[str, Interest]]] = {}
        for node in self.of_kind(NodeKind.SUBSCRIBER):
            for interest in node.interests:
                found.setdefault(interest.topic, []).append((node.name, interest))
        return found

    def routers(self, node: Node) -> tuple[Node, ...]:
        """The routers between this node and the core, the nearest to the node first."""
        return routers_of(node, self._node_by_name)

    def profile(self, name: str) -> Profile:
        """The link profile of this name."""
        return self._profile_by_name[name]

    def node(self, name: str) -> Node:
        """The node of this name."""
        return self._node_by_name[name]

    def delivery_of(self, node: Node) -> Method:
        """The delivery method of the node's own link."""
        return node.delivery or self.delivery

    @property
    def other_deliveries(self) -> dict[str, Method]:
        """The delivery methods of links that differ from the lab's, by node; brokers need them."""
        chosen = {node.name: node.delivery for node in self.nodes if node.kind in EDGE}
        return {name: own for name, own in chosen.items() if own not in (None, self.delivery)}

    @cached_property
    def here(self) -> tuple[Node, ...]:
        """The nodes of this machine; the others have the addresses of their boards."""
        own = ip_network(self.prefix)
        return tuple(n for n in self.nodes if not n.on_board or ip_address(n.address) in own)

    @property
    def has_boards(self) -> bool:
        """Whether some nodes are on boards."""
        return len(self.here) < len(self.nodes)

    @property
    def ours(self) -> tuple[Node, ...]:
        """The nodes that run our program, in file order."""
        return tuple(node for node in self.nodes if node.ours)

    def of_kind(self, kind: NodeKind) -> tuple[Node, ...]:
        """All nodes of a kind, in file order."""
        return self._nodes_by_kind[kind]

    @cached_property
    def _profile_by_name(self) -> dict[str, Profile]:
        return {profile.name: profile for profile in self.profiles}

    @cached_property
    def _node_by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def _nodes_by_kind(self) -> dict[NodeKind, tuple[Node, ...]]:
        return {kind: tuple(node for node in self.nodes if node.kind is kind) for kind in NodeKind}


def routers_of(node: Node, by_name: Mapping[str, Node]) -> tuple[Node, ...]:
    """The routers between this node and the core, the nearest to the node first; there is no cycle among them."""
    found: list[Node] = []
    while node.router is not None:
        node = by_name[node.router]
        found.append(node)
    return tuple(found)


def _hazard_publish_events(hazard: Hazard) -> Iterator[PublishEvent]:
    readings, alerts = hazard.readings, hazard.alerts
    period_s = readings.periods_s[0]
    if hazard.nodes:
        yield PublishEvent(
            0.0, hazard.nodes, readings.topic, readings.priority, readings.size, period_s
        )
    for topic, names in alerts.topics:
        for level in LEVELS if names else ():
            yield PublishEvent(0.0, names, topic, level, alerts.size)


def to_json(topology: Topology) -> dict[str, Any]:
    """The topology as plain JSON values."""
    return asdict(topology)


def from_json(data: dict[str, Any]) -> Topology:
    """The inverse of `to_json`, also for values read from a JSON file."""

    def method(value: dict[str, Any]) -> Method:
        return Method(value["method"], tuple((str(k), v) for k, v in value["parameters"]))

    def node(value: dict[str, Any]) -> Node:
        at, external, delivery = value["at"], value.get("external"), value.get("delivery")
        return Node(
            **{
                **value,
                "kind": NodeKind(value["kind"]),
                "topics": tuple(value["topics"]),
                "at": (at[0], at[1]) if at else None,
                "external": _external(external) if external else None,
                "delivery": method(delivery) if delivery else None,
                "brokers": tuple(value.get("brokers", ())),
                "tags": tuple(value.get("tags", ())),
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
        tcp=CongestionControl(data["tcp"]) if data.get("tcp") else None,
        scenario=Scenario(
            scenario["duration_s"],
            scenario["settle_s"],
            tuple(_publish_event(value) for value in scenario["publish"]),
            tuple(_action_event(value) for value in scenario.get("actions", ())),
            scenario.get("speed", 1.0),
            tuple(_expectation(value) for value in scenario.get("expect", ())),
            hazard_from_json(scenario["hazard"]) if scenario.get("hazard") else None,
        ),
        capture=Capture(**data["capture"]),
        prefix=data["prefix"],
        space=tuple(Dimension(**value) for value in data.get("space", ())),
        deadlines=tuple((int(level), float(s)) for level, s in data.get("deadlines", ())),
        overrides=tuple((path, value) for path, value in data.get("overrides", ())),
    )


def _publish_event(value: dict[str, Any]) -> PublishEvent:
    values = tuple((name, each) for name, each in value.get("values", ()))
    changed = {
        "nodes": tuple(value["nodes"]),
        "values": values,
        "when": _trigger(value.get("when")),
        "arrivals": Arrivals(value.get("arrivals", Arrivals.PERIODIC)),
    }
    return PublishEvent(**{**value, **changed})


def _trigger(value: dict[str, Any] | None) -> Trigger | None:
    if value is None:
        return None
    kind, nodes = TriggerKind(value["kind"]), tuple(value["nodes"])
    return Trigger(**{**value, "kind": kind, "nodes": nodes})


def _action_event(value: dict[str, Any]) -> ActionEvent:
    kind = ActionKind(value["kind"])
    details = tuple((name, _frozen(each)) for name, each in value.get("details", ()))
    nodes, when = tuple(value["nodes"]), _trigger(value.get("when"))
    return ActionEvent(**{**value, "kind": kind, "nodes": nodes, "details": details, "when": when})


def _frozen(value: Any) -> Any:
    return tuple(_frozen(each) for each in value) if isinstance(value, list) else value


def _expectation(value: dict[str, Any]) -> Expectation:
    levels = value["levels"]
    return Expectation(**{**value, "levels": (levels[0], levels[1]) if levels else None})


def _external(value: dict[str, Any]) -> External:
    return External(
        image=value["image"],
        packages=tuple(value["packages"]),
        command=tuple(value["command"]),
        env=tuple((name, content) for name, content in value["env"]),
        files=tuple((path, content) for path, content in value["files"]),
        port=value["port"],
    )
