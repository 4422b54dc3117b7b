"""A small overlay that is made up: some nodes that publish, and some that subscribe, all on one topic.

On a map, the publication happens at one place, and every other subscriber wants only what happens around it. In a
collection each publisher has a period of its own: the first one the longest, so that its readings have the longest way.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from nodes.overlay.collection.node import Collection
from nodes.overlay.interests import Interest
from nodes.overlay.methods import TOPIC_METHODS
from nodes.overlay.tbps.base import Place, TopicNode
from nodes.overlay.zorder_map.boxes import Box
from nodes.wire import MAX_COORDINATE
from testbed.graphs.company import Company, Publication, Wishes

TOPIC = "slope"
FIRST = 1
QUARTER = MAX_COORDINATE // 4
EVENT = (QUARTER, 2 * QUARTER)  # where it happens
AROUND = Box((0, QUARTER), (2 * QUARTER, 3 * QUARTER))


@dataclass(frozen=True, slots=True)
class Example:
    """What is to be drawn."""

    method: str
    publishers: int = 3
    subscribers: int = 7
    priority: int = 5
    seed: int = 2
    parameters: Mapping[str, Any] | None = None

    def company(self) -> Company:
        """Publishers first, as in the order of keys; the first one publishes."""
        behind = FIRST + self.publishers
        publishers = range(FIRST, behind)
        on_a_map = TOPIC_METHODS[self.method].by_area
        nearby = Interest(TOPIC, AROUND).text if on_a_map else TOPIC
        wishes = {number: Wishes(publishes=(TOPIC,)) for number in publishers}
        for place in range(self.subscribers):
            wishes[behind + place] = Wishes((), (TOPIC if place % 2 else nearby,))
        collects = self.method == Collection.method
        return Company(
            self.method,
            self._make,
            wishes,
            Publication(FIRST, TOPIC, self.priority, EVENT if on_a_map else ()),
            periods={number: float(behind - number) for number in publishers} if collects else {},
        )

    def _make(self, number: int) -> TopicNode:
        place = Place(number, introducers=() if number == FIRST else (FIRST,))
        random = Random(f"{self.seed} {number}")
        return TOPIC_METHODS[self.method](place, self.parameters or {}, random)
