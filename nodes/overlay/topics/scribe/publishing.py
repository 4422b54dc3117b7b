"""Publishing in Scribe: a publisher knows the roots of its topics, a root knows the topic's publishers.

A publisher looks for the root once, remembers it, and asks periodically whether it still is the root. Publications wait
until the root is known.

The root forwards requests to the publishers that have looked for it, so that a request reaches all publishers, as with
the other methods. A node that is not the root any more hands its publishers over: it looks for the new root in their
name, and the new root answers them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from nodes.overlay.topics.base import Advertised
from nodes.overlay.topics.scribe.forwarding import TreeForwarding, Uplink
from nodes.overlay.topics.scribe.routing import Routing
from nodes.overlay.topics.topic import Waiting
from nodes.overlay.topics.topic_graph import Context, TopicGraph
from nodes.protocol.scribe_messages import Look
from nodes.protocol.wire import Message

UNANSWERED = 3  # ticks, then the node looks for the root instead of asking the known one
MOST_WAITING = 64  # publications without custody, of a topic whose root is not known


@dataclass(slots=True)
class Source:
    """A topic on which the node publishes."""

    root: int | None = None
    confirmed: bool = False  # the layer above was notified that the root is known
    unanswered: int = 0  # ticks since the root was asked whether it still is
    waiting: Waiting = field(default_factory=lambda: Waiting(MOST_WAITING))


class Sources:
    """All topics on which a node publishes."""

    def __init__(
        self, graph: TopicGraph, routing: Routing, uplink: Uplink, forwarding: TreeForwarding
    ) -> None:
        self._graph = graph
        self._routing = routing
        self._uplink = uplink
        self._forwarding = forwarding
        self._sources: dict[str, Source] = {}

    def __bool__(self) -> bool:
        return bool(self._sources)

    def __contains__(self, topic: str) -> bool:
        return topic in self._sources

    def advertise(self, topic: str, context: Context) -> None:
        source = self._sources.setdefault(topic, Source())
        source.confirmed = False
        if source.root is None:
            self._look(topic, None, context)
        else:
            self.on_root(source.root, topic, context)

    def withdraw(self, topic: str) -> None:
        self._sources.pop(topic, None)

    def leave(self) -> None:
        """End all advertisements."""
        self._sources.clear()

    def holds(self, identity: int) -> bool:
        """Whether the publication with this id waits until a root is known."""
        return any(
            entry.message.message_id == identity
            for source in self._sources.values()
            for entry in source.waiting
        )

    def publish(self, message: Message, context: Context) -> None:
        """Send to the root, as soon as it is known; KeyError if the topic is not advertised."""
        source = self._sources[message.topic]
        if source.root is None:
            source.waiting.append(message, context.now)
        else:
            self._forwarding.publish(source.root, message, context)

    def on_root(self, node: int, topic: str, context: Context) -> None:
        """This node is the topic's root."""
        source = self._sources.get(topic)
        if source is None:
            return
        source.root, source.unanswered = node, 0
        if not source.confirmed:
            source.confirmed = True
            context.do(Advertised(topic))
        while source.waiting:
            self._forwarding.publish(node, source.waiting.popleft().message, context)

    def forget_node(self, number: int) -> None:
        """The node is dead."""
        for source in self._sources.values():
            if source.root == number:
                source.root = None

    def tick(self, refresh: bool, context: Context) -> None:
        """Look for roots that are not known; for all, if a refresh is due."""
        for topic, source in self._sources.items():
            late = source.unanswered >= UNANSWERED
            if refresh or late or source.root is None:
                self._look(topic, None if late else source.root, context)
            if refresh or source.unanswered:
                source.unanswered += 1

    def _look(self, topic: str, root: int | None, context: Context) -> None:
        """Ask the former root, if there is one: it answers itself, or forwards the request."""
        own = self._routing.number
        look = Look(own, 0, topic)
        if root is None or root == own or self._graph.suspects(root):
            self._uplink.send(look, context)
        else:
            self._routing.notify(root, look, context)


class Publishers:
    """The publishers on topics whose root this node is; forgotten after `forget_s` seconds without a message."""

    def __init__(self, forget_s: float) -> None:
        self._forget_s = forget_s
        self._until: dict[str, dict[int, float]] = {}

    def __bool__(self) -> bool:
        return bool(self._until)

    def add(self, topic: str, node: int, now: float) -> None:
        """The node has looked for the topic's root."""
        self._until.setdefault(topic, {})[node] = now + self._forget_s

    def of(self, topic: str) -> list[int]:
        return list(self._until.get(topic, ()))

    def forget_node(self, number: int) -> None:
        """The node is dead."""
        self._keep(lambda node, _: node != number)

    def forget_old(self, now: float) -> None:
        """Forget nodes that have not looked for long: they publish no more, or to another root."""
        self._keep(lambda _, until: until >= now)

    def hand_over(self, elsewhere: Callable[[str], bool]) -> list[tuple[str, int]]:
        """Remove and return the publishers on topics whose root is another node now."""
        gone = [topic for topic in self._until if elsewhere(topic)]
        return [(topic, node) for topic in gone for node in self._until.pop(topic)]

    def _keep(self, wanted: Callable[[int, float], bool]) -> None:
        retained = {
            topic: {node: until for node, until in nodes.items() if wanted(node, until)}
            for topic, nodes in self._until.items()
        }
        self._until = {topic: nodes for topic, nodes in retained.items() if nodes}
