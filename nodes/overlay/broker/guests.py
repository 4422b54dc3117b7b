"""What the guests of a broker want: subscriptions, which go with the guest, and advertisements, which stay for a while.

A sensor that loses its link comes back soon, here or elsewhere; if its advertisement went at once, the broker would
change keys in the overlay each time.
"""

from itertools import chain
from typing import TypeVar

from nodes.overlay.base import Peer
from nodes.protocol.interests import Interest, parse
from nodes.protocol.wire import MAX_SUBSCRIPTIONS, Message

Value = TypeVar("Value")


class Wishes:
    """Who wants which topics: one relation, seen from both sides.

    Dicts as ordered sets: the order of forwarding must not depend on hashes.
    """

    def __init__(self) -> None:
        self._topics: dict[Peer, dict[str, None]] = {}
        self._guests: dict[str, dict[Peer, None]] = {}

    def __contains__(self, topic: str) -> bool:
        """Whether anybody wants it."""
        return topic in self._guests

    def topics(self) -> list[str]:
        return list(self._guests)

    def of(self, guest: Peer) -> list[str]:
        return list(self._topics.get(guest, ()))

    def guests(self, topic: str) -> list[Peer]:
        return list(self._guests.get(topic, ()))

    def has(self, guest: Peer, topic: str) -> bool:
        return topic in self._topics.get(guest, ())

    def full(self, guest: Peer) -> bool:
        """Whether the guest has as many topics as one may have."""
        return len(self._topics.get(guest, ())) >= MAX_SUBSCRIPTIONS

    def add(self, guest: Peer, topic: str) -> None:
        self._topics.setdefault(guest, {})[topic] = None
        self._guests.setdefault(topic, {})[guest] = None

    def remove(self, guest: Peer, topic: str) -> None:
        _remove(self._topics, guest, topic)
        _remove(self._guests, topic, guest)


class Subscriptions(Wishes):
    """The same with texts of interests instead of topics.

    Each interest has a channel, which is what the topic method between brokers is asked for because of it: the interest
    itself, if the method understands areas, else its topic; then what nobody here wants of that is dropped here.
    """

    def __init__(self, by_area: bool) -> None:
        super().__init__()
        self._by_area = by_area
        self._interests: dict[str, dict[str, Interest]] = {}  # topic -> text -> interest
        self._channels: dict[str, dict[str, Interest]] = {}  # channel -> text -> interest

    def channel(self, interest: Interest) -> str:
        return interest.text if self._by_area else interest.topic

    def channels(self) -> list[str]:
        """Those of all interests."""
        return list(self._channels)

    def has_channel(self, channel: str) -> bool:
        """Whether anybody wants something of it."""
        return channel in self._channels

    def of_channel(self, channel: str) -> list[tuple[Peer, str]]:
        """Guests and those of their interests that have this channel."""
        texts = self._channels.get(channel, ())
        return [(guest, text) for text in texts for guest in self._guests[text]]

    def wanting(self, message: Message) -> list[Peer]:
        """The guests of whose interests at least one wants this publication, each once."""
        wanting = [
            self._guests[text]
            for text, interest in self._interests.get(message.topic, {}).items()
            if interest.accepts(message.priority, message.place)
        ]
        return list(dict.fromkeys(chain.from_iterable(wanting)))

    def add(self, guest: Peer, text: str) -> None:
        interest = parse(text)
        super().add(guest, text)
        self._interests.setdefault(interest.topic, {})[text] = interest
        self._channels.setdefault(self.channel(interest), {})[text] = interest

    def remove(self, guest: Peer, text: str) -> None:
        super().remove(guest, text)
        if text not in self:
            interest = parse(text)
            _remove(self._interests, interest.topic, text)
            _remove(self._channels, self.channel(interest), text)


class Lingering:
    """Topics that nobody advertises any more, and when that is to be told to the others."""

    def __init__(self, linger_s: float) -> None:
        self._linger_s = linger_s
        self._until: dict[str, float] = {}

    def begin(self, topic: str, now: float) -> None:
        self._until.setdefault(topic, now + self._linger_s)

    def end(self, topic: str) -> bool:
        """Somebody advertises it again; whether it lingered."""
        return self._until.pop(topic, None) is not None

    def next_deadline(self) -> float | None:
        return min(self._until.values(), default=None)

    def due(self, now: float) -> list[str]:
        over = [topic for topic, until in self._until.items() if until <= now]
        for topic in over:
            del self._until[topic]
        return over


def _remove(table: dict[str, dict[str, Value]], key: str, member: str) -> None:
    """Take the member out of those under this key, and a key without members out of the table."""
    members = table.get(key, {})
    members.pop(member, None)
    if not members:
        table.pop(key, None)
