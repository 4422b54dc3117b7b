"""One broker in the middle: it knows every subscription and sends each publication on itself.

Rules: SUBSCRIBE is confirmed with SUBSCRIBED, also when repeated. PUBLISH goes, one hop older, to each subscriber
of exactly this topic except back over the link it came from. A link that goes takes its subscriptions with it.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.base import Action, Peer, Refuse, Send, Station
from nodes.parameters import check_known
from nodes.wire import Kind, Message


class Star:
    """The broker of a star."""

    def __init__(self, station: Station, parameters: Mapping[str, Any], _: Random) -> None:
        check_known("star", parameters, ())
        self._station = station
        # dicts as ordered sets: the order of forwarding must not depend on hashes
        self._subscribers: dict[str, dict[Peer, None]] = {}

    def on_link_up(self, peer: Peer, now: float) -> list[Action]:
        return []

    def on_link_down(self, peer: Peer, now: float) -> list[Action]:
        for topic in [topic for topic, peers in self._subscribers.items() if peer in peers]:
            self._forget(peer, topic)
        return []

    def on_message(self, peer: Peer, message: Message, now: float) -> list[Action]:
        match message.kind:
            case Kind.PUBLISH:
                onward = message.forwarded()
                wanted = self._subscribers.get(message.topic, {})
                return [Send(other, onward) for other in wanted if other != peer]
            case Kind.SUBSCRIBE:
                self._subscribers.setdefault(message.topic, {})[peer] = None
                confirmation = Message(
                    Kind.SUBSCRIBED, origin=self._station.number, topic=message.topic
                )
                return [Send(peer, confirmation)]
            case Kind.UNSUBSCRIBE:
                self._forget(peer, message.topic)
                return []
            case Kind.HELLO | Kind.SUBSCRIBED:
                return [Refuse(peer, f"{message.kind.name} has no place on an open link")]

    def next_deadline(self) -> float | None:
        return None

    def on_deadline(self, now: float) -> list[Action]:
        return []

    def _forget(self, peer: Peer, topic: str) -> None:
        peers = self._subscribers.get(topic, {})
        peers.pop(peer, None)
        if not peers:
            self._subscribers.pop(topic, None)
