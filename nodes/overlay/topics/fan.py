"""FAN-TBPS, our own: a publication fans out to helpers that are spaced by key, and each serves its own part.

With a `roster` as PSG-TBPS has it. For a publication of priority p the publisher cuts the stretch of the S subscribers
it knows into k = min(S, count(p)) parts (`parts`; count(p) as PSG-TBPS counts start nodes), and sends each part to one
member, its helper (`parted`, which says what is promised). So everyone gets the publication once and it costs S
messages at every priority, which nothing can undercut; only paths differ. With S <= k everyone is one hop away.
`budget` is the most messages that the publisher itself may send at once: all of them leave by its own line, one after
the other, so on a narrow line the last of many waits longer than another hop takes.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.topics.base import Place
from nodes.overlay.topics.keys import Role, edge
from nodes.overlay.topics.parted import Parted
from nodes.overlay.topics.parts import Part, fan_parts
from nodes.overlay.topics.supports import space_bits, start_count


class FanTbps(Parted):
    """A node of FAN-TBPS."""

    method = "fan-tbps"
    more_parameters = (*Parted.more_parameters, "budget")

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        super().__init__(place, parameters, random)
        self._budget = parameters.get("budget")
        if self._budget is not None and (not isinstance(self._budget, int) or self._budget < 1):
            raise ValueError(f"budget {self._budget!r}; a publisher sends 1 message or more")

    def parts(self, topic: str, priority: int, now: float) -> list[Part]:
        subscribers = self._subscribers(topic, now)
        count = start_count(space_bits(self._participants(topic, now)), priority)
        if self._budget is not None:
            count = min(count, self._budget)
        low, high = edge(topic, Role.SUBSCRIBER), edge(topic, Role.SUBSCRIBER + 1)
        return fan_parts(subscribers, count, low, high)
