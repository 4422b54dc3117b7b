"""How brokers find the overlay, and one another: those through which the others join stand in it from the beginning on.

With topics alone, a broker without guests has no key in the graph, and cannot tell anybody the way; and brokers that
begin at the same time would found graphs of their own. So the seeds subscribe to a topic that no guest can name. While
that does not stand, those with higher numbers, who ask a seed for the way, have to wait: so the one with the lowest
number founds the graph.
"""

from nodes.overlay.base import Station
from nodes.protocol.skipgraph_codec import decode
from nodes.protocol.skipgraph_messages import Locate
from nodes.protocol.wire import Message, WireError

TOPIC = "\x01anchor"
MOST_WAITING = 256  # messages; more are forgotten, and asked again


def is_seed(station: Station) -> bool:
    """Whether others may join through this broker: nobody tells it so, but seeds have the lowest numbers."""
    before = sum(broker.number < station.number for broker in station.brokers)
    return bool(station.seeds) and before <= len(station.seeds)


class Anchor:
    """Of one broker; `needed`: it is a seed."""

    def __init__(self, number: int, needed: bool) -> None:
        self._number = number
        self._due = needed
        self._standing = not needed
        self._waiting: list[tuple[int, Message]] = []

    @property
    def standing(self) -> bool:
        """Whether others can be told the way."""
        return self._standing

    def next_deadline(self) -> float | None:
        """At once, if it is needed."""
        return 0.0 if self._due else None

    def due(self) -> bool:
        """Whether the topic is to be subscribed to now."""
        due, self._due = self._due, False
        return due

    def keep_waiting(self, sender: int, message: Message) -> bool:
        """Whether this must wait until the anchor stands: a question for the way."""
        if self._standing or sender < self._number or not _asks_for_the_way(message):
            return False
        if len(self._waiting) < MOST_WAITING:
            self._waiting.append((sender, message))
        return True

    def stands(self) -> list[tuple[int, Message]]:
        """It does: what has waited."""
        self._standing = True
        waiting, self._waiting = self._waiting, []
        return waiting


def _asks_for_the_way(message: Message) -> bool:
    try:
        return isinstance(decode(message.payload), Locate)
    except WireError:
        return False
