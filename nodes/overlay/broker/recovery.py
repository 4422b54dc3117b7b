"""Recovery of publications that clients and other brokers missed.

Each broker retains publications with custody for a while. A client that comes back reports what it has. The broker
sends it the rest, and asks the brokers of the publishers for more. It asks them more than once: a publisher that has
moved to another broker may not be found the first time. After the loss of a peer, the first request waits until the
overlay has repaired itself.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from nodes.overlay.base import Peer
from nodes.overlay.broker.context import Context
from nodes.overlay.broker.pending import PendingAcks
from nodes.overlay.broker.subscriptions import Clients
from nodes.overlay.reliability import digest
from nodes.overlay.reliability.digest import MAX_DIGEST_BYTES, Digest
from nodes.overlay.topics import base as topics
from nodes.overlay.topics.base import TopicNode
from nodes.protocol.interests import Interest, parse
from nodes.protocol.wire import REPEATED, Message, WireError

MAX_BYTES = 32 << 20
OVERHEAD = 500  # bytes of a publication in memory besides its payload
LATER_S = (10.0, 60.0)  # after the first request
LEAST_S = 1.0  # between two requests for a channel, however many clients come back at once
CATCH_UP_S = 120.0


class _Entry(NamedTuple):
    since: float
    message: Message
    own: bool


class Retained:
    """Publications with custody by id, bounded in time and in bytes; the oldest are dropped first."""

    def __init__(self, retain_s: float, max_bytes: int = MAX_BYTES) -> None:
        self._retain_s = retain_s
        self._max_bytes = max_bytes
        self._entries: OrderedDict[int, _Entry] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, message: Message, now: float, own: bool = False) -> None:
        """Retain a publication; a known one keeps its time. `own`: a client of this broker publishes it."""
        if message.message_id not in self._entries:
            kept = replace(message, routing=b"", flags=message.flags | REPEATED)
            self._entries[message.message_id] = _Entry(now, kept, own)
            self.bytes += _size(message)
        self._expire(now)

    def missing(self, interest: Interest, present: Digest, now: float) -> list[Message]:
        """The publications of this interest that are not in `present`, marked as repeated."""
        self._expire(now)
        return [
            entry.message.forwarded()
            for identity, entry in self._entries.items()
            if interest.wants(entry.message) and identity not in present
        ]

    def ids(self, interest: Interest, now: float) -> list[int]:
        """The ids of this interest's publications, the newest first."""
        self._expire(now)
        entries = reversed(self._entries.items())
        return [identity for identity, entry in entries if interest.wants(entry.message)]

    def published_since(self, moment: float, now: float) -> list[Message]:
        """The publications of this broker's clients since then, not marked as repeated: they are published again."""
        self._expire(now)
        own = [one.message for one in self._entries.values() if one.own and one.since >= moment]
        return [replace(one.forwarded(), flags=one.flags & ~REPEATED) for one in own]

    def _expire(self, now: float) -> None:
        while self._entries:
            identity, oldest = next(iter(self._entries.items()))
            if oldest.since + self._retain_s > now and self.bytes <= self._max_bytes:
                return
            del self._entries[identity]
            self.bytes -= _size(oldest.message)


def _size(message: Message) -> int:
    return len(message.payload) + OVERHEAD


@dataclass(frozen=True, slots=True)
class _Report:
    """The report of a client: what it has of an interest."""

    interest: Interest
    channel: str
    digest: bytes
    has: Digest
    until: float


@dataclass(slots=True)
class _Client:
    """A client that catches up, and the publications that it was sent since."""

    reports: dict[Interest, _Report] = field(default_factory=dict)
    sent: set[int] = field(default_factory=set)

    def lacks(self, message: Message) -> bool:
        """Whether the client wants this, has not reported that it has it, and was not sent it since."""
        wanting = [report for report in self.reports.values() if report.interest.wants(message)]
        present = any(message.message_id in report.has for report in wanting)
        return bool(wanting) and not present and message.message_id not in self.sent


