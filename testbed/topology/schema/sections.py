"""The sections of a topology file; `testbed.topology.resolve` resolves references between them.

Unknown keys are errors everywhere. The descriptions are part of the JSON Schema, so editors show them.
"""

from fractions import Fraction
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from nodes.delivery import METHODS as DELIVERY_METHODS
from nodes.overlay import METHODS as OVERLAY_METHODS
from testbed.topology import units
from testbed.topology.model import BOARDS as ON_BOARDS
from testbed.topology.model import Arrivals, CongestionControl, Emulator, NodeKind
from testbed.topology.names import MAX_LAB_NAME, MAX_NODE_NAME
from testbed.topology.schema import checks
from testbed.topology.schema.checks import Section
from testbed.topology.schema.hazard import RawHazard

MAX_NODES = 5_000
MAX_PROFILES = 1_000
PLATFORMS = ("linux/amd64", "linux/arm64", "linux/arm/v7")
PLACES = (ON_BOARDS,)
BOARDS = (
    "pi-zero",
    "pi-zero-2w",
    "pi-2",
    "pi-3",
    "pi-4",
    "pi-5",
)  # testbed.backends.docker.board_classes

# An optional key has None in its type; a key in the file nevertheless needs a value.
Rate = Annotated[float | None, checks.quantity(units.parse_rate, units.RATE)]
Share = Annotated[float | None, checks.quantity(units.parse_share, units.SHARE)]
Period = Annotated[Fraction | None, checks.quantity(units.parse_period, units.FREQUENCY)]
Duration = Annotated[float, checks.quantity(units.parse_duration, units.DURATION)]
OptionalDuration = Annotated[float | None, checks.quantity(units.parse_duration, units.DURATION)]
Size = Annotated[int, checks.quantity(units.parse_size, units.SIZE)]
OptionalSize = Annotated[int | None, checks.quantity(units.parse_size, units.SIZE)]
OptionalCount = Annotated[int | None, checks.whole(1, 1_000_000_000)]
Probability = Annotated[float, checks.probability()]
Flag = Annotated[bool, checks.flag()]
Place = Annotated[tuple[float, float] | None, checks.place()]
Places = Annotated[tuple[tuple[float, float], ...] | None, checks.places()]
LabName = Annotated[str | None, checks.name("a lab's name", MAX_LAB_NAME)]
NodeName = Annotated[str, checks.name("a node's name", MAX_NODE_NAME)]
ProfileName = Annotated[str, checks.label("a profile's name")]
Link = Annotated[str | None, checks.label("a profile's name")]
Board = Annotated[str | None, checks.choice("class of board", BOARDS)]
Topic = Annotated[str, checks.topic()]
TopicTemplate = Annotated[str, checks.topic_template()]
Kind = Annotated[str, checks.choice("kind of node", NodeKind)]
EmulatorName = Annotated[str, checks.choice("link emulator", Emulator)]
TcpName = Annotated[str | None, checks.choice("congestion control", CongestionControl)]
Platform = Annotated[str | None, checks.choice("platform", PLATFORMS)]
Where = Annotated[str | None, checks.choice("place", PLACES)]
OverlayName = Annotated[str, checks.choice("overlay method", OVERLAY_METHODS)]
DeliveryName = Annotated[str, checks.choice("delivery method", DELIVERY_METHODS)]
Parameter = Annotated[str | int | float | bool, checks.parameter()]
Selectors = Annotated[tuple[str, ...], checks.selectors()]
Publishers = Annotated[tuple[str, ...], checks.selectors("no node publishes")]
TagName = Annotated[str, checks.label("a tag")]
Ending = Annotated[str, checks.choice("way to leave", ("crash", "stop"))]
Direction = Annotated[str, checks.choice("direction", ("up", "down", "both"))]
ArrivalsName = Annotated[str | None, checks.choice("kind of arrivals", Arrivals)]
StableThing = Annotated[str, checks.choice("thing to wait for", ("overlay",))]
WrittenRate = Annotated[float, checks.quantity(units.parse_rate, units.RATE)]
TargetName = Annotated[str, checks.line("a node's name")]
MarkName = Annotated[str, checks.line("a name")]
BrokerSelectors = Annotated[
    tuple[str, ...], checks.selectors("leave `brokers` out for the nearest brokers")
]
Router = Annotated[str | None, checks.router()]
Image = Annotated[str | None, checks.image()]
Package = Annotated[str, checks.package()]
Command = Annotated[tuple[str, ...], checks.command()]
Variable = Annotated[str, checks.variable()]
VariableValue = Annotated[str, checks.variable_value()]
InsidePath = Annotated[str, checks.inside_path()]
SourcePath = Annotated[str, checks.source_path()]
Port = Annotated[int | None, checks.whole(1, 65_535)]
Level = Annotated[int, checks.whole(1, 5)]
LevelName = Annotated[str, checks.choice("level", ("1", "2", "3", "4", "5"))]
Corners = Annotated[tuple[tuple[float, float], tuple[float, float]] | None, checks.corners()]
Bounds = Annotated[tuple[float, float], checks.bounds()]
Number = Annotated[float, checks.number()]
ExpectationLine = Annotated[str, checks.line("an expectation")]
DimensionName = Annotated[str, checks.label("a dimension's name")]


