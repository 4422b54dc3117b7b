"""A broker's node in the overlay between brokers: with which number, vector and seeds it joins."""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.base import Station
from nodes.overlay.broker.apart import fallbacks
from nodes.overlay.reliability.promises import PARAMETERS
from nodes.overlay.topics.base import Place, TopicNode, TopicNodeFactory


def of_the_node(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Those parameters of a method that are not promises of the broker."""
    return {name: value for name, value in parameters.items() if name not in PARAMETERS}


def topic_node(
    make_node: TopicNodeFactory, station: Station, parameters: Mapping[str, Any], random: Random
) -> TopicNode:
    """The same vector each time for the same chance."""
    seeds = tuple(seed.number for seed in station.seeds if seed.number != station.number)
    place = Place(
        station.number,
        seeds,
        station.incarnation,
        watched=True,
        fallbacks=fallbacks(station, random),
        dimensions=station.dimensions,
    )
    return make_node(place, of_the_node(parameters), random)
