"""The clients of a broker: their subscriptions and advertisements, registered with the topic method between brokers.

Subscriptions end with the client's link. Advertisements stay for a while: a sensor that loses its link comes back soon,
here or at another broker. If its advertisement ended at once, the broker would change keys in the overlay each time.
"""

from itertools import chain
from typing import TypeVar

from nodes.overlay.base import Peer
from nodes.overlay.broker.context import Context
from nodes.overlay.topics.base import TopicNode
from nodes.protocol.interests import Interest, parse
from nodes.protocol.wire import MAX_SUBSCRIPTIONS, Kind, Message, WireError

ANCHOR_TOPIC = "\x01anchor"  # the brokers' own (`joining`); no client can name it
Value = TypeVar("Value")


class ClientTopics:
    """The clients' topics: one relation, indexed by topic and by client.

    Dicts serve as ordered sets: the order of forwarding must not depend on hashes.
    """

    def __init__(self) -> None:
        self._topics: dict[Peer, dict[str, None]] = {}
        self._clients: dict[str, dict[Peer, None]] = {}

    def __contains__(self, topic: str) -> bool:
        """Whether any client has this topic."""
        return topic in self._clients

    def topics(self) -> list[str]:
        return list(self._clients)

    def of(self, client: Peer) -> list[str]:
        return list(self._topics.get(client, ()))

    def has(self, client: Peer, topic: str) -> bool:
        return topic in self._topics.get(client, ())

    def full(self, client: Peer) -> bool:
        """Whether the client has the maximum number of topics."""
        return len(self._topics.get(client, ())) >= MAX_SUBSCRIPTIONS

    def add(self, client: Peer, topic: str) -> None:
        self._topics.setdefault(client, {})[topic] = None
        self._clients.setdefault(topic, {})[client] = None

    def remove(self, client: Peer, topic: str) -> None:
        _remove(self._topics, client, topic)
        _remove(self._clients, topic, client)


class Subscriptions(ClientTopics):
    """The same with texts of interests instead of topics.

    Each interest has a channel: the broker's subscription in the overlay because of it. That is the interest itself, if
    the topic method understands areas, else its topic; then the broker drops publications that no client wants.
    """

    def __init__(self, by_area: bool) -> None:
        super().__init__()
        self._by_area = by_area
        self._interests: dict[str, dict[str, Interest]] = {}  # topic -> text -> interest
        self._channels: dict[str, dict[str, Interest]] = {}  # channel -> text -> interest

    def channel(self, interest: Interest) -> str:
        return interest.text if self._by_area else interest.topic

    def channels(self) -> list[str]:
        """The channels of all interests."""
        return list(self._channels)

    def has_channel(self, channel: str) -> bool:
        """Whether any client has an interest with this channel."""
        return channel in self._channels

    def of_channel(self, channel: str) -> list[tuple[Peer, str]]:
        """The clients with interests of this channel, and the texts of these interests."""
        texts = self._channels.get(channel, ())
        return [(client, text) for text in texts for client in self._clients[text]]

    def wanting(self, message: Message) -> list[Peer]:
        """The clients with at least one interest in this publication, each once."""
        wanting = [
            self._clients[text]
            for text, interest in self._interests.get(message.topic, {}).items()
            if interest.accepts(message.priority, message.place)
        ]
        return list(dict.fromkeys(chain.from_iterable(wanting)))

    def add(self, client: Peer, text: str) -> None:
        interest = parse(text)
        super().add(client, text)
        self._interests.setdefault(interest.topic, {})[text] = interest
        self._channels.setdefault(self.channel(interest), {})[text] = interest

    def remove(self, client: Peer, text: str) -> None:
        super().remove(client, text)
        if text not in self:
            interest = parse(text)
            _remove(self._interests, interest.topic, text)
            _remove(self._channels, self.channel(interest), text)


class Lingering:
    """Topics that no client advertises any more, and when the broker withdraws them from the overlay."""

    def __init__(self, linger_s: float) -> None:
        self._linger_s = linger_s
        self._until: dict[str, float] = {}

    def begin(self, topic: str, now: float) -> None:
        self._until.setdefault(topic, now + self._linger_s)

    def end(self, topic: str) -> bool:
        """A client advertises the topic again; whether it lingered."""
        return self._until.pop(topic, None) is not None

    def next_deadline(self) -> float | None:
        return min(self._until.values(), default=None)

    def due(self, now: float) -> list[str]:
        over = [topic for topic, until in self._until.items() if until <= now]
        for topic in over:
            del self._until[topic]
        return over


