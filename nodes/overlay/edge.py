"""A client of the overlay: a sensor or subscriber with one link, to its current broker.

Whenever the link comes up, the client sends its subscriptions and advertisements again. It does not deliver a
publication that comes a second time.

A client sends a publication without custody to its broker at most once, also if the link is down at first (the shell
holds the queue). It stores a publication with custody (`ReliabilitySettings`) until the broker acknowledges it with
ACK, and sends it again on each new link until then. It acknowledges each publication with custody that it receives,
also a repeated one. After a break it reports what it has, so that the broker sends what it missed. It also repeats its
own recently acknowledged publications, so that the broker, perhaps a new one, remembers them for other subscribers.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from nodes.overlay.base import (
    Acknowledged,
    Action,
    Deliver,
    Drop,
    Duplicate,
    Note,
    Peer,
    Refuse,
    Send,
    Station,
)
from nodes.overlay.reliability import digest
from nodes.overlay.reliability.custody import acknowledged_copy, acknowledgement, has_custody
from nodes.overlay.reliability.dedup import DedupWindow, DeliveryRecord, RecentDeliveries
from nodes.overlay.reliability.heartbeat import ANSWER, QUESTION, Heartbeats, heartbeat_message
from nodes.overlay.reliability.outbox import Outbox, RecentlyAcknowledged
from nodes.overlay.reliability.settings import ReliabilitySettings
from nodes.protocol.interests import parse
from nodes.protocol.wire import CUSTODY, MAX_SUBSCRIPTIONS, REPEATED, Kind, Message, WireError


class Edge:
    """A node that uses the overlay and is no broker of it."""

    def __init__(
        self, station: Station, reliability: ReliabilitySettings, wanted: tuple[str, ...] = ()
    ) -> None:
        """`wanted`: its subscriptions: topics, or texts of other interests (`nodes.protocol.interests`)."""
        self._station = station
        self._reliability = reliability
        self._wanted = dict.fromkeys(wanted)  # an ordered set
        self._confirmed: set[str] = set()
        self._advertised: dict[str, None] = {}  # an ordered set
        self._broker: Peer | None = None
        self._last_broker = station.brokers[0].name
        self._again = False  # whether there was a link before
        self._heartbeats = Heartbeats(reliability)
        self._outbox = Outbox()
        self._recently_acknowledged = RecentlyAcknowledged(reliability.retain_s)
        self._dedup_window = DedupWindow()
        self._recent_deliveries = RecentDeliveries()

    @property
    def broker(self) -> Peer | None:
        """The broker to which there is a link."""
        return self._broker

    @property
    def pending(self) -> int:
        """The number of publications without an acknowledgement."""
        return len(self._outbox)

    def is_pending(self, message_id: int) -> bool:
        """Whether this publication waits here for its acknowledgement."""
        return message_id in self._outbox

    @property
    def ready(self) -> bool:
        """Whether the link is up and the broker has confirmed all subscriptions."""
        return self._broker is not None and self._confirmed.issuperset(self._wanted)

    @property
    def left(self) -> bool:
        return not self._outbox

    def leave(self, now: float) -> list[Action]:
        return []

    def describe(self) -> dict[str, Any]:
        return {"broker": self._broker, "pending": len(self._outbox)}

    # Requests of the application

    def publish(self, message: Message, now: float) -> list[Action]:
        """The application publishes a message."""
        self._will_publish(message.topic)
        if not self._reliability.custody(message.priority):
            return self._send([message], now)
        message = replace(message, flags=message.flags | CUSTODY)
        stored, evicted = self._outbox.add(message)
        actions: list[Action] = [_evicted(each, message.priority) for each in evicted]
        if not stored:
            without = replace(message, flags=message.flags & ~CUSTODY)
            return [*actions, _overflow(message), *self._send([without], now)]
        if self._broker is not None:
            self._outbox.sent(message.message_id, now)
            actions += self._send([message], now)
        return actions

    def advertise(self, topics: Iterable[str], now: float) -> list[Action]:
        """The application is going to publish on these topics."""
        new = [topic for topic in dict.fromkeys(topics) if self._will_publish(topic)]
        return [] if self._broker is None else self._send(self._advertisements(new), now)

    def restore(self, messages: Iterable[Message], now: float) -> list[Action]:
        """Publish these again: the node published them before it was restarted, without an acknowledgement."""
        return [action for message in messages for action in self.publish(message, now)]

    def repeat(self, messages: Iterable[Message], now: float) -> None:
        """Repeat these: they were published and acknowledged before the restart, and the broker may have lost them."""
        for message in messages:
            self._again = True
            self._will_publish(message.topic)
            self._recently_acknowledged.add(replace(message, flags=message.flags | CUSTODY), now)

    def resume(self, before: Iterable[DeliveryRecord]) -> None:
        """The node was ready before its restart and had delivered these, the oldest first."""
        self._again = True
        for received in before:
            self._dedup_window.add(received.message_id)
            if self._reliability.custody(received.level):
                self._recent_deliveries.add(received)

    # Events

    def on_link_up(self, peer: Peer, now: float) -> list[Action]:
        self._broker = self._last_broker = peer
        self._confirmed.clear()
        self._heartbeats.up(peer, now)
        pending = self._outbox.most_urgent_first()
        for message in pending:
            self._outbox.sent(message.message_id, now)
        messages = [self._control_message(Kind.SUBSCRIBE, topic) for topic in self._wanted]
        if self._again:
            messages += self._missed_requests(now)
        messages += self._advertisements(self._advertised)
        messages += pending
        if self._again:
            messages += [
                replace(message, flags=message.flags | REPEATED)
                for message in self._recently_acknowledged.newest(now)
            ]
        self._again = True
        return self._send(messages, now)

    def on_link_down(
        self, peer: Peer, now: float, orderly: bool = False, stopping: bool = False
    ) -> list[Action]:
        self._heartbeats.down(peer)
        if peer == self._broker:
            self._broker = None
            self._confirmed.clear()
            self._outbox.link_lost()
        return []

    def on_unreachable(self, peer: Peer, now: float) -> list[Action]:
        return []

    def on_activity(self, peer: Peer, at: float) -> None:
        """The peer sent bytes or acknowledged some: it is alive, even if no whole message has come."""
        self._heartbeats.received(peer, at)

    def on_message(self, peer: Peer, message: Message, now: float) -> list[Action]:
        if peer != self._broker:
            return []  # the node gave up the link before this message came
        self._heartbeats.received(peer, now)
        match message.kind:
            case Kind.PUBLISH:
                return self._on_publication(message, now)
            case Kind.ACK:
                return self._on_acknowledgement(peer, message, now)
            case Kind.HEARTBEAT:
                return self._on_heartbeat(peer, message, now)
            case Kind.SUBSCRIBED:
                if message.topic in self._wanted:
                    self._confirmed.add(message.topic)
            case Kind.ADVERTISED:
                pass  # earlier publications wait at the broker
            case _:
                return [Refuse(peer, f"{message.kind.name} from a broker to a node at the edge")]
        return []

    def next_deadline(self) -> float | None:
        deadlines = (self._heartbeats.next_deadline(), self._outbox.next_deadline())
        return min((each for each in deadlines if each is not None), default=None)

    def on_deadline(self, now: float) -> list[Action]:
        ask, dead = self._heartbeats.due(now)
        if dead:
            peer = dead[0]
            reason = f"no message came from {peer} for too long"
            return [Drop(peer, reason), *self.on_link_down(peer, now)]
        messages = [heartbeat_message(self._station.number, QUESTION) for _ in ask]
        return self._send([*messages, *self._outbox.due(now)], now)

    # Helpers

    def _on_publication(self, message: Message, now: float) -> list[Action]:
        custody = has_custody(message)
        new = message.message_id not in self._recent_deliveries and self._dedup_window.add(
            message.message_id
        )
        if custody and new:
            self._recent_deliveries.add(
                DeliveryRecord(message.message_id, message.topic, message.priority, now)
            )
        actions: list[Action] = [Deliver(message) if new else Duplicate(message)]
        if custody:  # in this order: ACK means that the application has the message
            actions += self._send([acknowledgement(self._station.number, message)], now)
        return actions

    def _on_acknowledgement(self, peer: Peer, ack: Message, now: float) -> list[Action]:
        try:
            acknowledged_copy(ack)
        except WireError as error:
            return [Refuse(peer, str(error))]
        message = self._outbox.remove(ack.message_id)
        if message is None:
            return []
        self._recently_acknowledged.add(message, now)
        return [Acknowledged(message.message_id)]

    def _on_heartbeat(self, peer: Peer, message: Message, now: float) -> list[Action]:
        if message.payload == QUESTION and self._heartbeats.must_answer(peer, now):
            return self._send([heartbeat_message(self._station.number, ANSWER)], now)
        return []

    def _missed_requests(self, now: float) -> list[Message]:
        """A request for the missing publications of each interest; ids of the same topic outside it do no harm."""
        if self._reliability.custody_from is None:
            return []
        topics = {text: parse(text).topic for text in self._wanted}
        here = self._recent_deliveries.since(now - self._reliability.retain_s, topics.values())
        return [
            self._control_message(Kind.MISSED, text, digest.encode(here[topic]))
            for text, topic in topics.items()
        ]

    def _will_publish(self, topic: str) -> bool:
        """Record the topic; return whether it is new."""
        if topic in self._advertised or len(self._advertised) >= MAX_SUBSCRIPTIONS:
            return False
        self._advertised[topic] = None
        return True

    def _advertisements(self, topics: Iterable[str]) -> list[Message]:
        if not self._reliability.advertise:
            return []
        return [self._control_message(Kind.ADVERTISE, topic) for topic in topics]

    def _control_message(self, kind: Kind, topic: str, payload: bytes = b"") -> Message:
        return Message(kind, origin=self._station.number, topic=topic, payload=payload)

    def _send(self, messages: Iterable[Message], now: float) -> list[Action]:
        peer = self._broker or self._last_broker
        actions: list[Action] = [Send(peer, message) for message in messages]
        if actions:
            self._heartbeats.sent(peer, now)
        return actions


def _evicted(message: Message, level: int) -> Note:
    reason = f"nobody had taken it, and it made room for a message of level {level}"
    return Note("drop", {"kind": message.kind.name, "reason": reason, **_about(message)})


def _overflow(message: Message) -> Note:
    reason = "too much waits to be taken; it goes out once and is not kept"
    return Note("overflow", {"reason": reason, **_about(message)})


def _about(message: Message) -> dict[str, object]:
    return {
        "id": f"{message.message_id:016x}",
        "topic": message.topic,
        "priority": message.priority,
    }
