"""SG-TBPS (Banno 2013): topics on a Skip Graph, without relays for topics of others, and with publishers that stop.

A publication goes by one multicast to the subscribers' stretch of keys (`forwarding`). Publishers send nothing while
there is no subscriber (`stop_go`).
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.topics.base import Place
from nodes.overlay.topics.forwarding import RangeMulticast, way_of
from nodes.overlay.topics.membership import Membership
from nodes.overlay.topics.method import PARAMETERS, SkipGraphMethod
from nodes.overlay.topics.participants import Participants
from nodes.overlay.topics.stop_go import HOLD_S, StopGo
from nodes.overlay.topics.topic_graph import TopicGraph
from nodes.parameters import check_known

__all__ = ["HOLD_S", "SgTbps"]


class SgTbps(SkipGraphMethod):
    """A node of SG-TBPS."""

    method = "sg-tbps"

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        check_known(self.method, parameters, PARAMETERS)
        graph = TopicGraph(self.method, place, parameters, random)
        membership = Membership(graph)
        forwarding = RangeMulticast(graph, way_of(parameters))
        stop_go = StopGo(self.method, parameters, graph, membership, forwarding.send)
        super().__init__(graph, membership, forwarding, stop_go, Participants())
