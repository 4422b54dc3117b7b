"""FAN-TBPS, our own: a publication fans out to helpers that are spaced by key, and each serves its own part.

It has a roster like PSG-TBPS (`participants`). For a publication of priority p the publisher cuts the stretch of the S
subscribers it knows into k = min(S, count(p)) parts (`parts`, which states the guarantee; count(p) as PSG-TBPS counts
start nodes), and sends each part to one member, its helper. So each subscriber gets the publication once, and it costs
S messages at every priority, which is the minimum; only paths differ. With S <= k each subscriber is one hop away.
`budget` is the most messages that the publisher itself may send at once: all of them leave by its own link, one after
the other, so on a narrow link the last of many waits longer than another hop takes.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.topics import participants as knowledge
from nodes.overlay.topics import parts as division
from nodes.overlay.topics.base import Place
from nodes.overlay.topics.forwarding import subscribers_range, way_of
from nodes.overlay.topics.membership import Membership
from nodes.overlay.topics.method import PARAMETERS, SkipGraphMethod
from nodes.overlay.topics.participants import KnownParticipants, Rosters, presence
from nodes.overlay.topics.parts import Part, PartMulticast, fan_parts
from nodes.overlay.topics.psg import space_bits, start_count
from nodes.overlay.topics.stop_go import StopGo
from nodes.overlay.topics.topic_graph import TopicGraph
from nodes.parameters import check_known
from nodes.protocol.skipgraph_messages import Contact


class FanDivision:
    """Parts of about the same size; a higher priority has more of them."""

    def __init__(self, participants: KnownParticipants, budget: int | None) -> None:
        if budget is not None and (not isinstance(budget, int) or budget < 1):
            raise ValueError(f"budget {budget!r}; a publisher sends 1 message or more")
        self._participants = participants
        self._budget = budget

    def subscribers(self, topic: str, now: float) -> list[Contact]:
        return self._participants.subscribers(topic, now)

    def parts(self, topic: str, priority: int, now: float) -> list[Part]:
        subscribers = self.subscribers(topic, now)
        count = start_count(space_bits(self._participants.count(topic, now)), priority)
        if self._budget is not None:
            count = min(count, self._budget)
        return fan_parts(subscribers, count, *subscribers_range(topic))


class FanTbps(SkipGraphMethod):
    """A node of FAN-TBPS."""

    method = "fan-tbps"

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        known = (*PARAMETERS, *knowledge.PARAMETERS, *division.PARAMETERS, "budget")
        check_known(self.method, parameters, known)
        graph = TopicGraph(self.method, place, parameters, random)
        membership = Membership(graph)
        present_s = presence(self.method, parameters)
        self.rosters = Rosters(present_s)
        participants = KnownParticipants(graph, membership, self.rosters, present_s)
        self.division = FanDivision(participants, parameters.get("budget"))
        forwarding = PartMulticast(graph, self.division, way_of(parameters), parameters)
        stop_go = StopGo(self.method, parameters, graph, membership, forwarding.send)
        super().__init__(graph, membership, forwarding, stop_go, participants)
