"""PATM-TBPS (Kita 2025, 5.4): the tables of ATM-TBPS keep the subscribers of urgent topics first.

The priority of a topic, to a node that publishes on it, is the highest that the node has published there so far, or
that in `priorities` (topic: priority) from the beginning, if that is higher. From `threshold` on it is high. This
matters where topics share a table (`table_of: node`); the table of a key has one topic only, and is that of ATM-TBPS.

The thesis does not define which nodes serve the subscribers that no table holds. `beyond: tables`: those in the table,
as in ATM-TBPS: one message for each subscriber, which fits its results. `beyond: psg`: PSG-TBPS runs in full, and the
subscribers in the table get the publication directly, too; then the roster must hold all participants, as PSG-TBPS
requires.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.topics import participants as knowledge
from nodes.overlay.topics import parts as division
from nodes.overlay.topics.atm import TABLE_PARAMETERS, TableDivision, TableRosters, Urgency
from nodes.overlay.topics.base import Place
from nodes.overlay.topics.forwarding import Forwarding, way_of
from nodes.overlay.topics.keys import Role, stands_in
from nodes.overlay.topics.membership import Membership
from nodes.overlay.topics.method import PARAMETERS, SkipGraphMethod
from nodes.overlay.topics.participants import KnownParticipants, presence
from nodes.overlay.topics.parts import Part, PartMulticast
from nodes.overlay.topics.psg import SUPPORT_PARAMETERS, SupportedMulticast
from nodes.overlay.topics.stop_go import StopGo
from nodes.overlay.topics.topic_graph import Context, TopicGraph
from nodes.parameters import check_known, one_of, whole_number
from nodes.protocol.skipgraph_messages import Multicast, Way
from nodes.protocol.wire import Message

THRESHOLD = 4  # Kita 2025: P_threshold
BEYOND = ("tables", "psg")


class PublishedUrgency(Urgency):
    """A topic that the node has advertised is urgent if it has published on it with a high priority."""

    def __init__(self, method: str, parameters: Mapping[str, Any], membership: Membership) -> None:
        self._threshold = whole_number(method, parameters, "threshold", THRESHOLD, 1, 5)
        self._priorities: dict[str, int] = dict(parameters.get("priorities", {}))
        for topic, priority in self._priorities.items():
            if priority not in range(1, 6):
                raise ValueError(f"priorities: {priority!r} for {topic!r}; there are 1 to 5")
        self._membership = membership

    def is_urgent(self, topic: str) -> bool:
        state = self._membership.get(topic)
        published = state is not None and state.advertised
        return published and self._priorities.get(topic, 0) >= self._threshold

    def on_publication(self, message: Message) -> bool:
        before = self.is_urgent(message.topic)
        if message.priority > self._priorities.get(message.topic, 0):
            self._priorities[message.topic] = message.priority
        return self.is_urgent(message.topic) != before


class UrgentFirst(Forwarding):
    """Sends parts to the subscribers in the table. If there are others, `by_support` (if given) serves all, too."""

    def __init__(
        self,
        division: TableDivision,
        participants: KnownParticipants,
        by_parts: PartMulticast,
        by_support: SupportedMulticast | None,
    ) -> None:
        self._division = division
        self._participants = participants
        self._by_parts = by_parts
        self._by_support = by_support

    def send(self, message: Message, context: Context) -> None:
        held = self._division.subscribers(message.topic, context.now)
        if self._by_support is None or not self._is_anybody_beyond(message.topic, context.now):
            self._by_parts.send(message, context)
            return
        for contact in held:
            only = Part(contact.key, contact.key + b"\0", contact)
            # By split: a flood would keep peers that have it from forwarding the multicasts of PSG-TBPS.
            self._by_parts.serve(only, message, Way.SPLIT, context)
        self._by_support.send(message, context)

    def send_again(self, multicast: Multicast, message: Message, context: Context) -> None:
        self._by_parts.send_again(multicast, message, context)

    def on_event(self, event: graph.Event, context: Context) -> bool:
        return self._by_parts.on_event(event, context)

    def on_peer_lost(self, number: int, context: Context) -> None:
        self._by_parts.on_peer_lost(number, context)

    def _is_anybody_beyond(self, topic: str, now: float) -> bool:
        """Whether this node knows subscribers that its table does not hold."""
        held = {contact.key for contact in self._division.subscribers(topic, now)}
        return any(
            contact.key not in held and stands_in(contact.key, topic, Role.SUBSCRIBER)
            for contact in self._participants.roster(topic).known(now)
        )


class PatmTbps(SkipGraphMethod):
    """A node of PATM-TBPS."""

    method = "patm-tbps"

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        tables = (*knowledge.PARAMETERS, *division.PARAMETERS, *TABLE_PARAMETERS)
        own = ("beyond", "priorities", "threshold")
        check_known(self.method, parameters, (*PARAMETERS, *tables, *SUPPORT_PARAMETERS, *own))
        beyond = one_of(self.method, parameters, "beyond", BEYOND)
        graph = TopicGraph(self.method, place, parameters, random)
        membership = Membership(graph)
        urgency = PublishedUrgency(self.method, parameters, membership)
        present_s, way = presence(self.method, parameters), way_of(parameters)
        self.rosters = TableRosters(
            self.method, parameters, graph, membership, urgency, present_s, beyond == "psg"
        )
        participants = KnownParticipants(graph, membership, self.rosters, present_s)
        self.division = TableDivision(graph, membership, self.rosters)
        by_parts = PartMulticast(graph, self.division, way, parameters)
        by_support = SupportedMulticast(graph, membership, participants, way, parameters)
        forwarding = UrgentFirst(
            self.division, participants, by_parts, by_support if beyond == "psg" else None
        )
        stop_go = StopGo(self.method, parameters, graph, membership, forwarding.send)
        super().__init__(graph, membership, forwarding, stop_go, participants)
