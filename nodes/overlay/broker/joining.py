"""How a broker joins the overlay between brokers: its number, vector and seeds, and the brokers through which it joins.

With the clients' topics alone, a broker without clients has no key in the graph, so others cannot join through it; and
brokers that start at the same time would each found a graph. So the seeds subscribe to a topic of their own
(`ANCHOR_TOPIC`). Until the overlay has confirmed that, a seed lets the join requests of brokers with higher numbers
wait: so the broker with the lowest number founds the graph.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.base import Station
from nodes.overlay.reliability.settings import PARAMETERS
from nodes.overlay.topics.base import Place, TopicNode, TopicNodeFactory
from nodes.protocol.skipgraph_codec import decode
from nodes.protocol.skipgraph_messages import Locate
from nodes.protocol.wire import Message, WireError

MAX_WAITING = 256  # messages; more are dropped, and sent again
FALLBACKS = 3  # brokers to ask for the way in, if no seed knows it


def fallbacks(station: Station, random: Random) -> tuple[int, ...]:
    """Brokers besides the seeds through which this one can join, too; a broker without seeds founds the graph."""
    if not station.seeds:
        return ()
    others = [broker.number for broker in station.brokers if broker not in station.seeds]
    return tuple(random.sample(others, min(FALLBACKS, len(others))))


def node_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a method that belong to the topic method, not to the broker (`reliability`)."""
    return {name: value for name, value in parameters.items() if name not in PARAMETERS}


def topic_node(
    make_node: TopicNodeFactory, station: Station, parameters: Mapping[str, Any], random: Random
) -> TopicNode:
    """The broker's node in the overlay; equal `random` gives an equal vector."""
    seeds = tuple(seed.number for seed in station.seeds if seed.number != station.number)
    place = Place(
        station.number,
        seeds,
        station.incarnation,
        watched=True,
        fallbacks=fallbacks(station, random),
        dimensions=station.dimensions,
    )
    return make_node(place, node_parameters(parameters), random)


def is_seed(station: Station) -> bool:
    """Whether others may join through this broker. Its station does not say that, but seeds have the lowest numbers."""
    before = sum(broker.number < station.number for broker in station.brokers)
    return bool(station.seeds) and before <= len(station.seeds)


class Anchor:
    """The subscription of a seed to `ANCHOR_TOPIC`; `needed`: this broker is a seed."""

    def __init__(self, number: int, needed: bool) -> None:
        self._number = number
        self._due = needed
        self._standing = not needed
        self._waiting: list[tuple[int, Message]] = []

    @property
    def standing(self) -> bool:
        """Whether the overlay has confirmed the subscription, or the broker is no seed."""
        return self._standing

    def next_deadline(self) -> float | None:
        """At once, if the subscription is still due."""
        return 0.0 if self._due else None

    def due(self) -> bool:
        """Whether to subscribe to the topic now."""
        due, self._due = self._due, False
        return due

    def keep_waiting(self, sender: int, message: Message) -> bool:
        """Whether this message is a join request that must wait until the overlay has confirmed the subscription."""
        if self._standing or sender < self._number or not _asks_for_way_in(message):
            return False
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append((sender, message))
        return True

    def stands(self) -> list[tuple[int, Message]]:
        """The overlay has confirmed the subscription; return the messages that have waited."""
        self._standing = True
        waiting, self._waiting = self._waiting, []
        return waiting


def _asks_for_way_in(message: Message) -> bool:
    try:
        return isinstance(decode(message.payload), Locate)
    except WireError:
        return False
