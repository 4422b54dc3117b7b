"""Forwarding of publications: from clients and other brokers, to clients and other brokers.

A publication that the overlay delivers here goes to the clients that want it, one hop older, and not back to its
publisher. A publication with custody is retained (`recovery`), and acknowledged when all receivers have acknowledged
their copies (`pending`).
"""

from collections import OrderedDict
from math import inf

from nodes.overlay.base import Peer
from nodes.overlay.broker.context import Context
from nodes.overlay.broker.pending import Copy, PendingAck, PendingAcks, copy_of
from nodes.overlay.broker.recovery import Recovery, Retained
from nodes.overlay.broker.subscriptions import Clients
from nodes.overlay.reliability.custody import acknowledged_copy, acknowledgement, has_custody
from nodes.overlay.reliability.dedup import DedupWindow
from nodes.overlay.topics import base as topics
from nodes.overlay.topics.base import TopicNode
from nodes.protocol.wire import Message, WireError

MAX_PUBLISHERS = 4096  # publications whose client is remembered


class Forwarding:
    """The publications at one broker."""

    def __init__(
        self,
        number: int,
        node: TopicNode,
        clients: Clients,
        recovery: Recovery,
        retained: Retained,
        pending: PendingAcks,
    ) -> None:
        self._number = number
        self._node = node
        self._clients = clients
        self._recovery = recovery
        self._retained = retained
        self._pending = pending
        self._delivered = DedupWindow()
        self._publishers: OrderedDict[int, Peer] = OrderedDict()  # message id -> client
        self._unadvertised: dict[str, list[tuple[Message, PendingAck]]] = {}  # by topic

    # From clients

    def publish(self, context: Context, client: Peer, message: Message) -> None:
        """A client publishes."""
        self._clients.advertise(context, client, message.topic)
        self._publishers[message.message_id] = client
        while len(self._publishers) > MAX_PUBLISHERS:
            self._publishers.popitem(last=False)
        if not has_custody(message):
            context.perform(self._node.publish(message, context.now))
        elif not self._is_known(context, client, message):
            pending = self._open(context, client, message, own=True)
            if self._clients.is_advertised(message.topic):
                context.perform(self._node.publish(message, context.now), pending)
            elif pending is not None:
                self._pending.hold(pending, inf)
                self._unadvertised.setdefault(message.topic, []).append((message, pending))

    def on_advertised(self, context: Context, topic: str) -> None:
        """The overlay has the advertisement: send the publications that waited for it."""
        for message, pending in self._unadvertised.pop(topic, []):
            self._pending.release(pending)
            context.perform(self._node.publish(message, context.now), pending)

    def publish_again(self, context: Context, since: float) -> None:
        """Publish again what clients have published since then: these publications may not have left this broker."""
        for message in self._retained.published_since(since, context.now):
            if self._clients.is_advertised(message.topic):
                publisher = self._publishers.get(message.message_id)
                pending = self._pending.find_for_client(message.message_id, publisher)
                pending = pending or self._pending.open(None, message, context.now)
                context.perform(self._node.publish(message, context.now), pending)

    def on_repeated(self, context: Context, peer: Peer, message: Message) -> None:
        """A client or broker repeats a publication: retain it, and send it to clients that may have missed it."""
        if not has_custody(message):
            raise WireError("a repeated publication without custody")
        if self._is_known(context, peer, message):
            return
        pending = self._open(context, peer, message)
        if self._delivered.add(message.message_id):
            receivers = self._clients.subscriptions.wanting(message)
        else:
            receivers = self._recovery.lacking(message, context.now)
        others = [client for client in receivers if client != peer]
        self._send_to_clients(context, message.forwarded(), others, pending)

    # From other brokers

    def on_routed(self, context: Context, peer: Peer, number: int, message: Message) -> None:
        """Another broker forwards a publication, with a part of its route."""
        pending = None
        if has_custody(message):
            if self._is_known(context, peer, message):
                return
            pending = self._open(context, peer, message)
        actions = self._node.on_message(number, message, context.now)
        if pending is not None and any(isinstance(action, topics.Refuse) for action in actions):
            self._pending.discard(pending)
            pending = None
        context.perform(actions, pending)

    def _is_known(self, context: Context, peer: Peer, message: Message) -> bool:
        """Whether this copy came before; if the broker has acknowledged it, it does so again at once."""
        copy = copy_of(peer, message)
        if self._pending.is_closed(copy):
            context.send(peer, acknowledgement(self._number, message))
            return True
        return self._pending.is_open(copy)

    def _open(
        self, context: Context, peer: Peer, message: Message, own: bool = False
    ) -> PendingAck | None:
        self._retained.add(message, context.now, own)
        pending = self._pending.open(peer, message, context.now)
        if pending is None:
            context.note("queue-full", id=f"{message.message_id:016x}", peer=peer)
        return pending

    # Actions of the topic method

    def send(
        self, context: Context, peer: Peer, message: Message, cause: PendingAck | None
    ) -> None:
        """Send a publication to another broker."""
        context.send(peer, message)
        self._pending.track(peer, message, context.now, cause)

    def deliver(self, context: Context, message: Message, cause: PendingAck | None) -> None:
        """The overlay delivers a publication to this broker."""
        # Only a publication with custody may have come before, as a repetition.
        if has_custody(message) and not self._delivered.add(message.message_id):
            return
        publisher = self._publishers.get(message.message_id)
        wanting = self._clients.subscriptions.wanting(message)
        receivers = [client for client in wanting if client != publisher]
        self._send_to_clients(context, message.forwarded(), receivers, cause)

    def withhold(
        self, context: Context, message: Message, until: float, cause: PendingAck | None
    ) -> None:
        """There is no subscriber. If one joins until then, the topic method may still send the publication."""
        context.note("withheld", id=f"{message.message_id:016x}", topic=message.topic)
        if cause is not None:
            self._pending.hold(cause, until)

    def _send_to_clients(
        self, context: Context, message: Message, clients: list[Peer], cause: PendingAck | None
    ) -> None:
        for client in clients:
            context.send(client, message)
            self._recovery.sent(client, message)
            self._pending.track(client, message, context.now, cause)

    # Acknowledgements

    def on_ack(self, peer: Peer, message: Message) -> None:
        """The peer acknowledges a copy; WireError if the message does not identify one."""
        self._pending.on_ack(Copy(peer, message.message_id, acknowledged_copy(message)))

    def acknowledge(self, context: Context) -> None:
        """Acknowledge the copies whose own copies have all been acknowledged."""
        for peer, ack in self._pending.close(self._node.holds):
            context.send(peer, ack)

    def resend_due(self, context: Context) -> None:
        """Send copies again that have had no acknowledgement for long, and give up the oldest."""
        due = self._pending.due(context.now)
        for peer, message in due.resend:
            context.send(peer, message)
            context.note("resent", peer=peer, messages=1)
        for identity in due.given_up:
            context.note("given-up", id=f"{identity:016x}")

    def on_link_up(self, context: Context, peer: Peer) -> None:
        """Send again what may have been lost with the link before."""
        copies = self._pending.on_link_up(peer, context.now)
        for message in copies:
            context.send(peer, message)
        if copies:
            context.note("resent", peer=peer, messages=len(copies))

    def on_peer_lost(self, context: Context, peer: Peer) -> None:
        """Let the topic method serve the receivers of this lost broker by another way."""
        copies = self._pending.forget_peer(peer)
        for pending, message in copies:
            if message.routing:
                context.perform(self._node.serve_again(message, context.now), pending)
        if copies:
            context.note("served-again", peer=peer, messages=len(copies))

    def stop(self) -> None:
        """The broker leaves: publications that wait for an advertisement or a subscriber are not sent any more."""
        self._unadvertised.clear()
        self._pending.discard_held(self._node.holds)
