"""Who publishes on a topic of Scribe: at the publisher the roots of its topics, at a root the topic's publishers.

A publisher looks for the root once, remembers it, and asks from time to time whether it still is the root. What it
publishes before the root is known waits.

The root passes questions on to the publishers that have looked for it, so that a question comes to all who publish, as
with the other methods. A node that finds that it is the root no more hands them over: it looks for the new root in
their name, which answers them.
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

UNANSWERED = 3  # ticks, then the root that is known is not asked, but looked for
MOST_WAITING = 64  # publications without custody, of a topic whose root is not known


@dataclass(slots=True)
class Source:
    """A topic that the node publishes."""

    root: int | None = None
    confirmed: bool = False  # that the root is known, to the layer above
    unanswered: int = 0  # ticks since the root was asked whether it still is
    waiting: Waiting = field(default_factory=lambda: Waiting(MOST_WAITING))


class Sources:
    """All topics that a node publishes."""

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
        """Nothing is published here any more."""
        self._sources.clear()

    def holds(self, identity: int) -> bool:
        """Whether the publication with this id waits until a root is known."""
        return any(
            entry.message.message_id == identity
            for source in self._sources.values()
            for entry in source.waiting
        )

    def publish(self, message: Message, context: Context) -> None:
        """To the root, as soon as it is known; KeyError if the topic is not advertised."""
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
        """It is dead."""
        for source in self._sources.values():
            if source.root == number:
                source.root = None

    def tick(self, refresh: bool, context: Context) -> None:
        """Look for roots that are not known; for all, if it is time to refresh."""
        for topic, source in self._sources.items():
            late = source.unanswered >= UNANSWERED
            if refresh or late or source.root is None:
                self._look(topic, None if late else source.root, context)
            if refresh or source.unanswered:
                source.unanswered += 1

    def _look(self, topic: str, root: int | None, context: Context) -> None:
        """Where the root was, if that is known: it answers itself, or passes the question on."""
        own = self._routing.number
        look = Look(own, 0, topic)
        if root is None or root == own or self._graph.suspects(root):
            self._uplink.send(look, context)
        else:
            self._routing.notify(root, look, context)


class Publishers:
    """Who publishes on the topics whose root a node is. Who is not heard of for `forget_s` seconds is forgotten."""

    def __init__(self, forget_s: float) -> None:
        self._forget_s = forget_s
        self._until: dict[str, dict[int, float]] = {}

    def __bool__(self) -> bool:
        return bool(self._until)

    def add(self, topic: str, node: int, now: float) -> None:
        """It has looked for the topic's root."""
        self._until.setdefault(topic, {})[node] = now + self._forget_s

    def of(self, topic: str) -> list[int]:
        return list(self._until.get(topic, ()))

    def forget_node(self, number: int) -> None:
        """It is dead."""
        self._keep(lambda node, _: node != number)

    def forget_old(self, now: float) -> None:
        """Who has not looked for long publishes no more, or to another root."""
        self._keep(lambda _, until: until >= now)

    def hand_over(self, elsewhere: Callable[[str], bool]) -> list[tuple[str, int]]:
        """Those of topics whose root is elsewhere now; they are forgotten here."""
        gone = [topic for topic in self._until if elsewhere(topic)]
        return [(topic, node) for topic in gone for node in self._until.pop(topic)]

    def _keep(self, wanted: Callable[[int, float], bool]) -> None:
        retained = {
            topic: {node: until for node, until in nodes.items() if wanted(node, until)}
            for topic, nodes in self._until.items()
        }
        self._until = {topic: nodes for topic, nodes in retained.items() if nodes}
