"""An overlay, formed by its own messages, and one publication on its way through it.

The nodes are those that brokers run; time is virtual, each message is 10 ms under way. Of nodes with several keys the
one of the publication's topic is drawn: a topic's keys stand side by side, and no other passes it on. Where nodes stand
by the periods of their readings, each publishes some first, from which the others learn them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

from nodes.overlay.skipgraph.table import Peer
from nodes.overlay.topics.base import Action, Deliver, GraphedNode, Send, TopicNode
from nodes.overlay.topics.keys import Role, edge
from nodes.overlay.topics.scribe.node import Scribe
from nodes.overlay.topics.scribe.routing import node_key
from nodes.overlay.zorder_map.keys import CurveSpace
from nodes.overlay.zorder_map.node import ZorderMap
from nodes.protocol.skipgraph_messages import VECTOR_BITS
from nodes.protocol.wire import LOWEST_PRIORITY, Kind, Message, message_id
from nodes.protocol.zorder_map_messages import Toward, routing_section
from testbed.backends.simulated.loop import SECOND, Loop
from testbed.backends.simulated.network import Network
from testbed.graphs.scenario import Scenario

# Areas of a map as they are drawn: the share of each broker, and where a publication is matched.


@dataclass(frozen=True, slots=True)
class Area:
    """Of one broker."""

    share: float  # of the map
    matches: tuple[str, ...]  # "place", "home": which of the publication's points lie in it


def toward(node: TopicNode, publication: Message) -> str:
    """Where a publication goes that leaves this node: "place", "home", "subscriber"; "" where there is no map."""
    return routing_section(publication).toward.name.lower() if isinstance(node, ZorderMap) else ""


def areas_of(nodes: Mapping[int, TopicNode], publication: Message) -> dict[int, Area]:
    """By number; none if the nodes have no areas."""
    found = {}
    for number, node in nodes.items():
        if isinstance(node, ZorderMap):
            ground, served = CurveSpace(node.keys, most=1), node.holdings.served
            points = [Toward.PLACE, Toward.HOME] if publication.place else [Toward.HOME]
            matches = (
                point.name.lower() for point in points if ground.point(publication, point) in served
            )
            found[number] = Area(served.size / (1 << node.keys.bits), tuple(matches))
    return found


DELAY_NS = 10_000_000
JOIN_NS = 2 * SECOND  # between two nodes that join
FORM_NS = 60 * SECOND  # afterwards nothing changes any more
FOLLOW_NS = 10 * SECOND
READINGS = 4  # of each node that has a period; three make it known


@dataclass(frozen=True, slots=True)
class DrawnPeer:
    """A node with its right neighbours, level by level, as numbers; None where its list ends."""

    number: int
    publishes: bool  # the topic that is followed
    subscribes: bool
    vector: int
    right: tuple[int | None, ...]

    def bits(self, count: int) -> str:
        """The beginning of its membership vector."""
        return format(self.vector, f"0{VECTOR_BITS}b")[:count]


@dataclass(frozen=True, slots=True)
class Hop:
    """The publication, from one node to another; `number` counts from the publisher on."""

    number: int
    src: int
    dst: int
    toward: str = ""  # on a map: the "place", the topic's "home", or a "subscriber"


@dataclass(frozen=True, slots=True)
class SimulatedOverlay:
    """The converged overlay, and the publication's hops in the order of their time."""

    scenario: Scenario
    peers: tuple[DrawnPeer, ...]  # in key order
    hops: tuple[Hop, ...]
    reached: Mapping[int, int]  # subscriber -> hops of the first arrival
    areas: Mapping[int, Area] = field(default_factory=dict)  # of a map's brokers

    @property
    def levels(self) -> int:
        """Levels in which a node has a neighbour; 0 is always drawn."""
        linked = [len(peer.right) for peer in self.peers]
        return max(1, *linked)


class _ObservedNode:
    """A node whose publications are recorded as they leave."""

    def __init__(self, node: TopicNode, hops: list[Hop], number: int) -> None:
        self.node = node
        self._hops = hops
        self._number = number

    def seen(self, actions: Iterable[Action]) -> list[Action]:
        actions = list(actions)
        for action in actions:
            if isinstance(action, Send) and action.message.kind is Kind.PUBLISH:
                # A message counts the link it goes over; the publisher's own had none before.
                hops, where = action.message.hops - 1, toward(self.node, action.message)
                self._hops.append(Hop(hops, self._number, action.node, where))
        return actions

    def on_message(self, sender: int, message: Message, now: float) -> list[Action]:
        return self.seen(self.node.on_message(sender, message, now))

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        return self.seen(self.node.on_peer_lost(number, now))

    def next_deadline(self) -> float | None:
        return self.node.next_deadline()

    def on_deadline(self, now: float) -> list[Action]:
        return self.seen(self.node.on_deadline(now))


