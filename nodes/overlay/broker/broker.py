"""A broker among others: its clients on one side, a topic method between brokers (`TopicNode`) on the other.

    Broker ── LocalBroker: Links, Clients, Forwarding, PendingAcks, Recovery    what every broker does for its clients
           ── Anchor                                                            joining the overlay
           ── Partition                                                         other brokers that cannot be reached
           ── TopicNode                                                         routing between brokers

When a link to another broker breaks, the broker tries to make it again at once, by a heartbeat. If it succeeds, it
sends copies without acknowledgement again over the new link. If it fails, the other broker is lost. Then the topic
method serves the receivers of the lost broker by another way.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.base import Action, OverlayFactory, Peer, Station
from nodes.overlay.broker import subscriptions
from nodes.overlay.broker.context import Context
from nodes.overlay.broker.joining import Anchor, is_seed, node_parameters, topic_node
from nodes.overlay.broker.local import LocalBroker, earliest
from nodes.overlay.broker.partition import Partition
from nodes.overlay.broker.pending import PendingAck
from nodes.overlay.reliability.heartbeat import FOUND
from nodes.overlay.reliability.settings import reliability_settings
from nodes.overlay.skipgraph.node import PERIOD_S
from nodes.overlay.topics import base as topics
from nodes.overlay.topics.base import TopicNodeFactory
from nodes.overlay.topics.sg import HOLD_S
from nodes.protocol.wire import REPEATED, Kind, Message, WireError

LINGER_S = 60.0
REPAIR_PERIODS = 3  # after the loss of a peer, before the broker asks for missed publications


def broker_with(method: str, make_node: TopicNodeFactory) -> OverlayFactory:
    """A factory of brokers with this topic method."""

    def make(station: Station, parameters: Mapping[str, Any], random: Random) -> Broker:
        return Broker(method, make_node, station, parameters, random)

    return make


class Broker:
    """A broker's part of an overlay of many brokers, with any topic method."""

    def __init__(
        self,
        method: str,
        make_node: TopicNodeFactory,
        station: Station,
        parameters: Mapping[str, Any],
        random: Random,
    ) -> None:
        promised = reliability_settings(method, parameters)
        self._numbers = {broker.name: broker.number for broker in station.brokers}
        self._names = {broker.number: broker.name for broker in station.brokers}
        self._node = topic_node(make_node, station, parameters, random)  # checks its parameters
        others = node_parameters(parameters)
        repair_s = REPAIR_PERIODS * float(others.get("period_s", PERIOD_S))
        self._hold_s = float(others.get("hold_s", HOLD_S))
        self._local = LocalBroker(station.number, self._node, promised, make_node.by_area, LINGER_S)
        self._partition = Partition(
            station, self._node, self._local, promised.retain_s, repair_s, random
        )
        self._anchor = Anchor(station.number, is_seed(station))

    @property
    def ready(self) -> bool:
        """Whether the overlay has confirmed everything that clients asked for and, on a seed, its anchor."""
        return self._anchor.standing and self._local.clients.ready

    @property
    def left(self) -> bool:
        return self._local.left

    def leave(self, now: float) -> list[Action]:
        context = Context(now, self._handle)
        self._local.leave()
        context.perform(self._node.leave(now))
        return self._finish(context)

    def describe(self) -> dict[str, Any]:
        return {
            "graph": self._node.describe(),
            "duties": len(self._local.pending),
            "remembered": len(self._local.retained),
        }

    # Links

    def on_link_up(self, peer: Peer, now: float) -> list[Action]:
        context = Context(now, self._handle)
        self._local.links.on_up(peer, now)
        if peer in self._numbers:
            self._local.forwarding.on_link_up(context, peer)
            self._partition.on_link_up(context, peer)
        return self._finish(context)

    def on_link_down(
        self, peer: Peer, now: float, orderly: bool = False, stopping: bool = False
    ) -> list[Action]:
        context = Context(now, self._handle)
        if peer in self._local.links.up:
            if stopping:
                self._partition.on_stopping(peer)
            self._on_down(context, peer, orderly)
        return self._finish(context)

    def _on_down(self, context: Context, peer: Peer, orderly: bool) -> None:
        self._local.links.on_down(peer)
        if peer not in self._numbers:
            self._local.on_client_gone(context, peer)
        elif not orderly:
            self._local.pending.on_link_broken(peer)
            self._local.links.ask(context, peer)

    def on_activity(self, peer: Peer, at: float) -> None:
        """The peer sent bytes or acknowledged some: it is alive, even if no whole message has come."""
        self._local.links.received(peer, at)

    def on_unreachable(self, peer: Peer, now: float) -> list[Action]:
        number = self._numbers.get(peer)
        if number is None or peer in self._local.links.up:
            return []
        context = Context(now, self._handle)
        if self._partition.on_unreachable(context, peer):
            context.perform(self._node.on_peer_lost(number, now))
            self._local.forwarding.on_peer_lost(context, peer)
        return self._finish(context)

    # Time

    def next_deadline(self) -> float | None:
        return earliest(
            self._anchor.next_deadline(),
            self._node.next_deadline(),
            self._local.next_deadline(),
            self._partition.next_deadline(),
        )

    def on_deadline(self, now: float) -> list[Action]:
        context = Context(now, self._handle)
        if self._anchor.due():
            context.perform(self._node.subscribe(subscriptions.ANCHOR_TOPIC, now))
        for peer in self._local.links.ask_silent(context):
            context.drop(peer, "silent for too long")
            self._on_down(context, peer, orderly=False)
        self._local.on_deadline(context)
        if (since := self._partition.repaired(now)) is not None:
            self._local.forwarding.publish_again(context, since)
        self._partition.probe(context)
        context.perform(self._node.on_deadline(now))
        return self._finish(context)

    # Messages

    def on_message(self, peer: Peer, message: Message, now: float) -> list[Action]:
        context = Context(now, self._handle)
        self._local.links.received(peer, now)
        try:
            if (number := self._numbers.get(peer)) is None:
                self._local.on_message(context, peer, message)
            else:
                self._on_broker(context, peer, number, message)
        except WireError as error:
            context.refuse(peer, str(error))
        return self._finish(context)

    def _on_broker(self, context: Context, peer: Peer, number: int, message: Message) -> None:
        match message.kind:
            case Kind.OVERLAY:
                if not self._anchor.keep_waiting(number, message):
                    context.perform(self._node.on_message(number, message, context.now))
            case Kind.PUBLISH if message.routing:
                self._local.forwarding.on_routed(context, peer, number, message)
            case Kind.PUBLISH if message.flags & REPEATED:
                self._local.forwarding.on_repeated(context, peer, message)
            case Kind.JOINED:
                context.perform(self._node.on_message(number, message, context.now))
            case Kind.ACK:
                self._local.forwarding.on_ack(peer, message)
            case Kind.HEARTBEAT if message.payload == FOUND:
                self._partition.on_found(context, peer)
            case Kind.HEARTBEAT:
                self._local.links.on_heartbeat(context, peer, message)
            case _:
                raise WireError(f"{message.kind.name} has no place between brokers")

    # Actions of the topic method

    def _handle(self, context: Context, action: topics.Action, cause: PendingAck | None) -> None:
        """Carry out one action of the topic method, for `context.perform`."""
        match action:
            case topics.Send(number, message):
                if (peer := self._names.get(number)) is not None:
                    self._partition.on_sent(peer)
                    self._local.forwarding.send(context, peer, message, cause)
                # Else the topic method finds out that this number does not answer.
            case topics.Withheld(message):
                until = context.now + self._hold_s
                self._local.forwarding.withhold(context, message, until, cause)
            case topics.Subscribed(subscriptions.ANCHOR_TOPIC):
                for number, message in self._anchor.stands():
                    context.perform(self._node.on_message(number, message, context.now), cause)
            case topics.Restored(channel):
                first = self._partition.after_repair(context.now)
                self._local.recovery.on_restored(channel, first)
            case topics.Suspected(number):
                self._on_suspected(context, number, cause)
            case topics.Refuse(number, reason):
                if (peer := self._names.get(number)) is not None:
                    context.refuse(peer, reason)
            case topics.Asked(number):
                if (peer := self._names.get(number)) is not None:
                    self._local.recovery.answer(context, peer, action)
            case _:
                self._local.handle(context, action, cause)

    def _on_suspected(self, context: Context, number: int, cause: PendingAck | None) -> None:
        """The topic method suspects this broker: ask it for a sign of life, over its link or a new one."""
        if (peer := self._names.get(number)) is None:
            context.perform(self._node.on_peer_lost(number, context.now), cause)
        else:
            self._partition.on_sent(peer)
            self._local.links.ask(context, peer)

    def _finish(self, context: Context) -> list[Action]:
        self._partition.hold_acknowledgements(context.now)
        return self._local.finish(context)