class RawShape(Section):
    """One direction of a link. A value that is left out is not limited."""

    rate: Rate = Field(None, description="rate of the link, as in 128kbit/s or 10kB/s")
    delay: OptionalDuration = Field(None, description="propagation delay, as in 60ms")
    jitter: OptionalDuration = Field(
        None, description="the delay varies by at most this much, up or down"
    )
    loss: Share = Field(None, description="share of packets lost, as in 0.5%")
    queue: OptionalSize = Field(
        None,
        description="capacity of the queue, as in 32kB; default: one second at the rate",
    )
    burst: OptionalSize = Field(
        None,
        description="credit that tbf stores while the link is idle, as in 2kB; default: one frame",
    )


class RawProfile(Section):
    """A kind of link."""

    both: RawShape = Field(RawShape(), description="holds for both directions")
    up: RawShape = Field(RawShape(), description="from the node; overrides `both`")
    down: RawShape = Field(RawShape(), description="to the node; overrides `both`")
    mtu: Annotated[int, checks.whole(576, 9_000)] = Field(
        1_500, description="largest IP packet in bytes"
    )


class RawLinks(Section):
    """The link emulator, and link profiles of this file."""

    emulator: EmulatorName = Field(
        "auto", description="link emulator; auto selects the best that the machine supports"
    )
    profiles: dict[ProfileName, RawProfile] = Field(
        {},
        description="link profiles by name; a profile replaces the built-in one of the same name",
        json_schema_extra={"maxProperties": MAX_PROFILES},
    )


class RawMethod(BaseModel):
    """A method and its parameters, which the method checks."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Parameter]

    @property
    def parameters(self) -> dict[str, Any]:
        """Everything but the method's name."""
        return dict(self.__pydantic_extra__ or {})


class RawOverlay(RawMethod):
    """The overlay, which decides on the receivers of a message."""

    method: OverlayName = Field("star", description="how brokers find the subscribers")


class RawDelivery(RawMethod):
    """The delivery method, which decides on the order of bytes on a link."""

    method: DeliveryName = Field("fifo", description="how each link's queue is served")


class RawHardware(Section):
    """The hardware and the link of a node."""

    link: Link = Field(None, description="name of a link profile; default: lan")
    delivery: RawDelivery = Field(
        RawDelivery(),
        description="delivery method of its link, both directions; sensors and subscribers only; default: the lab's",
    )
    platform: Platform = Field(None, description="processor to run (or emulate)")
    board: Board = Field(None, alias="class", description="board class, as in pi-3")
    place: Where = Field(
        None, description="boards: `testbed deploy` installs it on a board; default: this machine"
    )


