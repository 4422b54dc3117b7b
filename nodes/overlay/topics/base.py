"""Topic-based publish/subscribe on an overlay: the interface of every method, one object a physical node.

Nodes know each other by number. A shell, or the simulator, tells the object what happened and carries out the actions
it gets back, in their order. `now` is seconds on any steadily growing clock.
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

    `introducers` are nodes that may know the way in, `fallbacks` those to ask if none of them does.
    `incarnation` must grow whenever a node of this number begins anew, for example with the time of day in seconds.
    `vector` is its membership vector; None: it is drawn.
    `watched`: the layer above finds out who is dead. Then silence is no death to the node, and it asks (Doubted).
    `dimensions`: how many coordinates the place of a publication has, if it has one.
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
    """Take note: nobody subscribes, so this publication is not sent; unless somebody comes very soon."""

    message: Message


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Whatever is published on the topic from now on comes here."""

    topic: str


@dataclass(frozen=True, slots=True)
class Advertised:
    """What is published here on the topic is sent at once from now on."""

    topic: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """The node of this number sent something that has no place here."""

    node: int
    reason: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The node `sender` puts these words before those that publish on the topic, of which this node is one."""

    sender: int
    topic: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Suspected:
    """The node of this number should have said something: find out whether it lives, and if not call `on_peer_lost`."""

    node: int


@dataclass(frozen=True, slots=True)
class Restored:
    """The subscription had lost its place in the overlay, and has it again: something may have been missed."""

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
        """This node is going to publish on the topic; Advertised says that it stands."""

    def withdraw(self, topic: str, now: float) -> list[Action]:
        """It is not any more."""

    def subscribe(self, topic: str, now: float) -> list[Action]:
        """This node wants the topic; Subscribed says that it stands."""

    def unsubscribe(self, topic: str, now: float) -> list[Action]:
        """Not any more; nothing of it is delivered from now on."""

    def publish(self, message: Message, now: float) -> list[Action]:
        """Send to all subscribers of the message's topic, which must be advertised (ValueError)."""

    def ask(self, topic: str, payload: bytes, now: float) -> list[Action]:
        """Put the words before the nodes that publish on the topic, once; Scribe: also before the topic's root."""

    def leave(self, now: float) -> list[Action]:
        """The node wants nothing any more, and goes out of the overlay in order."""

    @property
    def left(self) -> bool:
        """After `leave`: it is out, and nothing waits here."""

    def serve_again(self, message: Message, now: float) -> list[Action]:
        """A publication, as a Send of this node had it, went to a node that is gone (`on_peer_lost` was called).

        Those whom that one should have served are served by another way; some may get it twice. The Sends may come in
        later calls, when the way has been found: until then the node `holds` the publication.
        """

    def holds(self, message_id: int) -> bool:
        """Whether this publication waits here, until the way is known or nobody wants it: more Sends may come."""

    def describe(self) -> dict[str, Any]:
        """Its place in the graph, as JSON values, for those who look at the overlay from outside."""

    def on_message(self, sender: int, message: Message, now: float) -> list[Action]:
        """A message came from the node of this number."""

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        """The shell knows that the node is dead."""

    def on_peer_found(self, number: int, now: float) -> list[Action]:
        """The shell has reached a node that was lost, or the first one after all were: graphs may have grown apart."""

    def next_deadline(self) -> float | None:
        """When `on_deadline` wants to be called; None: not at all."""

    def on_deadline(self, now: float) -> list[Action]:
        """The time has come; also correct when called too early."""


class GraphedNode(TopicNode, Protocol):
    """A node that stands on a Skip Graph, which can be looked at."""

    graph: SkipGraphNode


class TopicNodeFactory(Protocol):
    """A method: makes its nodes, and says what it promises besides what all of them do."""

    relay_free: bool  # nobody handles publications of topics that he takes no part in
    stops: bool  # publishers send nothing while nobody subscribes
    ways: tuple[str, ...]  # values of its parameter `multicast`; none: it has none
    by_area: bool  # what is subscribed to is the text of an interest (`nodes.protocol.interests`), not a topic

    def __call__(self, place: Place, parameters: Mapping[str, Any], random: Random, /) -> TopicNode:
        """A node at this place."""
