"""Membership: the topics that a node takes part in, and its keys in the graph.

A node that is publisher and subscriber of a topic has only the subscriber's key (Banno 2013). It changes keys without a
gap: it removes the old key when the new one is inserted.
"""

from collections.abc import Callable, Iterator

from nodes.overlay.topics.base import Advertised, Restored, Subscribed
from nodes.overlay.topics.keys import Role, edge, stands_in, topic_of
from nodes.overlay.topics.topic import Topic
from nodes.overlay.topics.topic_graph import Context, TopicGraph
from nodes.protocol.skipgraph_messages import Contact


class Membership:
    """All topics of a node. `new_topic` makes the node's state of a topic."""

    def __init__(self, graph: TopicGraph, new_topic: Callable[[str], Topic] = Topic) -> None:
        self._graph = graph
        self._new_topic = new_topic
        self._topics: dict[str, Topic] = {}

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._topics.values())

    def get(self, name: str) -> Topic | None:
        return self._topics.get(name)

    def enter(self, name: str) -> Topic:
        """The state of a topic, in which the node may take part from now on; WireError if the name fits no key."""
        if name not in self._topics:
            edge(name, Role.PUBLISHER)  # a name that cannot be a key is refused here
            self._topics[name] = self._new_topic(name)
        return self._topics[name]

    def publishing(self) -> list[Topic]:
        """Topics in which this node has a publisher's key."""
        return [topic for topic in self if Role.PUBLISHER in topic.keys]

    def published(self, name: str) -> Topic | None:
        """This topic, if the node has a publisher's key in it."""
        topic = self._topics.get(name)
        return topic if topic is not None and Role.PUBLISHER in topic.keys else None

    def contact(self, name: str) -> Contact | None:
        """This node, as other nodes of the topic know it."""
        topic = self._topics.get(name)
        if topic is not None:
            for role in (Role.SUBSCRIBER, Role.PUBLISHER):
                contact = self._graph.contact(topic.keys[role]) if role in topic.keys else None
                if contact is not None:
                    return contact
        return None

    def settle(self, topic: Topic, context: Context) -> None:
        """Insert the one key that is wanted; remove others when it is inserted."""
        wanted = topic.wanted_key(self._graph.number)
        if wanted is not None:
            self._graph.insert(wanted, context)
        if wanted is None or wanted in topic.keys.values():
            topic.keys = {role: key for role, key in topic.keys.items() if key == wanted}
            for key in self._graph.node.own_keys():
                if key != wanted and any(stands_in(key, topic.name, role) for role in Role):
                    self._graph.remove(key, context)
        if wanted is None and not topic.keys:
            self._topics.pop(topic.name, None)

    def add_key(self, key: bytes, context: Context) -> Topic | None:
        """A key is inserted; return its topic. None: the key is not wanted any more, and is removed."""
        topic = self._topics.get(topic_of(key))
        if topic is None or self._has_other(topic, key):
            self._graph.remove(key, context)
            return None
        role = next(role for role in Role if stands_in(key, topic.name, role))
        first = not topic.keys
        topic.keys[role] = key
        if topic.subscribed and role is Role.SUBSCRIBER:
            context.do(Subscribed(topic.name))
        if topic.advertised and first:
            context.do(Advertised(topic.name))
        return topic

    def on_restored(self, key: bytes, context: Context) -> None:
        """A key had lost its place in the ring, and has it again."""
        topic = self._topics.get(topic_of(key))
        if topic is not None and topic.keys.get(Role.SUBSCRIBER) == key:
            context.do(Restored(topic.name))

    def _has_other(self, topic: Topic, key: bytes) -> bool:
        """Whether the node has the key that it wants, and this is another one."""
        wanted = topic.wanted_key(self._graph.number)
        return key != wanted and wanted in topic.keys.values()
