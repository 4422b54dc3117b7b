"""A broker of the map as a member of the graph: its keys, and its control messages to other brokers."""

from random import Random

from nodes.overlay.skipgraph.node import SkipGraphNode
from nodes.overlay.topics.base import Place
from nodes.overlay.topics.topic_graph import Context
from nodes.overlay.zorder_map.keys import Keys
from nodes.overlay.zorder_map.registry import INCARNATION_BITS
from nodes.overlay.zorder_map.settings import Settings
from nodes.protocol.skipgraph_messages import VECTOR_BITS
from nodes.protocol.wire import message_id
from nodes.protocol.zorder_map_messages import MapMessage, Register, encode_message


class Member:
    """The broker's place in the graph, shared by its parts. `incarnation` is below all numbers of this incarnation."""

    def __init__(self, place: Place, settings: Settings, random: Random) -> None:
        self.number = place.number
        self.keys = Keys(settings.dimensions)
        self.graph = SkipGraphNode(
            place.number,
            random.getrandbits(VECTOR_BITS) if place.vector is None else place.vector,
            place.introducers,
            random,
            place.incarnation,
            settings.period_s,
            settings.idle_period_s,
            place.watched,
            place.fallbacks,
        )
        self.incarnation = (place.incarnation & 0xFFFFFFFF) << INCARNATION_BITS
        self._random = random
        self._numbers = self.incarnation

    def next_number(self) -> int:
        """A number for versions, tickets and broadcasts; it grows, also from one incarnation to the next."""
        self._numbers += 1
        return self._numbers

    def jittered(self, seconds: float) -> float:
        """About so many seconds, so that brokers do not act at the same moment."""
        return seconds * (0.9 + 0.2 * self._random.random())

    def neighbours(self) -> list[int]:
        """Other nodes that are known from the graph."""
        peers = map(self.graph.peer, self.graph.own_keys())
        near = {contact.node for peer in peers if peer is not None for contact in peer.neighbours()}
        return sorted(near - {self.number})

    # Keys

    def insert(self, key: bytes, context: Context) -> None:
        """Begin to insert a key."""
        context.perform(self.graph.insert(key, context.now))

    def remove(self, key: bytes, context: Context) -> None:
        """Begin to remove a key."""
        context.perform(self.graph.remove(key, context.now))

    # Control messages

    def notify(self, node: int, message: MapMessage, context: Context) -> None:
        """Send a control message to one broker."""
        context.perform(self.graph.notify(node, encode_message(message), context.now))

    def carry(self, walk: Register, context: Context) -> None:
        """Send a walk to the owner of its next point."""
        key = self.keys.sought(walk.first)
        context.perform(self.graph.carry(key, encode_message(walk), context.now))

    def notify_all(self, message: MapMessage, context: Context) -> None:
        """Send a control message to all brokers."""
        identity = message_id(self.number, self.next_number())
        end = self.keys.sought((1 << self.keys.bits) - 1)
        context.perform(
            self.graph.multicast(b"", end, identity, encode_message(message), context.now)
        )
