"""One call of a topic node, and the Skip Graph below it, as the parts of the node use it.

A node makes a `Context` for each call of its interface (`base.TopicNode`) and passes it to its parts. When a part calls
the graph (`TopicGraph`), the node handles the result at once, before the part goes on: messages to send become actions
of the call, and the node passes every event of the graph to the part concerned.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.skipgraph.node import IDLE_PERIOD_S, PERIOD_S, SkipGraphNode
from nodes.overlay.topics.base import Action, Place, Refuse
from nodes.parameters import seconds
from nodes.protocol.skipgraph_messages import VECTOR_BITS, Contact, Multicast, Way
from nodes.protocol.wire import Message, WireError, message_id

NEVER_S = 1e9  # the longest period
PARAMETERS = ("period_s", "idle_period_s")


@dataclass(slots=True)
class Context:
    """One call of a topic node: its time, its cause, and the actions that it has produced so far, in order.

    `on_graph` handles a result of the Skip Graph. `sender` is the node whose message is handled; None: no message.
    """

    now: float
    on_graph: Callable[[list[graph.Action], "Context"], None]
    sender: int | None = None
    actions: list[Action] = field(default_factory=list)

    def do(self, action: Action) -> None:
        """Add an action for the shell, after all actions before."""
        self.actions.append(action)

    def perform(self, actions: list[graph.Action]) -> None:
        """Handle actions and events of the Skip Graph."""
        self.on_graph(actions, self)

    @contextmanager
    def refusing(self, sender: int) -> Iterator[None]:
        """Refuse the sender's message if it turns out to be malformed while it is handled."""
        try:
            yield
        except WireError as error:
            self.do(Refuse(sender, str(error)))


class TopicGraph:
    """A node's place in the Skip Graph: its keys, and its messages to others over the graph."""

    def __init__(
        self, method: str, place: Place, parameters: Mapping[str, Any], random: Random
    ) -> None:
        self.number = place.number
        self.period_s = seconds(method, parameters, "period_s", PERIOD_S, NEVER_S)
        self.idle_s = seconds(method, parameters, "idle_period_s", IDLE_PERIOD_S, NEVER_S)
        self.node = SkipGraphNode(
            place.number,
            random.getrandbits(VECTOR_BITS) if place.vector is None else place.vector,
            place.introducers,
            random,
            place.incarnation,
            self.period_s,
            self.idle_s,
            place.watched,
            place.fallbacks,
        )
        self._multicasts = place.incarnation

    def contact(self, key: bytes) -> Contact | None:
        """The own peer with this key, as others know it."""
        peer = self.node.peer(key)
        return None if peer is None else peer.me

    def suspects(self, number: int) -> bool:
        """Whether this node is taken for dead."""
        return self.node.suspects(number)

    # Keys

    def insert(self, key: bytes, context: Context) -> None:
        """Begin to insert a key."""
        context.perform(self.node.insert(key, context.now))

    def remove(self, key: bytes, context: Context) -> None:
        """Begin to remove a key."""
        context.perform(self.node.remove(key, context.now))

    # Control messages

    def notify(self, node: int, body: bytes, context: Context) -> None:
        """Send a control message to one node."""
        context.perform(self.node.notify(node, body, context.now))

    def carry(self, key: bytes, body: bytes, context: Context) -> None:
        """Send a control message to the node that has this key in its gap."""
        context.perform(self.node.carry(key, body, context.now))

    def notify_all(
        self, low: bytes, high: bytes, body: bytes, context: Context, way: Way = Way.SPLIT
    ) -> None:
        """Send a control message to all keys in [low, high)."""
        self._multicasts += 1
        identity = message_id(self.number, self._multicasts)
        context.perform(self.node.multicast(low, high, identity, body, context.now, way))

    # Publications

    def publish(
        self,
        low: bytes,
        high: bytes,
        message: Message,
        context: Context,
        way: Way,
        floor: bytes | None = None,
    ) -> None:
        """Send a publication to all keys in [low, high); a flood may also pass those from `floor` on."""
        identity = message.message_id
        context.perform(self.node.multicast(low, high, identity, message, context.now, way, floor))

    def start_at(self, node: int, multicast: Multicast, context: Context) -> None:
        """Let a peer of another node begin a multicast."""
        context.perform(self.node.start_at(node, multicast, context.now))

    def serve_again(self, multicast: Multicast, context: Context) -> None:
        """Serve a part again that went to a dead node."""
        context.perform(self.node.serve_again(multicast, context.now))
