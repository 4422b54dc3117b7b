"""Who should get which publications: what subscribers want, as the manifest says it (`nodes.protocol.interests`)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodes.protocol.interests import Interest, parse

INTEREST_PREFIX = r"^\{[^}]*\}"  # what stands before the topic in the text of an interest


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """Of all subscribers of a run."""

    by_topic: Mapping[str, tuple[tuple[str, Interest], ...]]  # who wants what of it

    def receivers(self, topic: str, priority: int, place: Iterable[int] | None) -> list[str]:
        """Who should get a publication of this topic and level; `place`: its coordinates, if it has some."""
        there = tuple(place or ())
        receivers = (
            receiver
            for receiver, interest in self.by_topic.get(topic, ())
            if interest.accepts(priority, there)
        )
        return list(dict.fromkeys(receivers))


def subscriptions_of(wanted: Mapping[str, Iterable[str]]) -> Subscriptions:
    """From the texts of what each receiver wants."""
    by_topic: dict[str, list[tuple[str, Interest]]] = {}
    for receiver, texts in wanted.items():
        for text in texts:
            interest = parse(text)
            by_topic.setdefault(interest.topic, []).append((receiver, interest))
    return Subscriptions({topic: tuple(several) for topic, several in by_topic.items()})
