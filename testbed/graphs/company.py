"""Who is to form an overlay, what each wants, and the publication that is followed through it. Pure values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nodes.overlay.interests import parse
from nodes.overlay.tbps.base import TopicNode
from nodes.wire import Kind, Message, message_id


@dataclass(frozen=True, slots=True)
class Wishes:
    """Topics of a node; it subscribes to texts of interests, if the method knows areas.

    One that subscribes and publishes has the subscriber's key.
    """

    publishes: tuple[str, ...] = ()
    subscribes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Publication:
    """By which node, on which topic, how urgent, and where: coordinates, if it has a place."""

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
class Company:
    """Nodes of one method, by number, in the order in which they come."""

    method: str
    make: Callable[[int], TopicNode]
    wishes: Mapping[int, Wishes]
    publication: Publication
    names: Mapping[int, str] = field(default_factory=dict)  # none: they have numbers only
    periods: Mapping[int, float] = field(default_factory=dict)  # of readings, where they matter

    @property
    def subscribers(self) -> frozenset[int]:
        """Those who want the publication."""
        message = self.publication.message
        return frozenset(
            n for n, w in self.wishes.items() if any(parse(t).wants(message) for t in w.subscribes)
        )

    @property
    def publishers(self) -> frozenset[int]:
        """Of its topic."""
        return frozenset(n for n, w in self.wishes.items() if self.publication.topic in w.publishes)
