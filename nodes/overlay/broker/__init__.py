"""Brokers that form an overlay among themselves, with any of the topic methods (`nodes.overlay.topics`)."""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.base import OverlayFactory, Station
from nodes.overlay.broker.mesh import Mesh
from nodes.overlay.topics.base import TopicNodeFactory


def mesh_of(method: str, make_node: TopicNodeFactory) -> OverlayFactory:
    """Brokers with this topic method."""

    def make(station: Station, parameters: Mapping[str, Any], random: Random) -> Mesh:
        return Mesh(method, make_node, station, parameters, random)

    return make