class RawDefaults(RawHardware):
    """Defaults for nodes; those of a kind have precedence over the general ones."""

    broker: RawHardware = Field(RawHardware(), description="defaults for brokers")
    sensor: RawHardware = Field(RawHardware(), description="defaults for sensors")
    subscriber: RawHardware = Field(RawHardware(), description="defaults for subscribers")
    router: RawHardware = Field(RawHardware(), description="defaults for routers")
    external: RawHardware = Field(RawHardware(), description="defaults for external nodes")


class RawSubscription(Section):
    """A subscription to a topic; a condition that is left out accepts everything."""

    topic: Annotated[str | None, checks.topic()] = Field(
        None, description="an exact topic; default: the one that the scenario publishes"
    )
    within: Corners = Field(
        None,
        description="two corners of an area, [latitude, longitude] each: publications from there",
    )
    min_priority: Level = Field(1, description="the lowest level wanted; default: 1")
    where: dict[DimensionName, Bounds] = Field(
        {}, description="[least, most] of values that `space` names, as in tilt: [3, 10]"
    )


# One mapping, or a list of them; the tags occur in the paths of errors (`shape`), and in no file.
ONE, SEVERAL = "(one)", "(several)"
Subscriptions = Annotated[
    Annotated[RawSubscription, Tag(ONE)] | Annotated[list[RawSubscription], Tag(SEVERAL)],
    Discriminator(lambda value: SEVERAL if isinstance(value, list) else ONE),
]


class RawMember(RawHardware):
    """The keys that a single node and a group share."""

    kind: Kind = Field(description="kind of node")
    topics: list[Topic] = Field([], description="exact topics of a subscriber's subscriptions")
    tags: list[TagName] = Field(
        [], description="tags by which events select it, as in tag:upstream"
    )
    subscribe: Subscriptions = Field(
        [], description="subscriptions with an area or levels: one mapping or a list"
    )
    router: Router = Field(
        None,
        description='node of kind router whose link it shares (also of a router), or "group[*]" to take turns',
    )
    brokers: BrokerSelectors = Field(
        (),
        description="brokers of a sensor or subscriber, before all others and in this order; default: the nearest",
    )
    image: Image = Field(None, description="container image of an external node")
    packages: list[Package] = Field(
        [], description="or: Debian packages from which its image is made"
    )
    command: Command = Field((), description="what it runs: a list, or a line for the shell")
    env: dict[Variable, VariableValue] = Field({}, description="its environment")
    files: dict[InsidePath, SourcePath] = Field(
        {}, description="path in the container: text file, relative to this file"
    )
    port: Port = Field(None, description="TCP port on which it listens when it is ready")


class RawGroup(RawMember):
    """Several nodes of one kind: group `sensors` with count 3 gives sensors-0, sensors-1, sensors-2."""

    count: Annotated[int, checks.whole(1, MAX_NODES)] = Field(description="how many nodes")
    at: Places = Field(
        None, description="[latitude, longitude] of all, or a list with one such pair for each"
    )


class RawNode(RawMember):
    """One node."""

    at: Place = Field(None, description="[latitude, longitude]")


class RawChoice(Section):
    """A choice among the selected nodes."""

    within: Corners = Field(
        None,
        description="two corners of an area, [latitude, longitude] each: selects the nodes inside",
    )
    share: Share = Field(
        None, description="share of the nodes to select (seeded), as in 20%; default: all"
    )


class RawTargets(RawChoice):
    """Nodes of an action, or nodes whose links it affects."""

    nodes: Selectors = Field(
        (),
        description='a name, "group[*]", "group[0]", "group[1..3]", "tag:upstream", or a list',
    )


class RawFlap(RawTargets):
    """Links that are cut and restored repeatedly."""

    down: Duration = Field(description="how long the links are cut each time, as in 2s")
    up: Duration = Field(description="time between two cuts, as in 5s")


class RawChurn(RawTargets):
    """Nodes that leave and come back at random moments (seeded)."""

    leave: Period = Field(None, description="mean rate at which nodes leave, as in 6/min")
    join: Period = Field(None, description="mean rate at which absent nodes return")
    by: Ending = Field("crash", description="how they leave: crash or stop; default: crash")


