"""Who is to form an overlay, what each wants, and the publication that is followed through it. Pure values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nodes.overlay.tbps.base import TopicNode


@dataclass(frozen=True, slots=True)
class Wishes:
    """Topics of a node. One that subscribes and publishes has the subscriber's key."""

    publishes: tuple[str, ...] = ()
    subscribes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Publication:
    """By which node, on which topic, how urgent."""

    publisher: int
    topic: str
    priority: int


@dataclass(frozen=True, slots=True)
class Company:
    """Nodes of one method, by number, in the order in which they come."""

    method: str
    make: Callable[[int], TopicNode]
    wishes: Mapping[int, Wishes]
    publication: Publication
    names: Mapping[int, str] = field(default_factory=dict)  # none: they have numbers only

    @property
    def subscribers(self) -> frozenset[int]:
        """Of the publication's topic."""
        return frozenset(
            n for n, w in self.wishes.items() if self.publication.topic in w.subscribes
        )

    @property
    def publishers(self) -> frozenset[int]:
        """The same."""
        return frozenset(n for n, w in self.wishes.items() if self.publication.topic in w.publishes)
