"""One broker in the middle: it knows every subscription and sends each publication on itself.

A mesh of one. By itself it sends nothing but what guests publish and confirmations: no beats, and custody only of
publications that come with it (`nodes.overlay.reliability.promises`).
"""

from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar

from nodes.overlay.base import Station
from nodes.overlay.broker.mesh import Mesh
from nodes.overlay.reliability.promises import PARAMETERS
from nodes.overlay.topics.base import Action, Advertised, Deliver, Place, Refuse, Subscribed
from nodes.parameters import check_known
from nodes.protocol.wire import Message


class Alone:
    """A topic node without others: whatever is wanted stands, whatever is published is delivered here."""

    relay_free: ClassVar[bool] = True
    by_area: ClassVar[bool] = False
    stops: ClassVar[bool] = False
    ways: ClassVar[tuple[str, ...]] = ()

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        self._wanted: set[str] = set()

    @property
    def left(self) -> bool:
        return True

    def leave(self, now: float) -> list[Action]:
        return []

    def advertise(self, topic: str, now: float) -> list[Action]:
        return [Advertised(topic)]

    def withdraw(self, topic: str, now: float) -> list[Action]:
        return []

    def subscribe(self, topic: str, now: float) -> list[Action]:
        self._wanted.add(topic)
        return [Subscribed(topic)]

    def unsubscribe(self, topic: str, now: float) -> list[Action]:
        self._wanted.discard(topic)
        return []

    def publish(self, message: Message, now: float) -> list[Action]:
        return [Deliver(message)] if message.topic in self._wanted else []

    def ask(self, topic: str, words: bytes, now: float) -> list[Action]:
        return []

    def serve_again(self, message: Message, now: float) -> list[Action]:
        return []

    def holds(self, message_id: int) -> bool:
        return False

    def describe(self) -> dict[str, Any]:
        return {}

    def on_message(self, sender: int, message: Message, now: float) -> list[Action]:
        return [Refuse(sender, f"{message.kind.name} from another broker; a star has one")]

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        return []

    def on_peer_found(self, number: int, now: float) -> list[Action]:
        return []

    def next_deadline(self) -> float | None:
        return None

    def on_deadline(self, now: float) -> list[Action]:
        return []


def star(station: Station, parameters: Mapping[str, Any], random: Random) -> Mesh:
    """The broker of a star. Advertisements cost nothing, so they go with the guest."""
    check_known("star", parameters, PARAMETERS)
    return Mesh("star", Alone, station, parameters, random, linger_s=0.0)