class RawLinkChange(RawTargets, RawShape):
    """Other values of links; values that are left out do not change."""

    profile: Link = Field(
        None, description="all values of this profile; single values have precedence"
    )
    direction: Direction = Field("both", description="up (from the node), down or both")


class RawPartition(Section):
    """Sides that cannot reach each other; a node on no side reaches all."""

    sides: list[Selectors] = Field(
        description='two or more, each a selector or a list of them: [["north[*]"], ["south[*]", hub]]'
    )


class RawLoad(RawTargets):
    """Background traffic: datagrams from these nodes to another."""

    to: TargetName = Field(description="node that receives the traffic")
    rate: WrittenRate = Field(description="rate of each node, headers included, as in 64kbit/s")
    size: Size = Field(1_000, description="payload of each datagram; default: 1kB")


class RawExec(RawTargets):
    """A command that is run inside these nodes."""

    command: Command = Field(description="a list of words, or a line for the shell")


class RawPublish(RawChoice):
    """Publishers, messages, and their times."""

    nodes: Publishers = Field(
        (),
        alias="from",
        description='sensors: a name, "group[*]", "group[0]", "group[1..3]", "tag:upstream", or a list',
    )
    topic: TopicTemplate = Field(description="{node} and {group} stand for the publisher")
    priority: Level = Field(1, description="1 (routine) to 5 (emergency)")
    size: Size = Field(description="payload of each message, as in 300B")
    period: OptionalDuration = Field(
        None, description="time from message to message; or give `rate`"
    )
    rate: Period = Field(None, description="messages per time, as in 2/s; or give `period`")
    arrivals: ArrivalsName = Field(
        None,
        description="periodic: evenly; poisson: at random, `rate` in the mean (seeded); default: periodic",
    )
    length: OptionalDuration = Field(
        None, alias="for", description="how long to repeat; default: to the scenario's end"
    )
    count: OptionalCount = Field(None, description="how many messages from each node at most")
    probability: Probability = Field(
        1.0, description="probability that a message is published; default: 1"
    )
    spread: Duration = Field(
        0.0,
        description="each node begins at a random moment within this time (seeded); default: 0s",
    )
    values: dict[DimensionName, Number] = Field(
        {}, description="values that `space` names, as in tilt: 4.2; default: the least of each"
    )


class RawReceived(Section):
    """A trigger: a subscriber receives a message."""

    nodes: Selectors = Field((), description="subscribers, as in other events; default: any")
    level: Level = Field(1, description="at least this one; default: 1")
    topic: Annotated[str | None, checks.topic()] = Field(None, description="default: any")
    count: OptionalCount = Field(None, description="number of messages; default: 1")


class RawDelay(Section):
    """A trigger: messages are late."""

    above: Duration = Field(description="longer than this, as in 2s")
    percentile: Annotated[float, checks.factor(1, 100)] = Field(
        95.0, description="of the recent delays; default: 95"
    )
    over: Duration = Field(10.0, description="window of the recent delays; default: 10s")
    nodes: Selectors = Field((), description="subscribers, as in other events; default: any")
    level: Level = Field(1, description="at least this one; default: 1")
    topic: Annotated[str | None, checks.topic()] = Field(None, description="default: any")


class RawWhen(Section):
    """The trigger of an event: exactly one of the first three."""

    received: RawReceived | None = Field(None, description="a subscriber receives a message")
    delay: RawDelay | None = Field(None, description="messages are late")
    stable: StableThing | None = Field(
        None, description="overlay: no broker changes its place in the overlay"
    )
    quiet: OptionalDuration = Field(None, description="stable: for this time; default: 3s")
    after: Duration = Field(0.0, description="delay after the trigger; default: 0s")
    within: OptionalDuration = Field(
        None,
        description="deadline since the scenario's start; afterwards the trigger does not fire",
    )