def simulate(scenario: Scenario) -> SimulatedOverlay:
    """Let the nodes join, then let the publisher publish. ValueError: a parameter is wrong."""
    hops: list[Hop] = []
    reached: dict[int, int] = {}

    def notice(number: int, action: Action, _: float) -> None:
        if isinstance(action, Deliver):
            reached[number] = action.message.hops - 1

    def make(number: int) -> _ObservedNode:
        return _ObservedNode(scenario.make(number), hops, number)

    network = Network(Loop(), make, _destination, DELAY_NS, notice)
    for number in scenario.topics:
        network.call(number, partial(_join, scenario, number))
        network.loop.run(network.loop.now + JOIN_NS)
    network.loop.run(network.loop.now + FORM_NS)
    if scenario.periods:
        _publish_readings(scenario, network)
        network.loop.run(network.loop.now + FORM_NS)
    nodes = {number: cast(_ObservedNode, network.node(number)).node for number in scenario.topics}
    own = {number: _peer(node, scenario) for number, node in nodes.items()}
    peers = {number: peer for number, peer in own.items() if peer is not None}
    drawn = tuple(
        _drawn(peers[number], scenario, number, peers)
        for number in sorted(peers, key=lambda number: peers[number].key)
    )
    message = scenario.publication.message
    areas = areas_of(nodes, message)
    hops.clear()
    reached.clear()
    network.call(scenario.publication.publisher, partial(_publish, message))
    network.loop.run(network.loop.now + FOLLOW_NS)
    return SimulatedOverlay(scenario, drawn, tuple(hops), reached, areas)


def _destination(action: Action) -> int | None:
    return action.node if isinstance(action, Send) else None


def _join(scenario: Scenario, number: int, observed: _ObservedNode, now: float) -> list[Action]:
    node, topics = observed.node, scenario.topics[number]
    actions = [action for topic in topics.publishes for action in node.advertise(topic, now)]
    for topic in topics.subscribes:
        actions += node.subscribe(topic, now)
    if not topics.publishes and not topics.subscribes:
        actions += node.on_deadline(now)  # of some methods, every node has a key
    return observed.seen(actions)


def _publish_readings(scenario: Scenario, network: Network) -> None:
    """Each node that has a period publishes readings with it."""
    begin = network.loop.now
    moments = sorted(
        (begin + round(place * period * SECOND), number, place)
        for number, period in scenario.periods.items()
        for place in range(READINGS)
    )
    for moment, number, place in moments:
        network.loop.run(moment)
        reading = replace(
            scenario.publication.message,
            priority=LOWEST_PRIORITY,
            flags=0,
            origin=number,
            message_id=message_id(number, 2 + place),
            published_ns=moment,
        )
        network.call(number, partial(_publish, reading))


def _publish(message: Message, observed: _ObservedNode, now: float) -> list[Action]:
    return observed.seen(observed.node.publish(message, now))


def _peer(node: TopicNode, scenario: Scenario) -> Peer | None:
    """The node's key of the topic, or its only one; None: it takes no part."""
    graph = cast(GraphedNode, node).graph
    if isinstance(node, ZorderMap):
        return graph.peer(graph.own_keys()[0])
    if isinstance(node, Scribe):
        return graph.peer(node_key(node.number))
    topic = scenario.publication.topic
    low, high = edge(topic, Role.PUBLISHER), edge(topic, Role.SUBSCRIBER + 1)
    keys = [key for key in graph.own_keys() if low <= key < high]
    assert len(keys) <= 1, f"node {graph.number} has {len(keys)} keys of one topic"
    return graph.peer(keys[0]) if keys else None


def _drawn(peer: Peer, scenario: Scenario, number: int, peers: Mapping[int, Peer]) -> DrawnPeer:
    """Links to keys that are not drawn are left out: they lead out of the topic."""
    keys = {one.key for one in peers.values()}
    right: list[int | None] = []
    for level in range(len(peer.levels) + 1):
        neighbours = [peer.neighbour(level, rightwards) for rightwards in (False, True)]
        inside = [one.node if one and one.key in keys else None for one in neighbours]
        if inside == [None, None]:
            break
        right.append(inside[1])
    publishes, subscribes = number in scenario.publishers, number in scenario.subscribers
    return DrawnPeer(number, publishes, subscribes, peer.me.vector, tuple(right))
