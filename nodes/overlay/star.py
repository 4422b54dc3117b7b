"""One broker in the middle: it knows every subscription and sends each publication on itself.

Rules: SUBSCRIBE is confirmed with SUBSCRIBED, also when repeated. PUBLISH goes, one hop older, to each subscriber
of exactly this topic except back over the link it came from. A link that goes takes its subscriptions with it.
A peer that wants more than `MAX_SUBSCRIPTIONS` topics is refused: no guest can fill the broker's memory.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.base import Action, Peer, Refuse, Send, Station
from nodes.parameters import check_known
from nodes.wire import MAX_SUBSCRIPTIONS, Kind, Message


class Star:
    """The broker of a star."""

    def __init__(self, station: Station, parameters: Mapping[str, Any], _: Random) -> None:
        check_known("star", parameters, ())
        self._station = station
        # dicts as ordered sets: the order of forwarding must not depend on hashes
        self._subscribers: dict[str, dict[Peer, None]] = {}
        self._wanted: dict[Peer, dict[str, None]] = {}

    @property
    def ready(self) -> bool:
        return True

    @property
    def left(self) -> bool:
        return True

    def on_link_up(self, peer: Peer, now: float) -> list[Action]:
        return []

    def on_link_down(self, peer: Peer, now: float, orderly: bool = False) -> list[Action]:
        for topic in list(self._wanted.get(peer, {})):
            self._forget(peer, topic)
        return []

    def on_unreachable(self, peer: Peer, now: float) -> list[Action]:
        return []

    def leave(self, now: float) -> list[Action]:
        return []

    def on_message(self, peer: Peer, message: Message, now: float) -> list[Action]:
        match message.kind:
            case Kind.PUBLISH:
                onward = message.forwarded()
                wanted = self._subscribers.get(message.topic, {})
                return [Send(other, onward) for other in wanted if other != peer]
            case Kind.SUBSCRIBE:
                return [self._subscribe(peer, message.topic)]
            case Kind.UNSUBSCRIBE:
                self._forget(peer, message.topic)
                return []
            case _:
                return [Refuse(peer, f"{message.kind.name} has no place on an open link")]

    def next_deadline(self) -> float | None:
        return None

    def on_deadline(self, now: float) -> list[Action]:
        return []

    def _subscribe(self, peer: Peer, topic: str) -> Action:
        wanted = self._wanted.setdefault(peer, {})
        if topic not in wanted and len(wanted) >= MAX_SUBSCRIPTIONS:
            return Refuse(peer, f"more than {MAX_SUBSCRIPTIONS} subscriptions")
        wanted[topic] = None
        self._subscribers.setdefault(topic, {})[peer] = None
        return Send(peer, Message(Kind.SUBSCRIBED, origin=self._station.number, topic=topic))

    def _forget(self, peer: Peer, topic: str) -> None:
        _remove(self._subscribers, topic, peer)
        _remove(self._wanted, peer, topic)


def _remove(table: dict[str, dict[str, None]], key: str, member: str) -> None:
    """Take the member out of the set under this key, and an empty set out of the table."""
    members = table.get(key, {})
    members.pop(member, None)
    if not members:
        table.pop(key, None)
