"""A small overlay that is made up: some nodes that publish, and some that subscribe, all on one topic."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from nodes.overlay.tbps import TOPIC_METHODS
from nodes.overlay.tbps.base import Place, TopicNode
from testbed.graphs.company import Company, Publication, Wishes

TOPIC = "slope"
FIRST = 1


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
        numbers = range(FIRST, FIRST + self.publishers + self.subscribers)
        wishes = {
            number: Wishes(publishes=(TOPIC,)) if place < self.publishers else Wishes((), (TOPIC,))
            for place, number in enumerate(numbers)
        }
        return Company(self.method, self._make, wishes, Publication(FIRST, TOPIC, self.priority))

    def _make(self, number: int) -> TopicNode:
        place = Place(number, introducers=() if number == FIRST else (FIRST,))
        random = Random(f"{self.seed} {number}")
        return TOPIC_METHODS[self.method](place, self.parameters or {}, random)