class RawEvent(Section):
    """An event: publications or exactly one action, and its times."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 2})

    at: OptionalDuration = Field(None, description="time since the scenario's start, as in 5s")
    when: RawWhen | None = Field(
        None, description="or: the trigger of the event, which then occurs once"
    )
    every: OptionalDuration = Field(
        None, description="repeat at this interval, until `until` or the scenario's end"
    )
    length: OptionalDuration = Field(
        None, alias="for", description="duration of each occurrence; then the action is undone"
    )
    until: OptionalDuration = Field(None, description="end, as time since the scenario's start")
    publish: RawPublish | None = Field(None, description="messages that sensors publish")
    crash: RawTargets | None = Field(None, description="nodes are killed")
    stop: RawTargets | None = Field(None, description="nodes shut down in order")
    start: RawTargets | None = Field(None, description="nodes that are down are started again")
    cut: RawTargets | None = Field(None, description="the links of these nodes lose all packets")
    restore: RawTargets | None = Field(
        None, description="links that were cut or changed get the settings of the file again"
    )
    flap: RawFlap | None = Field(None, description="links are cut and restored repeatedly")
    churn: RawChurn | None = Field(None, description="nodes leave and come back at random moments")
    link: RawLinkChange | None = Field(None, description="links get other values")
    partition: RawPartition | None = Field(
        None, description="sides of the lab cannot reach each other"
    )
    load: RawLoad | None = Field(None, description="background traffic between two nodes")
    exec: RawExec | None = Field(None, description="a command is run inside nodes; real labs only")
    mark: MarkName | None = Field(None, description="name of this moment, which the report shows")


class RawScenario(Section):
    """The events of a scenario, and its duration."""

    duration: Duration = Field(description="length of the scenario, as in 20s")
    settle: Duration = Field(
        10.0, description="longest wait afterwards for messages in transit; default: 10s"
    )
    events: list[RawEvent] = Field([], description="events, each with its time")
    expect: list[ExpectationLine] = Field(
        [],
        description="expectations, as in level 5 delay p99 < 2s (docs/reference/expectations.md)",
    )
    hazard: RawHazard | None = Field(
        None,
        description="a hazard, whose course determines publications (docs/explanation/hazards.md)",
    )
    speed: Annotated[float, checks.factor(0.001, 1_000)] = Field(
        1.0, description="speed factor of the scenario, as in 20; links and nodes keep their speed"
    )


class RawCapture(Section):
    """Captures of packets."""

    enabled: Flag = Field(True, description="whether packets are captured")
    snaplen: Annotated[int, checks.whole(64, 262_144)] = Field(
        65_535, description="bytes kept of each packet"
    )


class TopologyFile(Section):
    """A lab of brokers, sensors and subscribers on emulated links, and its scenario."""

    name: LabName = Field(None, description="the lab's name; default: the file's name")
    seed: Annotated[int, checks.whole(0, 2**63 - 1)] = Field(
        1, description="seed of all random choices; the same seed gives the same scenario"
    )
    links: RawLinks = Field(RawLinks(), description="link emulator and link profiles")
    defaults: RawDefaults = Field(RawDefaults(), description="defaults for nodes")
    space: dict[DimensionName, Bounds] = Field(
        {},
        description="[least, most] of the values that publications carry in addition to their coordinates",
    )
    groups: dict[NodeName, RawGroup] = Field({}, description="several nodes of one kind, by name")
    nodes: dict[NodeName, RawNode] = Field({}, description="single nodes by name")
    overlay: RawOverlay = Field(
        RawOverlay(), description="overlay method, which decides on the receivers of a message"
    )
    delivery: RawDelivery = Field(RawDelivery(), description="order of bytes on links")
    tcp: TcpName = Field(
        None, description="congestion control of TCP; default: the one of the machine's kernel"
    )
    scenario: RawScenario | None = Field(None, description="events, and their duration")
    deadlines: dict[LevelName, Duration] = Field(
        {}, description="level: time within which its messages should arrive, as in 5: 2s"
    )
    capture: RawCapture = Field(RawCapture(), description="captures of packets")
