"""The resolved topology: immutable, complete, with every group expanded and every unit in SI.

`testbed.topology.load` makes it from YAML; everything behind (plan, backends, scenario, manifest) sees only this.
`to_json`/`from_json` are exact inverses; the JSON form stands in each run's manifest, where `analysis` reads it.
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
    "Capture",
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


BOARDS = "boards"  # a place of nodes


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
    burst_bytes: int | None = None  # credit that tbf stores while the line is idle; None: one frame


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of access link: `up` is from the node to the core, `down` toward the node."""

    name: str
    up: Shape = Shape()
    down: Shape = Shape()
    mtu: int = 1500


@dataclass(frozen=True, slots=True)
class External:
    """Somebody else's program in a container: an image by name, or one made of Debian's packages."""

    image: str | None = None
    packages: tuple[str, ...] = ()
    command: tuple[str, ...] = ()  # empty: the image's own
    env: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()  # path inside the container, content
    port: int | None = None  # ready when it listens there; None: when it runs


@dataclass(frozen=True, slots=True)
class Method:
    """A chosen overlay or delivery method with its parameters (sorted pairs)."""

    method: str
    parameters: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """One participant with its access link to the core, or to the router that it is behind."""

    name: str
    number: int  # 1, 2, ... in file order: address, message ids and interface names follow from it
    kind: NodeKind
    profile: str  # name of the link profile
    group: str | None = None
    index: int = 0  # place within the group
    topics: tuple[str, ...] = ()  # what a subscriber wants: texts of `nodes.protocol.interests`
    at: tuple[float, float] | None = None  # latitude, longitude
    platform: str | None = None
    board: str | None = None  # `class:` in the file
    address: str = ""  # IPv4 address inside the lab
    router: str | None = None  # name of the node whose link this one shares
    external: External | None = None  # of nodes of that kind
    delivery: Method | None = None  # of a sensor's or subscriber's link, both ways; None: the lab's
    tags: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()  # brokers that a sensor or subscriber is told of, the nearest first
    place: str | None = None  # boards: `testbed deploy` takes it to one

    @property
    def on_board(self) -> bool:
        """Whether a deployment takes it to a board."""
        return self.place == BOARDS

    @property
    def interests(self) -> tuple[Interest, ...]:
        """What a subscriber wants."""
        return tuple(parse(text) for text in self.topics)

    @property
    def subscribed_topics(self) -> tuple[str, ...]:
        """The topics of which a subscriber wants something, each once."""
        return tuple(dict.fromkeys(interest.topic for interest in self.interests))

    @property
    def ours(self) -> bool:
        """Whether it runs the program of `nodes`, and so answers on a control socket."""
        return self.kind in OURS


class TriggerKind(StrEnum):
    """What an event can wait for."""

    RECEIVED = "received"
    DELAY = "delay"
    STABLE = "stable"


@dataclass(frozen=True, slots=True)
class Trigger:
    """What an event waits for; it fires once. What a kind does not need is as it is by default."""

    kind: TriggerKind
    nodes: tuple[str, ...] = ()  # who receives; none: anybody
    level: int = 1  # at least this one
    topic: str | None = None  # None: any
    count: int = 1  # received: so many messages
    percentile: float = 95.0  # delay: of those that came lately ...
    above_s: float = 0.0  # ... is longer than this
    over_s: float = 10.0  # ... and lately is so long
    quiet_s: float = 3.0  # stable: no broker's place has changed for so long
    within_s: float | None = None  # since the scenario's start; None: until its end

    def describe(self) -> str:
        """For people."""
        if self.kind is TriggerKind.STABLE:
            return f"the overlay is stable for {self.quiet_s:g} s"
        who = " or ".join(self.nodes[:3]) + (" or others" if len(self.nodes) > 3 else "")
        what = f"level {self.level}" + (f" of {self.topic}" if self.topic else "")
        if self.kind is TriggerKind.RECEIVED:
            times = "" if self.count == 1 else f", {self.count} times"
            return f"{who or 'somebody'} has received {what}{times}"
        where = f" at {who}" if who else ""
        return f"the delay of {what}{where} has p{self.percentile:g} above {self.above_s:g} s"