class CatchUp:
    """Which clients catch up on which channels (`Subscriptions`), and when to ask the publishers' brokers."""

    def __init__(self, retained: Retained) -> None:
        self._retained = retained
        self._clients: dict[Peer, _Client] = {}
        self._requests: dict[str, list[float]] = {}  # channel -> moments
        self._requested: dict[str, float] = {}  # channel -> time of the last request

    def begin(
        self, client: Peer, interest: Interest, channel: str, report: bytes, now: float
    ) -> None:
        """The client reports what it has; WireError if the report is no digest."""
        until = now + CATCH_UP_S
        entry = _Report(interest, channel, report, digest.decode(report), until)
        self._clients.setdefault(client, _Client()).reports[interest] = entry
        self.request(channel, now)

    def request(self, channel: str, first: float) -> None:
        """Ask for this channel from this moment on."""
        if channel in self._requested:
            first = max(first, self._requested[channel] + LEAST_S)
        self._requests[channel] = [first, *(first + later for later in LATER_S)]

    def forget(self, client: Peer) -> None:
        self._clients.pop(client, None)

    def stop(self, channel: str) -> None:
        """No client has an interest with this channel any more."""
        self._requests.pop(channel, None)
        self._requested.pop(channel, None)

    def clients(self, channel: str, now: float) -> list[Peer]:
        """The clients that catch up on the channel."""
        self._expire(now)
        return [
            peer
            for peer, client in self._clients.items()
            if any(report.channel == channel for report in client.reports.values())
        ]

    def _expire(self, now: float) -> None:
        for peer, client in list(self._clients.items()):
            for interest, report in list(client.reports.items()):
                if report.until <= now:
                    del client.reports[interest]
            if not client.reports:
                del self._clients[peer]

    def missing(self, peer: Peer, channel: str, now: float) -> list[Message]:
        """The retained publications that the client wants, has not reported, and was not sent since."""
        client = self._clients[peer]
        found: dict[int, Message] = {}
        for report in client.reports.values():
            if report.channel == channel:
                for message in self._retained.missing(report.interest, report.has, now):
                    found[message.message_id] = message
        return [message for message in found.values() if client.lacks(message)]

    def lacking(self, message: Message, now: float) -> list[Peer]:
        """The clients that catch up and lack this publication."""
        self._expire(now)
        return [peer for peer, client in self._clients.items() if client.lacks(message)]

    def sent(self, peer: Peer, message: Message) -> None:
        """The client is sent this publication; it need not be one that catches up."""
        client = self._clients.get(peer)
        if client is not None and client.lacks(message):
            client.sent.add(message.message_id)

    def next_deadline(self) -> float | None:
        return min((moments[0] for moments in self._requests.values()), default=None)

    def due(self, now: float) -> Iterator[str]:
        """The channels to ask for now."""
        for channel, moments in list(self._requests.items()):
            if moments[0] <= now:
                self._requests[channel] = [moment for moment in moments if moment > now]
                if not self._requests[channel]:
                    del self._requests[channel]
                yield channel

    def requested(self, channel: str, now: float) -> None:
        """The publishers' brokers were asked."""
        self._requested[channel] = now

    def digest(self, channel: str, subscriptions: int, now: float) -> bytes:
        """What need not be sent: retained publications; and those of a client, if it has the only subscription."""
        own = digest.encode(self._retained.ids(parse(channel), now))
        reports = [
            report.digest
            for client in self._clients.values()
            for report in client.reports.values()
            if report.channel == channel
        ]
        only = len(reports) == subscriptions == 1
        fits = only and len(own) + len(reports[0]) <= MAX_DIGEST_BYTES
        return own + reports[0] if fits else own


class Recovery:
    """Sends clients and other brokers what they missed, and asks other brokers for what the clients missed."""

    def __init__(
        self, node: TopicNode, clients: Clients, retained: Retained, pending: PendingAcks
    ) -> None:
        self._node = node
        self._clients = clients
        self._retained = retained
        self._pending = pending
        self._catch_up = CatchUp(retained)

    # Clients

    def on_missed(self, context: Context, client: Peer, message: Message) -> None:
        """The client reports what it has; WireError if it has no such subscription."""
        text, report = message.topic, message.payload
        if not self._clients.subscriptions.has(client, text):
            raise WireError("MISSED without a subscription")
        interest = parse(text)
        channel = self._clients.subscriptions.channel(interest)
        self._catch_up.begin(client, interest, channel, report, context.now)
        self._send_retained(context, channel)
        self.ask_due(context)

    def _send_retained(self, context: Context, channel: str) -> None:
        for client in self._catch_up.clients(channel, context.now):
            for missing in self._catch_up.missing(client, channel, context.now):
                context.send(client, missing)
                self._catch_up.sent(client, missing)

    def lacking(self, message: Message, now: float) -> list[Peer]:
        """The clients that catch up and lack this publication."""
        return self._catch_up.lacking(message, now)

    def sent(self, client: Peer, message: Message) -> None:
        """The client is sent this publication."""
        self._catch_up.sent(client, message)

    def on_unsubscribed(self, text: str) -> None:
        """A client has ended this subscription; WireError if the text is no interest."""
        channel = self._clients.subscriptions.channel(parse(text))
        if not self._clients.subscriptions.has_channel(channel):
            self._catch_up.stop(channel)

    def forget(self, client: Peer) -> None:
        """The client is gone."""
        self._catch_up.forget(client)

    # The overlay

    def on_subscribed(self, channel: str, now: float) -> None:
        """The overlay has confirmed the subscription: from now on no publication is missed."""
        if self._catch_up.clients(channel, now):
            self._catch_up.request(channel, now)

    def on_restored(self, channel: str, first: float) -> None:
        """The subscription had lost its place in the overlay: ask for missed publications from this moment on."""
        if self._clients.subscriptions.has_channel(channel):
            self._catch_up.request(channel, first)

    def ask_for_all(self, first: float) -> None:
        """Ask for all channels of the clients, from this moment on."""
        for channel in self._clients.subscriptions.channels():
            self._catch_up.request(channel, first)

    def ask_due(self, context: Context) -> None:
        """Ask the publishers' brokers for the channels that are due.

        Until the overlay has confirmed the broker's own subscription, publications could be missed again, so the broker
        waits for that. Publications that reached this broker before were not delivered, but are retained.
        """
        for channel in self._catch_up.due(context.now):
            self._send_retained(context, channel)
            if self._clients.is_subscribed(channel):
                subscriptions = len(self._clients.subscriptions.of_channel(channel))
                present = self._catch_up.digest(channel, subscriptions, context.now)
                self._catch_up.requested(channel, context.now)
                context.perform(self._node.ask(channel, present, context.now))

    def answer(self, context: Context, peer: Peer, asked: topics.Asked) -> None:
        """Another broker asks for the publications that it has missed."""
        try:
            present, interest = digest.decode(asked.payload), parse(asked.topic)
        except WireError as error:
            context.refuse(peer, str(error))
            return
        for missing in self._retained.missing(interest, present, context.now):
            context.send(peer, missing)
            cause = self._pending.open(None, missing, context.now)
            self._pending.track(peer, missing, context.now, cause)

    def next_deadline(self) -> float | None:
        return self._catch_up.next_deadline()
