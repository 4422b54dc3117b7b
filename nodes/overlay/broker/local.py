"""What a broker does for its own clients: their links and heartbeats, their requests, and the publications for them.

This is a complete broker for `nodes.overlay.star`; `Broker` adds the connection with other brokers.
"""

from collections.abc import Iterable

from nodes.overlay.base import Action, Peer, Send
from nodes.overlay.broker.context import Context
from nodes.overlay.broker.forwarding import Forwarding
from nodes.overlay.broker.pending import PendingAck, PendingAcks
from nodes.overlay.broker.recovery import Recovery, Retained
from nodes.overlay.broker.subscriptions import ANCHOR_TOPIC, Clients
from nodes.overlay.reliability.heartbeat import (
    ANSWER,
    QUESTION,
    Heartbeats,
    awaits_answer,
    heartbeat_message,
)
from nodes.overlay.reliability.settings import ReliabilitySettings
from nodes.overlay.topics import base as topics
from nodes.overlay.topics.base import TopicNode
from nodes.protocol.interests import is_plain
from nodes.protocol.wire import REPEATED, Kind, Message, WireError


class Links:
    """The links of a broker that are up, and their heartbeats."""

    def __init__(self, number: int, reliability: ReliabilitySettings) -> None:
        self.up: set[Peer] = set()
        self._number = number
        self._heartbeats = Heartbeats(reliability)

    def on_up(self, peer: Peer, now: float) -> None:
        self.up.add(peer)
        self._heartbeats.up(peer, now)

    def on_down(self, peer: Peer) -> None:
        self.up.discard(peer)
        self._heartbeats.down(peer)

    def received(self, peer: Peer, at: float) -> None:
        """The peer sent bytes or acknowledged some: it is alive, even if no whole message has come."""
        self._heartbeats.received(peer, at)

    def on_heartbeat(self, context: Context, peer: Peer, message: Message) -> None:
        """Answer a heartbeat that asks for an answer; WireError if it is neither a question nor an answer."""
        if message.payload not in (QUESTION, ANSWER):
            raise WireError("a HEARTBEAT that is neither question nor answer")
        if message.payload == QUESTION and self._heartbeats.must_answer(peer, context.now):
            context.send(peer, heartbeat_message(self._number, ANSWER))

    def ask(self, context: Context, peer: Peer) -> None:
        """Ask the peer for a sign of life; if it is a broker without a link, the shell makes one."""
        context.send(peer, heartbeat_message(self._number, QUESTION))

    def ask_silent(self, context: Context) -> tuple[Peer, ...]:
        """Ask silent peers for a sign of life. Return the peers that did not answer in time."""
        due = self._heartbeats.due(context.now)
        for peer in due.ask:
            self.ask(context, peer)
        return due.dead

    def record_sent(self, actions: Iterable[Action], now: float) -> None:
        """A message to a peer is a sign of life, and may ask for one."""
        for action in actions:
            if isinstance(action, Send):
                awaits = awaits_answer(action.message)
                self._heartbeats.sent(action.peer, now, awaits=awaits)

    def next_deadline(self) -> float | None:
        return self._heartbeats.next_deadline()


class LocalBroker:
    """The parts that every broker has, and how clients use them."""

    def __init__(
        self,
        number: int,
        node: TopicNode,
        reliability: ReliabilitySettings,
        by_area: bool,
        linger_s: float,
    ) -> None:
        self._node = node
        self.leaving = False
        self.links = Links(number, reliability)
        self.pending = PendingAcks(number, reliability.retain_s)
        self.retained = Retained(reliability.retain_s)
        self.clients = Clients(number, node, by_area, linger_s)
        self.recovery = Recovery(node, self.clients, self.retained, self.pending)
        self.forwarding = Forwarding(
            number, node, self.clients, self.recovery, self.retained, self.pending
        )

    @property
    def left(self) -> bool:
        """After `leave`: whether nothing waits for an acknowledgement."""
        return self.leaving and self._node.left and not self.pending

    def leave(self) -> None:
        """The broker is going to stop: it accepts no requests of clients any more."""
        self.leaving = True
        self.clients.stop()
        self.forwarding.stop()

    # Clients

    def on_message(self, context: Context, client: Peer, message: Message) -> None:
        """A client sent a message; WireError if it breaks the rules."""
        if message.kind is Kind.ACK:
            self.forwarding.on_ack(client, message)
        elif message.kind is Kind.HEARTBEAT:
            self.links.on_heartbeat(context, client, message)
        elif not self.leaving:
            self._on_request(context, client, message)

    def _on_request(self, context: Context, client: Peer, message: Message) -> None:
        _check_request(message)
        match message.kind:
            case Kind.PUBLISH if message.flags & REPEATED:
                self.clients.advertise(context, client, message.topic)
                self.forwarding.on_repeated(context, client, message)
            case Kind.PUBLISH:
                self.forwarding.publish(context, client, message)
            case Kind.SUBSCRIBE:
                self.clients.subscribe(context, client, message.topic)
            case Kind.UNSUBSCRIBE:
                self._unsubscribe(context, client, message.topic)
            case Kind.ADVERTISE:
                self.clients.advertise_confirmed(context, client, message.topic)
            case Kind.MISSED:
                self.recovery.on_missed(context, client, message)
            case _:
                raise WireError(f"{message.kind.name} has no place on an open link")

    def _unsubscribe(self, context: Context, client: Peer, text: str) -> None:
        self.clients.unsubscribe(context, client, text)
        self.recovery.on_unsubscribed(text)

    def on_client_gone(self, context: Context, client: Peer) -> None:
        """The link to the client is down."""
        for text in self.clients.subscriptions.of(client):
            self._unsubscribe(context, client, text)
        self.clients.end_advertisements(context, client)
        self.recovery.forget(client)
        self.pending.forget_peer(client)

    # Actions of the topic method

    def handle(self, context: Context, action: topics.Action, cause: PendingAck | None) -> None:
        """Carry out an action that concerns clients only; ignore other actions."""
        match action:
            case topics.Deliver(message):
                self.forwarding.deliver(context, message, cause)
            case topics.Subscribed(channel):
                self.clients.on_subscribed(context, channel)
                self.recovery.on_subscribed(channel, context.now)
            case topics.Advertised(topic):
                self.clients.on_advertised(context, topic)
                self.forwarding.on_advertised(context, topic)

    # Time

    def next_deadline(self) -> float | None:
        return earliest(
            self.pending.next_deadline(),
            self.links.next_deadline(),
            self.clients.next_deadline(),
            self.recovery.next_deadline(),
        )

    def on_deadline(self, context: Context) -> None:
        """Do what is due, for all parts but the links."""
        self.forwarding.resend_due(context)
        self.clients.withdraw_due(context)
        self.recovery.ask_due(context)

    def finish(self, context: Context) -> list[Action]:
        """End a call: send the acknowledgements that are complete now. Return all actions of the call."""
        self.forwarding.acknowledge(context)
        self.links.record_sent(context.actions, context.now)
        return context.actions


def earliest(*moments: float | None) -> float | None:
    """The first of these deadlines; None: there is none."""
    return min((moment for moment in moments if moment is not None), default=None)


def _check_request(message: Message) -> None:
    if message.routing:
        raise WireError("routing in a client's message; only brokers route")
    if message.topic.endswith(ANCHOR_TOPIC):  # an interest ends in its topic
        raise WireError(f"topic {message.topic!r}, which belongs to the brokers")
    if message.kind in (Kind.PUBLISH, Kind.ADVERTISE) and not is_plain(message.topic):
        raise WireError(f"{message.kind.name} of {message.topic!r}, which is no topic")
