"""The nodes of an overlay, their topics, and the publication that is followed through it. Pure values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from nodes.overlay.collection.node import Collection
from nodes.overlay.methods import TOPIC_METHODS
from nodes.overlay.topics.base import Place, TopicNode
from nodes.protocol.interests import Interest, parse
from nodes.protocol.regions import Box
from nodes.protocol.wire import MAX_COORDINATE, Kind, Message, message_id


@dataclass(frozen=True, slots=True)
class NodeTopics:
    """Topics of a node; it subscribes to texts of interests, if the method knows areas.

    One that subscribes and publishes has the subscriber's key.
    """

    publishes: tuple[str, ...] = ()
    subscribes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Publication:
    """Publisher, topic, priority, and coordinates if the publication has a place."""

    publisher: int
    topic: str
    priority: int
    place: tuple[int, ...] = ()
    flags: int = 0

    @property
    def message(self) -> Message:
        """As the publisher sends it."""
        return Message(
            Kind.PUBLISH,
            self.priority,
            flags=self.flags,
            origin=self.publisher,
            message_id=message_id(self.publisher, 1),
            topic=self.topic,
            place=self.place,
        )


@dataclass(frozen=True, slots=True)
class Scenario:
    """Nodes of one method, by number, in the order in which they join, and one publication."""

    method: str
    make: Callable[[int], TopicNode]
    topics: Mapping[int, NodeTopics]
    publication: Publication
    names: Mapping[int, str] = field(default_factory=dict)  # none: they have numbers only
    periods: Mapping[int, float] = field(default_factory=dict)  # of readings, where they matter

    @property
    def subscribers(self) -> frozenset[int]:
        """The nodes whose subscriptions match the publication."""
        message = self.publication.message
        return frozenset(
            n for n, w in self.topics.items() if any(parse(t).wants(message) for t in w.subscribes)
        )

    @property
    def publishers(self) -> frozenset[int]:
        """The nodes that publish its topic."""
        return frozenset(n for n, w in self.topics.items() if self.publication.topic in w.publishes)


# A small example overlay: some nodes publish, and some subscribe, all on one topic.
#
# On a map, the publication happens at one place, and every other subscriber wants only what happens around it. In a
# collection each publisher has a period of its own: the first one the longest, so that its readings have the longest
# way.


TOPIC = "slope"
FIRST = 1
QUARTER = MAX_COORDINATE // 4
EVENT = (QUARTER, 2 * QUARTER)  # where it happens
AROUND = Box((0, QUARTER), (2 * QUARTER, 3 * QUARTER))


@dataclass(frozen=True, slots=True)
class Example:
    """An example to be drawn."""

    method: str
    publishers: int = 3
    subscribers: int = 7
    priority: int = 5
    seed: int = 2
    parameters: Mapping[str, Any] | None = None

    def scenario(self) -> Scenario:
        """Publishers first, as in the order of keys; the first one publishes."""
        behind = FIRST + self.publishers
        publishers = range(FIRST, behind)
        on_a_map = TOPIC_METHODS[self.method].by_area
        nearby = Interest(TOPIC, AROUND).text if on_a_map else TOPIC
        topics = {number: NodeTopics(publishes=(TOPIC,)) for number in publishers}
        for place in range(self.subscribers):
            topics[behind + place] = NodeTopics((), (TOPIC if place % 2 else nearby,))
        collects = self.method == Collection.method
        return Scenario(
            self.method,
            self._make,
            topics,
            Publication(FIRST, TOPIC, self.priority, EVENT if on_a_map else ()),
            periods={number: float(behind - number) for number in publishers} if collects else {},
        )

    def _make(self, number: int) -> TopicNode:
        place = Place(number, introducers=() if number == FIRST else (FIRST,))
        random = Random(f"{self.seed} {number}")
        return TOPIC_METHODS[self.method](place, self.parameters or {}, random)
