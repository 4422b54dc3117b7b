"""A broker's guests and what they want, told to the topic method between brokers."""

from abc import ABC, abstractmethod

from nodes.overlay.base import Action, Peer, Send
from nodes.overlay.broker.guests import Lingering, Subscriptions, Wishes
from nodes.overlay.topics import base as topics
from nodes.overlay.topics.base import TopicNode
from nodes.protocol.interests import parse
from nodes.protocol.wire import MAX_SUBSCRIPTIONS, Kind, Message, WireError


class Attending(ABC):
    """The side of a broker that its guests see. WireError: the guest asks for what cannot be."""

    def __init__(self, number: int, node: TopicNode, by_area: bool, linger_s: float) -> None:
        self._number = number
        self._node = node
        self._subscriptions, self._advertisements = Subscriptions(by_area), Wishes()
        self._lingering = Lingering(linger_s)
        self._stands: set[str] = set()  # channels of subscriptions that the overlay has confirmed
        self._goes: set[str] = set()  # advertisements that it has
        self._to_tell: dict[tuple[Peer, str], None] = {}  # who waits for ADVERTISED
        self._out: list[Action] = []
        self._now = 0.0

    @abstractmethod
    def _perform(self, actions: list[topics.Action]) -> None:
        """Do what the topic method wants."""

    @property
    def ready(self) -> bool:
        """Whether all that guests have asked for stands."""
        wanted = all(channel in self._stands for channel in self._subscriptions.channels())
        return wanted and all(topic in self._goes for topic in self._advertisements.topics())

    # Guests

    def _subscribe(self, guest: Peer, text: str) -> None:
        if not self._subscriptions.has(guest, text) and self._subscriptions.full(guest):
            raise WireError(f"more than {MAX_SUBSCRIPTIONS} subscriptions")
        channel = self._subscriptions.channel(parse(text))
        first = not self._subscriptions.has_channel(channel)
        actions = self._node.subscribe(channel, self._now) if first else []
        self._subscriptions.add(guest, text)
        if channel in self._stands:
            self._out.append(self._confirmation(guest, Kind.SUBSCRIBED, text))
        self._perform(actions)

    def _unsubscribe(self, guest: Peer, text: str) -> None:
        if not self._subscriptions.has(guest, text):
            return
        self._subscriptions.remove(guest, text)
        channel = self._subscriptions.channel(parse(text))
        if not self._subscriptions.has_channel(channel):
            self._stands.discard(channel)
            self._perform(self._node.unsubscribe(channel, self._now))

    def _advertise(self, guest: Peer, topic: str) -> None:
        if self._advertisements.has(guest, topic):
            return
        if self._advertisements.full(guest):
            raise WireError(f"more than {MAX_SUBSCRIPTIONS} topics to publish on")
        known = self._lingering.end(topic) or topic in self._advertisements
        actions = [] if known else self._node.advertise(topic, self._now)
        self._advertisements.add(guest, topic)
        self._perform(actions)

    def _on_advertise(self, guest: Peer, topic: str) -> None:
        self._advertise(guest, topic)
        self._to_tell[guest, topic] = None
        self._tell_advertised(topic)

    def _guest_gone(self, guest: Peer) -> None:
        for text in self._subscriptions.of(guest):
            self._unsubscribe(guest, text)
        for topic in self._advertisements.of(guest):
            self._advertisements.remove(guest, topic)
            self._to_tell.pop((guest, topic), None)
            if topic not in self._advertisements:
                self._lingering.begin(topic, self._now)
        self._withdraw()

    def _withdraw(self) -> None:
        """What nobody has advertised for a while."""
        for topic in self._lingering.due(self._now):
            self._goes.discard(topic)
            self._perform(self._node.withdraw(topic, self._now))

    # The overlay

    def _subscribed(self, channel: str) -> None:
        if channel in self._stands or not self._subscriptions.has_channel(channel):
            return
        self._stands.add(channel)
        self._out += [
            self._confirmation(guest, Kind.SUBSCRIBED, text)
            for guest, text in self._subscriptions.of_channel(channel)
        ]

    def _advertised(self, topic: str) -> None:
        self._goes.add(topic)
        self._tell_advertised(topic)

    def _tell_advertised(self, topic: str) -> None:
        if topic not in self._goes:
            return
        for guest, name in [pair for pair in self._to_tell if pair[1] == topic]:
            del self._to_tell[guest, name]
            self._out.append(self._confirmation(guest, Kind.ADVERTISED, topic))

    def _confirmation(self, guest: Peer, kind: Kind, topic: str) -> Action:
        return Send(guest, Message(kind, origin=self._number, topic=topic))
