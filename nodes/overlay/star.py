"""One broker in the middle: it knows every subscription and forwards each publication itself.

It has the parts that serve clients (`LocalBroker`), and none of those that connect brokers. By default it sends only
publications of clients and confirmations: no heartbeats, and it takes custody only of publications that come with it
(`nodes.overlay.reliability.settings`).
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.base import Action, Peer, Station
from nodes.overlay.broker.context import Context
from nodes.overlay.broker.local import LocalBroker
from nodes.overlay.reliability.settings import PARAMETERS, STAR, reliability_settings
from nodes.overlay.topics import base as topics
from nodes.parameters import check_known
from nodes.protocol.wire import Kind, Message, WireError


class LocalTopicNode:
    """A topic node without others: it confirms every request at once, and delivers every publication here."""

    def __init__(self) -> None:
        self._subscribed: set[str] = set()

    @property
    def left(self) -> bool:
        return True

    def leave(self, now: float) -> list[topics.Action]:
        return []

    def advertise(self, topic: str, now: float) -> list[topics.Action]:
        return [topics.Advertised(topic)]

    def withdraw(self, topic: str, now: float) -> list[topics.Action]:
        return []

    def subscribe(self, topic: str, now: float) -> list[topics.Action]:
        self._subscribed.add(topic)
        return [topics.Subscribed(topic)]

    def unsubscribe(self, topic: str, now: float) -> list[topics.Action]:
        self._subscribed.discard(topic)
        return []

    def publish(self, message: Message, now: float) -> list[topics.Action]:
        return [topics.Deliver(message)] if message.topic in self._subscribed else []

    def ask(self, topic: str, payload: bytes, now: float) -> list[topics.Action]:
        return []

    def serve_again(self, message: Message, now: float) -> list[topics.Action]:
        return []

    def holds(self, message_id: int) -> bool:
        return False

    def describe(self) -> dict[str, Any]:
        return {}

    def on_message(self, sender: int, message: Message, now: float) -> list[topics.Action]:
        return []

    def on_peer_lost(self, number: int, now: float) -> list[topics.Action]:
        return []

    def on_peer_found(self, number: int, now: float) -> list[topics.Action]:
        return []

    def next_deadline(self) -> float | None:
        return None

    def on_deadline(self, now: float) -> list[topics.Action]:
        return []


class Star:
    """The broker of a star. Advertisements cost nothing, so they end with the client's link."""

    def __init__(self, station: Station, parameters: Mapping[str, Any]) -> None:
        check_known(STAR, parameters, PARAMETERS)
        promised = reliability_settings(STAR, parameters)
        self._others = {broker.name for broker in station.brokers}  # a star has no place for them
        self._local = LocalBroker(
            station.number, LocalTopicNode(), promised, by_area=False, linger_s=0.0
        )

    @property
    def ready(self) -> bool:
        return self._local.clients.ready

    @property
    def left(self) -> bool:
        return self._local.left

    def leave(self, now: float) -> list[Action]:
        self._local.leave()
        return self._local.finish(Context(now, self._local.handle))

    def describe(self) -> dict[str, Any]:
        return {
            "graph": {},
            "duties": len(self._local.pending),
            "remembered": len(self._local.retained),
        }

    def on_link_up(self, peer: Peer, now: float) -> list[Action]:
        self._local.links.on_up(peer, now)
        return []

    def on_link_down(
        self, peer: Peer, now: float, orderly: bool = False, stopping: bool = False
    ) -> list[Action]:
        context = Context(now, self._local.handle)
        if peer in self._local.links.up:
            self._on_down(context, peer)
        return self._local.finish(context)

    def _on_down(self, context: Context, client: Peer) -> None:
        self._local.links.on_down(client)
        self._local.on_client_gone(context, client)

    def on_unreachable(self, peer: Peer, now: float) -> list[Action]:
        return []

    def on_activity(self, peer: Peer, at: float) -> None:
        """The peer sent bytes or acknowledged some: it is alive, even if no whole message has come."""
        self._local.links.received(peer, at)

    def on_message(self, peer: Peer, message: Message, now: float) -> list[Action]:
        context = Context(now, self._local.handle)
        self._local.links.received(peer, now)
        try:
            if peer in self._others and message.kind not in (Kind.ACK, Kind.HEARTBEAT):
                raise WireError(f"{message.kind.name} from another broker; a star has one")
            self._local.on_message(context, peer, message)
        except WireError as error:
            context.refuse(peer, str(error))
        return self._local.finish(context)

    def next_deadline(self) -> float | None:
        return self._local.next_deadline()

    def on_deadline(self, now: float) -> list[Action]:
        context = Context(now, self._local.handle)
        for peer in self._local.links.ask_silent(context):
            context.drop(peer, "silent for too long")
            self._on_down(context, peer)
        self._local.on_deadline(context)
        return self._local.finish(context)


def star(station: Station, parameters: Mapping[str, Any], random: Random) -> Star:
    """Make the broker of a star; it uses no randomness."""
    return Star(station, parameters)
