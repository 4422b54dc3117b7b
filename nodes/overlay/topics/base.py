"""Topic-based publish/subscribe on an overlay: the interface of every method, one object a physical node.

Nodes know each other by number. A shell, or the simulator, reports each event to the object and carries out the actions
that the object returns, in their order. `now` is seconds on any steadily growing clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from nodes.overlay.skipgraph.node import SkipGraphNode
from nodes.protocol.wire import Message


@dataclass(frozen=True, slots=True)
class Place:
    """What a node knows of the overlay before it begins.

    `introducers` are nodes that may know a node of the graph, `fallbacks` those to ask if none of them does.
    `incarnation` must grow whenever a node of this number starts again, for example with the time of day in seconds.
    `vector` is its membership vector; None: it is drawn at random. `watched`: the layer above detects dead nodes. Then
    the node does not take a silent node for dead, but reports it (Suspected). `dimensions`: how many coordinates the
    place of a publication has, if it has one.
    """

    number: int
    introducers: tuple[int, ...] = ()
    incarnation: int = 0
    vector: int | None = None
    watched: bool = False
    fallbacks: tuple[int, ...] = ()
    dimensions: int = 0


@dataclass(frozen=True, slots=True)
class Send:
    """Send the message to the node of this number."""

    node: int
    message: Message


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hand the publication to the subscribers at this node."""

    message: Message


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Take note: this publication came again, and is not delivered again."""

    message: Message


@dataclass(frozen=True, slots=True)
class Withheld:
    """Take note: there is no subscriber, so this publication is not sent; unless a subscriber joins very soon."""

    message: Message


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Every publication on the topic reaches this node from now on."""

    topic: str


@dataclass(frozen=True, slots=True)
class Advertised:
    """Publications of this node on the topic are sent at once from now on."""

    topic: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """The node of this number sent a message that breaks the rules."""

    node: int
    reason: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The node `sender` sends this request to the publishers of the topic, of which this node is one."""

    sender: int
    topic: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Suspected:
    """The node of this number should have sent a message: find out whether it is alive, if not call `on_peer_lost`."""

    node: int


@dataclass(frozen=True, slots=True)
class Restored:
    """The subscription had lost its place in the overlay, and has it again: publications may have been missed."""

    topic: str


Action = (
    Send
    | Deliver
    | Duplicate
    | Withheld
    | Subscribed
    | Advertised
    | Refuse
    | Asked
    | Suspected
    | Restored
)


class TopicNode(Protocol):
    """One node's part of a method."""

    def advertise(self, topic: str, now: float) -> list[Action]:
        """This node is going to publish on the topic; Advertised confirms it."""

    def withdraw(self, topic: str, now: float) -> list[Action]:
        """This node does not publish on the topic any more."""

    def subscribe(self, topic: str, now: float) -> list[Action]:
        """This node subscribes to the topic; Subscribed confirms it."""

    def unsubscribe(self, topic: str, now: float) -> list[Action]:
        """End the subscription: deliver nothing of the topic from now on."""

    def publish(self, message: Message, now: float) -> list[Action]:
        """Send to all subscribers of the message's topic, which must be advertised (ValueError)."""

    def ask(self, topic: str, payload: bytes, now: float) -> list[Action]:
        """Send a request to the nodes that publish on the topic, once; Scribe: also to the topic's root."""

    def leave(self, now: float) -> list[Action]:
        """End all subscriptions and advertisements, and leave the overlay in order."""

    @property
    def left(self) -> bool:
        """After `leave`: whether the node has left, and nothing waits here."""

    def serve_again(self, message: Message, now: float) -> list[Action]:
        """A publication, as a Send of this node had it, went to a node that is gone (`on_peer_lost` was called).

        Serve the subscribers of that node by another way; some may get the publication twice. The Sends may come in
        later calls, when another way has been found: until then the node `holds` the publication.
        """

    def holds(self, message_id: int) -> bool:
        """Whether this publication waits here, until a route is known or no node wants it: more Sends may come."""

    def describe(self) -> dict[str, Any]:
        """The node's place in the graph, as JSON values, for status and drawings."""

    def on_message(self, sender: int, message: Message, now: float) -> list[Action]:
        """A message came from the node of this number."""

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        """The shell has found that the node is dead."""

    def on_peer_found(self, number: int, now: float) -> list[Action]:
        """The shell has reached a lost node again, or the first one after all were lost: graphs may have separated."""

    def next_deadline(self) -> float | None:
        """When the shell must call `on_deadline`; None: not at all."""

    def on_deadline(self, now: float) -> list[Action]:
        """Do what is due; a call that comes too early does no harm."""


class GraphedNode(TopicNode, Protocol):
    """A node on a Skip Graph that can be inspected."""

    graph: SkipGraphNode


class TopicNodeFactory(Protocol):
    """A method: makes its nodes, and declares its guarantees beyond those of all methods."""

    relay_free: bool  # no node handles publications of topics in which it takes no part
    stops: bool  # publishers send nothing while there is no subscriber
    ways: tuple[str, ...]  # values of its parameter `multicast`; empty: it has no such parameter
    by_area: bool  # subscriptions are texts of interests (`nodes.protocol.interests`), not topics

    def __call__(self, place: Place, parameters: Mapping[str, Any], random: Random, /) -> TopicNode:
        """A node at this place."""
