"""PATM-TBPS (Kita 2025, 5.4): the tables of ATM-TBPS keep the subscribers of urgent topics first.

A topic's priority, to a node that publishes on it, is the highest that it has published there so far, or what
`priorities` (topic: priority) says from the beginning, if that is higher. From `threshold` on it is high. This matters
where topics share a table (`table_of: node`); the table of a key has one topic only, and is that of ATM-TBPS.

What serves the subscribers that no table holds is not clear in the thesis. `beyond: tables`: those that are held, as in
ATM-TBPS: one message for everybody, which fits what it reports. `beyond: psg`: PSG-TBPS runs beside, in full, and
those that are held get the publication directly, too; then everybody must be remembered, as PSG-TBPS takes for granted.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.topics.atm import AtmTbps
from nodes.overlay.topics.base import Place
from nodes.overlay.topics.keys import Role, stands_in
from nodes.overlay.topics.parts import Part
from nodes.overlay.topics.psg import PsgTbps
from nodes.overlay.topics.topic import Topic
from nodes.parameters import one_of, whole_number
from nodes.protocol.skipgraph_messages import Way
from nodes.protocol.wire import Message

THRESHOLD = 4  # Kita 2025: P_threshold
BEYOND = ("tables", "psg")


class PatmTbps(AtmTbps, PsgTbps):
    """A node of PATM-TBPS."""

    method = "patm-tbps"
    more_parameters = tuple(
        dict.fromkeys(
            (
                *AtmTbps.more_parameters,
                *PsgTbps.more_parameters,
                "beyond",
                "priorities",
                "threshold",
            )
        )
    )

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        super().__init__(place, parameters, random)
        self._beyond = one_of(self.method, parameters, "beyond", BEYOND)
        self._remembers_all = self._beyond == "psg"
        self._threshold = whole_number(self.method, parameters, "threshold", THRESHOLD, 1, 5)
        self._priorities: dict[str, int] = dict(parameters.get("priorities", {}))
        for topic, priority in self._priorities.items():
            if priority not in range(1, 6):
                raise ValueError(f"priorities: {priority!r} for {topic!r}; there are 1 to 5")

    def _publish(self, state: Topic, message: Message, now: float) -> None:
        before = self._is_urgent(state.name)
        if message.priority > self._priorities.get(state.name, 0):
            self._priorities[state.name] = message.priority
        if self._is_urgent(state.name) != before:
            self._judge_again()
        super()._publish(state, message, now)

    def _is_urgent(self, topic: str) -> bool:
        published = topic in self._topics and self._topics[topic].advertised
        return published and self._priorities.get(topic, 0) >= self._threshold

    def _multicast(self, message: Message, now: float) -> None:
        topic = message.topic
        held = self._subscribers(topic, now)
        if self._beyond == "tables" or not self._is_anybody_beyond(topic, now):
            super()._multicast(message, now)
            return
        for contact in held:
            only = Part(contact.key, contact.key + b"\0", contact)
            # By split: as a flood, it would keep those who have it from passing on PSG-TBPS' own.
            self._serve(only, message, Way.SPLIT, now)
        PsgTbps._multicast(self, message, now)

    def _is_anybody_beyond(self, topic: str, now: float) -> bool:
        """Whether this node has heard of subscribers that its table does not hold."""
        held = {contact.key for contact in self._subscribers(topic, now)}
        return any(
            contact.key not in held and stands_in(contact.key, topic, Role.SUBSCRIBER)
            for contact in self._roster(topic).known(now)
        )