class Clients:
    """The clients' subscriptions and advertisements, and which of them the overlay has confirmed.

    WireError: the client asks for something impossible.
    """

    def __init__(self, number: int, node: TopicNode, by_area: bool, linger_s: float) -> None:
        self.subscriptions = Subscriptions(by_area)
        self._number = number
        self._node = node
        self._advertisements = ClientTopics()
        self._lingering = Lingering(linger_s)
        self._subscribed: set[str] = set()  # channels that the overlay has confirmed
        self._advertised: set[str] = set()  # topics that the overlay has confirmed
        self._unconfirmed: dict[tuple[Peer, str], None] = {}  # clients that wait for ADVERTISED

    @property
    def ready(self) -> bool:
        """Whether the overlay has confirmed everything that clients asked for."""
        wanted = all(channel in self._subscribed for channel in self.subscriptions.channels())
        return wanted and all(topic in self._advertised for topic in self._advertisements.topics())

    def is_subscribed(self, channel: str) -> bool:
        """Whether the overlay has confirmed the subscription to this channel."""
        return channel in self._subscribed

    def is_advertised(self, topic: str) -> bool:
        """Whether a publication on the topic can be sent at once."""
        return topic in self._advertised

    # From clients

    def subscribe(self, context: Context, client: Peer, text: str) -> None:
        if not self.subscriptions.has(client, text) and self.subscriptions.full(client):
            raise WireError(f"more than {MAX_SUBSCRIPTIONS} subscriptions")
        channel = self.subscriptions.channel(parse(text))
        first = not self.subscriptions.has_channel(channel)
        actions = self._node.subscribe(channel, context.now) if first else []
        self.subscriptions.add(client, text)
        if channel in self._subscribed:
            self._confirm(context, client, Kind.SUBSCRIBED, text)
        context.perform(actions)

    def unsubscribe(self, context: Context, client: Peer, text: str) -> None:
        if not self.subscriptions.has(client, text):
            return
        self.subscriptions.remove(client, text)
        channel = self.subscriptions.channel(parse(text))
        if not self.subscriptions.has_channel(channel):
            self._subscribed.discard(channel)
            context.perform(self._node.unsubscribe(channel, context.now))

    def advertise(self, context: Context, client: Peer, topic: str) -> None:
        """The client publishes on the topic, or is going to."""
        if self._advertisements.has(client, topic):
            return
        if self._advertisements.full(client):
            raise WireError(f"more than {MAX_SUBSCRIPTIONS} topics to publish on")
        known = self._lingering.end(topic) or topic in self._advertisements
        actions = [] if known else self._node.advertise(topic, context.now)
        self._advertisements.add(client, topic)
        context.perform(actions)

    def advertise_confirmed(self, context: Context, client: Peer, topic: str) -> None:
        """The same; the client gets ADVERTISED when the overlay has the advertisement."""
        self.advertise(context, client, topic)
        self._unconfirmed[client, topic] = None
        self._confirm_advertised(context, topic)

    def end_advertisements(self, context: Context, client: Peer) -> None:
        """The client is gone; topics that no other client advertises linger."""
        for topic in self._advertisements.of(client):
            self._advertisements.remove(client, topic)
            self._unconfirmed.pop((client, topic), None)
            if topic not in self._advertisements:
                self._lingering.begin(topic, context.now)
        self.withdraw_due(context)

    # From the overlay

    def on_subscribed(self, context: Context, channel: str) -> None:
        """The overlay has confirmed the subscription."""
        if channel in self._subscribed or not self.subscriptions.has_channel(channel):
            return
        self._subscribed.add(channel)
        for client, text in self.subscriptions.of_channel(channel):
            self._confirm(context, client, Kind.SUBSCRIBED, text)

    def on_advertised(self, context: Context, topic: str) -> None:
        """The overlay has confirmed the advertisement."""
        self._advertised.add(topic)
        self._confirm_advertised(context, topic)

    def _confirm_advertised(self, context: Context, topic: str) -> None:
        if topic not in self._advertised:
            return
        for client, name in [pair for pair in self._unconfirmed if pair[1] == topic]:
            del self._unconfirmed[client, name]
            self._confirm(context, client, Kind.ADVERTISED, topic)

    def _confirm(self, context: Context, client: Peer, kind: Kind, topic: str) -> None:
        context.send(client, Message(kind, origin=self._number, topic=topic))

    # The end, and time

    def stop(self) -> None:
        """The broker leaves: it advertises nothing any more."""
        self._advertised.clear()

    def next_deadline(self) -> float | None:
        return self._lingering.next_deadline()

    def withdraw_due(self, context: Context) -> None:
        """Withdraw the topics that no client has advertised for a while."""
        for topic in self._lingering.due(context.now):
            self._advertised.discard(topic)
            context.perform(self._node.withdraw(topic, context.now))


def _remove(table: dict[str, dict[str, Value]], key: str, member: str) -> None:
    """Remove a member of a key, and the key if it has no members left."""
    members = table.get(key, {})
    members.pop(member, None)
    if not members:
        table.pop(key, None)