@dataclass(frozen=True, slots=True)
class PublishEvent:
    """Messages that the named nodes publish, from `at_s` on.

    `period_s` None: once; else `per_period` times, evenly, in each period: two numbers keep 3/s exact, which no decimal
    period is. The end (of `for_s`, of the scenario) is excluded. `probability`: each tick is published only with this
    chance (seeded).
    `{node}` and `{group}` in the topic stand for the publisher. `values`: of dimensions of the lab's space.
    With `when`, `at_s` counts from the moment at which that has come.
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


FORMER_KINDS = {"restart": "start", "heal": "restore"}  # as older runs name them


class ActionKind(StrEnum):
    """What can happen beside publications."""

    CRASH = "crash"  # the node's process is gone, without a word
    STOP = "stop"  # it is asked to end, and leaves in order
    START = "start"  # those of the nodes that are down begin again
    CUT = "cut"  # nothing passes the node's link any more
    RESTORE = "restore"  # what was cut or changed is as the file says again
    LINK = "link"  # the node's link gets other values
    FLAP = "flap"  # the node's link is cut and restored, again and again
    CHURN = "churn"  # nodes leave and come back at random moments
    PARTITION = "partition"  # nodes of one side cannot reach those of the others
    REUNITE = "reunite"  # they can again
    LOAD = "load"  # datagrams of nobody's are on the lines
    UNLOAD = "unload"  # and no more
    EXEC = "exec"  # a command is run inside the node
    MARK = "mark"  # a moment gets a name

    @property
    def of_links(self) -> bool:
        """Whether it happens to the links of nodes, not to the nodes."""
        return self in (ActionKind.CUT, ActionKind.RESTORE, ActionKind.LINK, ActionKind.FLAP)


@dataclass(frozen=True, slots=True)
class ActionEvent:
    """Something that happens to nodes or their links at `at_s`; to this share of those named (seeded).

    What lasts is undone after `for_s`; None: never. `details` are the kind's own values.
    With `when`, `at_s` counts from the moment at which that has come.
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
    """What should come of a run, as `expect:` says it (`topology.parse.expectations`); the analysis judges it."""

    quantity: str
    statistic: str | None
    relation: str
    limit: float  # seconds, a number, or a share
    share: bool = False
    levels: tuple[int, int] | None = None  # from, to; None: all
    topic: str | None = None
    node: str | None = None  # who receives: a subscriber, or a group
    origin: str | None = None  # who publishes: a sensor, or a group
    text: str = ""  # the line itself, as it is told


@dataclass(frozen=True, slots=True)
class Scenario:
    """What happens, and for how long."""

    duration_s: float = 0.0
    settle_s: float = 10.0  # at the end, wait at most this long for messages still under way
    publish: tuple[PublishEvent, ...] = ()
    actions: tuple[ActionEvent, ...] = ()
    speed: float = 1.0  # all times here but `settle_s` are divided by it when they are played
    expect: tuple[Expectation, ...] = ()
    hazard: Hazard | None = None  # from which further publications follow

    @property
    def publish_events(self) -> tuple[PublishEvent, ...]:
        """Who publishes what: the events, and for what follows from the hazard one event a topic and level."""
        return (*self.publish, *(_hazard_publish_events(self.hazard) if self.hazard else ()))

    @property
    def lasts_s(self) -> float:
        """How long it is played."""
        return self.duration_s / self.speed


@dataclass(frozen=True, slots=True)
class Capture:
    """What is kept of each packet."""

    enabled: bool = True
    snaplen: int = 65535


@dataclass(frozen=True)  # without slots, so that what is looked up by name has a place
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
    space: tuple[Dimension, ...] = ()  # in which publications have a place; none: they have none
    deadlines: tuple[
        tuple[int, float], ...
    ] = ()  # level, and seconds after which a message is late
    overrides: tuple[tuple[str, str], ...] = ()  # path, value: not as the file has it

    def place(self, name: str, values: Mapping[str, float]) -> tuple[int, ...]:
        """The coordinates of what this node publishes, with these values; none if it has no place."""
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
        """Topic -> which subscribers want what of it."""
        wanted: dict[str, list[tuple[str, Interest]]] = {}
        for node in self.of_kind(NodeKind.SUBSCRIBER):
            for interest in node.interests:
                wanted.setdefault(interest.topic, []).append((node.name, interest))
        return wanted

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
        """The nodes whose links have another method than the lab's: what a broker must know of them."""
        chosen = {node.name: node.delivery for node in self.nodes if node.kind in EDGE}
        return {name: own for name, own in chosen.items() if own not in (None, self.delivery)}

    @cached_property
    def here(self) -> tuple[Node, ...]:
        """The nodes of this machine; the others have the addresses of their boards."""
        own = ip_network(self.prefix)
        return tuple(n for n in self.nodes if not n.on_board or ip_address(n.address) in own)

    @property
    def has_boards(self) -> bool:
        """Whether some are on boards."""
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
    """Plain JSON values."""
    return asdict(topology)


def from_json(data: dict[str, Any]) -> Topology:
    """The inverse of `to_json`, also after a trip through a JSON file."""

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
                "homes": tuple(value.get("homes", ())),
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
        scenario=Scenario(
            scenario["duration_s"],
            scenario["settle_s"],
            tuple(_publish_event(value) for value in scenario["publish"]),
            tuple(
                _action_event(value)
                for value in scenario.get("actions", scenario.get("faults", ()))
            ),
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
    nodes, when = tuple(value["nodes"]), _trigger(value.get("when"))
    return PublishEvent(**{**value, "nodes": nodes, "values": values, "when": when})


def _trigger(value: dict[str, Any] | None) -> Trigger | None:
    if value is None:
        return None
    kind, nodes = TriggerKind(value["kind"]), tuple(value["nodes"])
    return Trigger(**{**value, "kind": kind, "nodes": nodes})


def _action_event(value: dict[str, Any]) -> ActionEvent:
    kind = ActionKind(FORMER_KINDS.get(value["kind"], value["kind"]))
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
