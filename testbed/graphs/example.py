"""A small overlay, formed by its own messages, and one publication on its way through it.

The nodes are those that brokers run; time is virtual, each message is 10 ms under way.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Protocol

from nodes.overlay.skipgraph.contacts import VECTOR_BITS
from nodes.overlay.skipgraph.node import SkipGraphNode
from nodes.overlay.tbps import TOPIC_METHODS
from nodes.overlay.tbps.base import Action, Deliver, Place, Send, TopicNode
from nodes.overlay.tbps.keys import Role
from nodes.wire import Kind, Message, message_id
from testbed.backends.simulated.loop import SECOND, Loop
from testbed.backends.simulated.network import Network

TOPIC = "slope"
DELAY_NS = 10_000_000
JOIN_NS = 2 * SECOND  # between two nodes that come
FORM_NS = 60 * SECOND  # afterwards nothing changes any more
FOLLOW_NS = 10 * SECOND


class GraphedNode(TopicNode, Protocol):
    """A node of a method that stands on a Skip Graph."""

    graph: SkipGraphNode


@dataclass(frozen=True, slots=True)
class Example:
    """What is to be drawn."""

    method: str
    publishers: int = 3
    subscribers: int = 7
    priority: int = 5
    seed: int = 2
    parameters: Mapping[str, Any] | None = None

    @property
    def numbers(self) -> range:
        """Publishers first, as in the order of keys."""
        return range(1, self.publishers + self.subscribers + 1)

    def role(self, number: int) -> Role:
        return Role.PUBLISHER if number <= self.publishers else Role.SUBSCRIBER


@dataclass(frozen=True, slots=True)
class DrawnPeer:
    """A node with its right neighbours, level by level, as numbers; None where its list ends."""

    number: int
    role: Role
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


@dataclass(frozen=True, slots=True)
class Formed:
    """The overlay as it stands, and the publication's hops in the order of their time."""

    example: Example
    peers: tuple[DrawnPeer, ...]  # in key order
    hops: tuple[Hop, ...]
    reached: Mapping[int, int]  # subscriber -> hops of the first arrival

    @property
    def levels(self) -> int:
        """Levels in which anybody has a neighbour."""
        linked = [len(peer.right) for peer in self.peers]
        return max(linked, default=0)


class _Watched:
    """A node whose publications are written down as they leave."""

    def __init__(self, node: TopicNode, hops: list[Hop], number: int) -> None:
        self.node = node
        self._hops = hops
        self._number = number

    def seen(self, actions: Iterable[Action]) -> list[Action]:
        actions = list(actions)
        for action in actions:
            if isinstance(action, Send) and action.message.kind is Kind.PUBLISH:
                # A message counts the link it goes over; the publisher's own had none before.
                self._hops.append(Hop(action.message.hops - 1, self._number, action.node))
        return actions

    def on_message(self, sender: int, message: Message, now: float) -> list[Action]:
        return self.seen(self.node.on_message(sender, message, now))

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        return self.seen(self.node.on_peer_lost(number, now))

    def next_deadline(self) -> float | None:
        return self.node.next_deadline()

    def on_deadline(self, now: float) -> list[Action]:
        return self.seen(self.node.on_deadline(now))


def form(example: Example) -> Formed:
    """Let the nodes find each other, then let the first publisher publish."""
    make = TOPIC_METHODS[example.method]
    hops: list[Hop] = []
    reached: dict[int, int] = {}

    def make_node(number: int) -> _Watched:
        place = Place(number, introducers=() if number == 1 else (1,))
        random = Random(f"{example.seed} {number}")
        return _Watched(make(place, example.parameters or {}, random), hops, number)

    def notice(number: int, action: Action, _: float) -> None:
        if isinstance(action, Deliver):
            reached[number] = action.message.hops - 1

    network = Network(Loop(), make_node, _destination, DELAY_NS, notice)
    for number in example.numbers:
        network.tell(number, partial(_begin, example, number))
        network.loop.run(network.loop.now + JOIN_NS)
    network.loop.run(network.loop.now + FORM_NS)
    peers = tuple(_drawn(network.node(number), example, number) for number in example.numbers)
    publication = Message(
        Kind.PUBLISH, example.priority, origin=1, message_id=message_id(1, 1), topic=TOPIC
    )
    network.tell(1, lambda one, now: one.seen(one.node.publish(publication, now)))
    network.loop.run(network.loop.now + FOLLOW_NS)
    return Formed(example, peers, tuple(hops), reached)


def _destination(action: Action) -> int | None:
    return action.node if isinstance(action, Send) else None


def _begin(example: Example, number: int, watched: _Watched, now: float) -> list[Action]:
    node = watched.node
    publisher = example.role(number) is Role.PUBLISHER
    return watched.seen((node.advertise if publisher else node.subscribe)(TOPIC, now))


def _drawn(watched: Any, example: Example, number: int) -> DrawnPeer:
    node: GraphedNode = watched.node
    role = example.role(number)
    peers = [node.graph.peer(key) for key in node.graph.own_keys()]
    assert len(peers) == 1, f"node {number} has {len(peers)} keys in the graph"
    peer = peers[0]
    assert peer is not None
    right: list[int | None] = []
    for level in range(len(peer.levels) + 1):
        neighbours = [peer.neighbour(level, rightwards) for rightwards in (False, True)]
        if not any(neighbours):
            break
        right.append(None if neighbours[1] is None else neighbours[1].node)
    return DrawnPeer(number, role, peer.me.vector, tuple(right))
