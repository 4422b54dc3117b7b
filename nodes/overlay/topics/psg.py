"""PSG-TBPS (Kita 2025, 5.3): the more urgent a publication, the more nodes search for the subscribers at once.

As SG-TBPS; besides, the publisher sends the publication to support nodes (`supports`), in one hop each, and each of
them starts a multicast of its own. The subscriber takes what comes first. With `split` nothing is suppressed between
starts, as in the thesis: so many times as many messages. With `flood` a peer passes a publication on once.

The thesis takes for granted that a publisher knows the vectors and addresses of the topic's participants; here it has
a `roster`. Support nodes take part in the topic, so nobody becomes a relay.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.topics.base import Place
from nodes.overlay.topics.keys import Role, edge, stands_in
from nodes.overlay.topics.rostered import Rostered
from nodes.overlay.topics.supports import SUPPORT, SUPPORT_FROM, support_nodes
from nodes.protocol.skipgraph_messages import Contact, Multicast
from nodes.protocol.wire import Message


class PsgTbps(Rostered):
    """A node of PSG-TBPS."""

    method = "psg-tbps"
    more_parameters = (*Rostered.more_parameters, "support", "support_from")

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        super().__init__(place, parameters, random)
        self._support = _choice(parameters, "support", SUPPORT)
        self._support_from = _choice(parameters, "support_from", SUPPORT_FROM)

    def support_nodes(self, topic: str, priority: int, now: float) -> list[Contact]:
        """Who would start a publication of this priority besides this node."""
        own = self._own_contact(topic)
        if own is None:
            return []
        known = self._roster(topic).known(now)
        serving = known
        if self._support_from == "publishers":
            serving = [c for c in known if stands_in(c.key, topic, Role.PUBLISHER)]
        serving = [contact for contact in serving if not self.graph.suspects(contact.node)]
        participants = self._participants(topic, now)
        return support_nodes(own, serving, participants, priority, self._support)

    def _multicast(self, message: Message, now: float) -> None:
        super()._multicast(message, now)
        topic = message.topic
        low, high = edge(topic, Role.SUBSCRIBER), edge(topic, Role.SUBSCRIBER + 1)
        floor = edge(topic, Role.PUBLISHER)
        for contact in self.support_nodes(topic, message.priority, now):
            multicast = Multicast(
                contact.key,
                b"",
                self.number,
                self._way,
                floor,
                low,
                high,
                message.message_id,
                message,
            )
            self._act(self.graph.start_at(contact.node, multicast, now), now)


def _choice(parameters: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
    value = parameters.get(name, known[0])
    if value not in known:
        raise ValueError(f"{name} {value!r}; there are {', '.join(known)}")
    return str(value)
