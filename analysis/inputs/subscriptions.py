"""The subscriptions of a run, from the interests in the manifest (`nodes.protocol.interests`)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodes.protocol.interests import Interest, parse

INTEREST_PREFIX = r"^\{[^}]*\}"  # the text before the topic of an interest


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The subscriptions of all nodes of a run."""

    by_topic: Mapping[str, tuple[tuple[str, Interest], ...]]  # receiver and interest

    def receivers(self, topic: str, priority: int, place: Iterable[int] | None) -> list[str]:
        """The nodes that should receive a publication of this topic and level; `place`: its coordinates, if any."""
        there = tuple(place or ())
        receivers = (
            receiver
            for receiver, interest in self.by_topic.get(topic, ())
            if interest.accepts(priority, there)
        )
        return list(dict.fromkeys(receivers))


def subscriptions_of(wanted: Mapping[str, Iterable[str]]) -> Subscriptions:
    """Parse the interests of each receiver."""
    by_topic: dict[str, list[tuple[str, Interest]]] = {}
    for receiver, texts in wanted.items():
        for text in texts:
            interest = parse(text)
            by_topic.setdefault(interest.topic, []).append((receiver, interest))
    return Subscriptions({topic: tuple(several) for topic, several in by_topic.items()})
