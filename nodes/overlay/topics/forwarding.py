"""How a publication goes from its publisher to the subscribers of its topic: the part in which the methods differ."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.topics.keys import Role, edge
from nodes.overlay.topics.topic_graph import Context, TopicGraph
from nodes.protocol.skipgraph_messages import Multicast, Way
from nodes.protocol.wire import Message

WAYS = {"flood": Way.FLOOD, "split": Way.SPLIT}
PARAMETERS = ("multicast",)


def way_of(parameters: Mapping[str, Any]) -> Way:
    """How a multicast spreads, by the parameter `multicast`."""
    way = parameters.get("multicast", "split")
    if way not in WAYS:
        raise ValueError(f"multicast {way!r}; there are {', '.join(WAYS)}")
    return WAYS[way]


def subscribers_range(topic: str) -> tuple[bytes, bytes]:
    """The keys of the topic's subscribers: [low, high)."""
    return edge(topic, Role.SUBSCRIBER), edge(topic, Role.SUBSCRIBER + 1)


class Forwarding(ABC):
    """How a node sends publications; it has a key in their topic."""

    @abstractmethod
    def send(self, message: Message, context: Context) -> None:
        """Send a publication of this node to all subscribers."""

    @abstractmethod
    def send_again(self, multicast: Multicast, message: Message, context: Context) -> None:
        """Serve a part of the range again, by other nodes: `multicast`, with `message`, went to a dead node."""

    def on_event(self, event: graph.Event, context: Context) -> bool:
        """Handle an event of the graph; whether no other part is concerned."""
        return False

    @abstractmethod
    def on_peer_lost(self, number: int, context: Context) -> None:
        """The node of this number is dead; the graph has been notified."""


class RangeMulticast(Forwarding):
    """SG-TBPS: one multicast to the subscribers' stretch of keys."""

    def __init__(self, graph: TopicGraph, way: Way) -> None:
        self._graph = graph
        self._way = way

    def send(self, message: Message, context: Context) -> None:
        low, high = subscribers_range(message.topic)
        floor = edge(message.topic, Role.PUBLISHER)
        self._graph.publish(low, high, message, context, self._way, floor)

    def send_again(self, multicast: Multicast, message: Message, context: Context) -> None:
        self._graph.serve_again(multicast, context)

    def on_peer_lost(self, number: int, context: Context) -> None:
        """Do nothing: the node does not remember sent publications."""
