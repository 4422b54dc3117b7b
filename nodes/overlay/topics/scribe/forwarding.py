"""Forwarding of publications in Scribe: up to the topic's root (`Uplink`), and down its tree.

A node serves each publication once: it delivers it, and forwards it to the children. It retains publications with
custody for a while, so that none is lost in a crash:

- a child that joins meanwhile gets them, too: so nodes below a dead node get them when they have found another parent;
- a node that took itself for the root, and finds that it is not, forwards them up;
- a publication that was sent up to a dead node goes up by another way, past nodes that have it already. Each such
  attempt has a number, so that no node forwards one twice.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from nodes.overlay.reliability.dedup import DedupWindow
from nodes.overlay.topics.base import Deliver, Duplicate, Send
from nodes.overlay.topics.scribe.routing import NoHop, Routing
from nodes.overlay.topics.scribe.tree import Tree
from nodes.overlay.topics.topic_graph import Context
from nodes.protocol.scribe_messages import Look, Question, RoutingSection, Toward, routing_section
from nodes.protocol.wire import CUSTODY, Message, message_id

MOST_KEPT = 256  # publications; the oldest are dropped
MOST_HELD = 256  # besides publications with custody; the oldest are dropped
MOST_HOPS = 255

# Messages on their way to a root: requests, and publications that reached another node.
Upward = Look | Question | Message


def send_publication(
    node: int, message: Message, section: RoutingSection, context: Context
) -> None:
    """Send a publication to this node."""
    context.do(Send(node, replace(message.forwarded(), routing=section.written())))


class Uplink:
    """Sends messages up to a topic's root, node by node; while the next hop is not known, it holds them.

    `arrive` takes messages that have reached their root.
    """

    def __init__(self, routing: Routing, arrive: Callable[[Upward, Context], None]) -> None:
        self._routing = routing
        self._arrive = arrive
        self._held: dict[Upward, None] = {}

    def __bool__(self) -> bool:
        """Whether messages are held."""
        return bool(self._held)

    def holds(self, identity: int) -> bool:
        """Whether the publication with this id is held."""
        return any(isinstance(one, Message) and one.message_id == identity for one in self._held)

    def send(self, one: Upward, context: Context) -> None:
        """Send one hop up, if this node is not the root."""
        hop = self._routing.next_hop(one.topic, context)
        if isinstance(hop, int):
            self._pass_on(hop, one, context)
        elif hop is NoHop.HERE:
            self._arrive(one, context)
        elif one not in self._held:
            self._held[one] = None
            others = [each for each in self._held if not _has_custody(each)]
            if len(others) > MOST_HELD:
                del self._held[others[0]]

    def go_on(self, context: Context) -> None:
        """Send the held messages."""
        held, self._held = self._held, {}
        for one in held:
            self.send(one, context)

    def _pass_on(self, node: int, one: Upward, context: Context) -> None:
        if isinstance(one, Message):
            send_publication(node, one, routing_section(one), context)
        elif one.hops < MOST_HOPS:
            self._routing.notify(node, replace(one, hops=one.hops + 1), context)


def _has_custody(one: Upward) -> bool:
    return isinstance(one, Message) and bool(one.flags & CUSTODY)


@dataclass(slots=True)
class _Retained:
    """A publication that was served here, and whether it went no farther up."""

    until: float
    message: Message
    topmost: bool = False


class TreeForwarding:
    """How a node forwards publications: its own, and those of others."""

    def __init__(
        self, routing: Routing, tree: Tree, uplink: Uplink, incarnation: int, keep_s: float
    ) -> None:
        self._routing = routing
        self._tree = tree
        self._uplink = uplink
        self._attempts = incarnation
        self._keep_s = keep_s
        self._seen = DedupWindow()
        self._seen_attempts = DedupWindow()
        self._retained: deque[_Retained] = deque(maxlen=MOST_KEPT)
        self._lost: dict[int, float] = {}  # ids of publications of a dead child; held until then

    def __bool__(self) -> bool:
        """Whether publications are retained."""
        return bool(self._retained or self._lost)

    def holds(self, identity: int) -> bool:
        """Whether nodes below a dead child may still have to join elsewhere for this publication."""
        return identity in self._lost

    def publish(self, root: int, message: Message, context: Context) -> None:
        """Send a publication of this node itself, whose root is known."""
        if root == self._routing.number:
            self._serve(message, context)
            section = RoutingSection(Toward.ROOT)
            self._uplink.send(replace(message, routing=section.written()), context)
        else:
            send_publication(root, message, RoutingSection(Toward.ROOT), context)

    def on_publication(self, sender: int, message: Message, context: Context) -> None:
        """A publication has arrived; WireError if it has no valid routing section."""
        section = routing_section(message)
        new = self._serve(replace(message, routing=b""), context)
        if section.toward is Toward.ROOT:
            if self._seen_attempts.add(section.attempt) if section.attempt else new:
                self._uplink.send(message, context)
        elif self._tree.get(message.topic) is None:
            self._tree.refuse(sender, message.topic, context)

    def on_top(self, message: Message) -> None:
        """The publication goes no farther up: this node takes itself for the root."""
        for retained in self._retained:
            if retained.message.message_id == message.message_id:
                retained.topmost = True

    def welcome(self, child: int, topic: str, context: Context) -> None:
        """Send a new child the retained publications."""
        for retained in self._retained:
            if retained.message.topic == topic:
                send_publication(child, retained.message, RoutingSection(Toward.LEAVES), context)

    def serve_again(self, message: Message, context: Context) -> None:
        """The node to which this publication was sent is dead: send it by another way."""
        section = routing_section(message)
        unsent = replace(message, routing=b"", hops=message.hops - 1)
        if section.toward is Toward.ROOT:
            self._serve(unsent, context)  # this node itself may be the root now
        if all(retained.message.message_id != message.message_id for retained in self._retained):
            self._retained.append(_Retained(context.now + self._keep_s, unsent))
        if section.toward is Toward.ROOT:
            self._send_up_again(unsent, context)
        else:
            self._lost[message.message_id] = context.now + self._keep_s / 2

    def tick(self, context: Context) -> None:
        """Drop old publications; forward those up that went no farther, if there is a route now."""
        now = context.now
        self._lost = {identity: until for identity, until in self._lost.items() if until >= now}
        while self._retained and self._retained[0].until < now:
            self._retained.popleft()
        for retained in list(self._retained):
            if retained.topmost and isinstance(
                self._routing.next_hop(retained.message.topic, context), int
            ):
                retained.topmost = False
                self._send_up_again(retained.message, context)

    def _send_up_again(self, message: Message, context: Context) -> None:
        self._attempts += 1
        section = RoutingSection(Toward.ROOT, message_id(self._routing.number, self._attempts))
        self._uplink.send(replace(message, routing=section.written()), context)

    def _serve(self, message: Message, context: Context) -> bool:
        """Deliver a new publication and forward it to the children; whether it was new."""
        if not self._seen.add(message.message_id):
            context.do(Duplicate(message))
            return False
        if message.flags & CUSTODY:
            self._retained.append(_Retained(context.now + self._keep_s, message))
        branch = self._tree.get(message.topic)
        if branch is not None:
            if branch.subscribed:
                context.do(Deliver(message))
            for child in branch.children:
                send_publication(child, message, RoutingSection(Toward.LEAVES), context)
        return True
