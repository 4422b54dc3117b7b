"""ATM-TBPS (Banno and Shudo 2020; Kita 2025, 4.2): adaptive tables hold as many subscribers as have space.

A publisher enters each participant that announces itself (`participants`) in a table of `table_size` entries
(`contact_table`), and forgets those that the table evicts. It sends the publication directly to each subscriber in the
table and to each that is its neighbour in the Skip Graph, with the part of the stretch up to the next of them (`parts`,
which states the guarantee). So few subscribers are one hop away, and many are reached over the Skip Graph from the
nearest one in the table: nothing switches between the two. Each subscriber gets one message.
"""

from collections.abc import Mapping
from itertools import pairwise
from random import Random
from typing import Any

from nodes.overlay.topics import participants as knowledge
from nodes.overlay.topics import parts as division
from nodes.overlay.topics.base import Place
from nodes.overlay.topics.contact_table import ContactTable, Interest, TableOf, TableRoster
from nodes.overlay.topics.forwarding import subscribers_range, way_of
from nodes.overlay.topics.keys import Role, stands_in, topic_of
from nodes.overlay.topics.membership import Membership
from nodes.overlay.topics.method import PARAMETERS, SkipGraphMethod
from nodes.overlay.topics.participants import KnownParticipants, Roster, Rosters, presence
from nodes.overlay.topics.parts import Part, PartMulticast
from nodes.overlay.topics.stop_go import StopGo
from nodes.overlay.topics.topic_graph import TopicGraph
from nodes.parameters import check_known, one_of, whole_number
from nodes.protocol.skipgraph_messages import Contact
from nodes.protocol.wire import Message

TABLE_SIZE = 60  # Kita 2025, experiment 2
TABLE_PARAMETERS = ("table_size", "table_of")


class Urgency:
    """Which topics are urgent to the node that publishes on them: in ATM-TBPS none, as it has no priorities."""

    def is_urgent(self, topic: str) -> bool:
        return False

    def on_publication(self, message: Message) -> bool:
        """The node publishes this message; whether its topic has become urgent."""
        return False


class TableRosters(Rosters):
    """The rosters of a node whose tables hold a limited number of contacts.

    `whole`: a roster also remembers participants that its table does not hold.
    """

    def __init__(
        self,
        method: str,
        parameters: Mapping[str, Any],
        graph: TopicGraph,
        membership: Membership,
        urgency: Urgency,
        present_s: float,
        whole: bool = False,
    ) -> None:
        super().__init__(present_s)
        self._table_size = whole_number(method, parameters, "table_size", TABLE_SIZE, 1)
        self._table_of = TableOf(one_of(method, parameters, "table_of", tuple(TableOf)))
        self._graph = graph
        self._membership = membership
        self._urgency = urgency
        self._whole = whole
        self._tables: dict[str, ContactTable] = {}  # by topic; that of a node serves all topics

    def of(self, topic: str) -> Roster:
        own = self._membership.contact(topic)
        if own is None:
            return Roster(0)
        if topic not in self._rosters:
            self._tables[topic] = self._table(own)
            self._rosters[topic] = TableRoster(self._forget_s, self._tables[topic], self._whole)
        self._tables[topic].stick(self.neighbours(self._sharing(topic)))
        return self._rosters[topic]

    def table(self, topic: str) -> ContactTable:
        """The table of a topic that has a roster; KeyError if it has none."""
        return self._tables[topic]

    def neighbours(self, topics: list[str]) -> list[Contact]:
        """The neighbours of this node's keys in the topics."""
        own = [self._membership.contact(topic) for topic in topics]
        peers = [self._graph.node.peer(contact.key) for contact in own if contact is not None]
        return [contact for peer in peers if peer is not None for contact in peer.neighbours()]

    def on_publication(self, message: Message) -> None:
        if self._urgency.on_publication(message):
            self.on_keys()

    def on_keys(self) -> None:
        """Rebuild the table of the node, because its topics have changed. That of a key has one topic and stays."""
        own = {name: self._membership.contact(name) for name in self._rosters}
        self._rosters = {name: self._rosters[name] for name in own if own[name]}
        self._tables = {name: self._tables[name] for name in self._rosters}
        first = own[min(self._rosters)] if self._rosters else None
        if self._table_of is TableOf.KEY or first is None:
            return
        table = self._new_table(first)
        table.stick(self.neighbours(self._all_topics()))
        for name, roster in self._rosters.items():
            self._tables[name] = table
            if isinstance(roster, TableRoster):
                roster.move(table)

    def _all_topics(self) -> list[str]:
        return [topic.name for topic in self._membership]

    def _sharing(self, topic: str) -> list[str]:
        """The topics that share the table of this one."""
        return [topic] if self._table_of is TableOf.KEY else self._all_topics()

    def _table(self, own: Contact) -> ContactTable:
        if self._table_of is TableOf.NODE and self._tables:
            return next(iter(self._tables.values()))
        return self._new_table(own)

    def _new_table(self, own: Contact) -> ContactTable:
        topics = self._sharing(topic_of(own.key))

        def interest(contact: Contact) -> Interest:
            mine = [name for name in topics if stands_in(contact.key, name, Role.SUBSCRIBER)]
            return Interest(bool(mine), any(map(self._urgency.is_urgent, mine)))

        return ContactTable(own, self._table_size, self._table_of, interest)


class TableDivision:
    """One part for each subscriber in the table, and for each subscriber that is a neighbour in the graph."""

    def __init__(self, graph: TopicGraph, membership: Membership, rosters: TableRosters) -> None:
        self._graph = graph
        self._membership = membership
        self._rosters = rosters

    def parts(self, topic: str, priority: int, now: float) -> list[Part]:
        if self._membership.published(topic) is None:
            return []  # among the subscribers, the node gets no messages about participants
        known = self.subscribers(topic, now)
        low, high = subscribers_range(topic)
        bounds = pairwise([low, *(contact.key for contact in known[1:]), high])
        return [Part(*stretch, contact) for contact, stretch in zip(known, bounds, strict=False)]

    def subscribers(self, topic: str, now: float) -> list[Contact]:
        """The subscribers in the table and among the neighbours, in key order."""
        roster = self._rosters.of(topic)
        held = roster.held(now) if isinstance(roster, TableRoster) else []
        near = self._rosters.neighbours([topic])
        every = {contact.key: contact for contact in [*held, *near]}
        return [
            every[key]
            for key in sorted(every)
            if stands_in(key, topic, Role.SUBSCRIBER)
            and not self._graph.suspects(every[key].node)
            and every[key].node != self._graph.number
        ]


class AtmTbps(SkipGraphMethod):
    """A node of ATM-TBPS."""

    method = "atm-tbps"

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        known = (*PARAMETERS, *knowledge.PARAMETERS, *division.PARAMETERS, *TABLE_PARAMETERS)
        check_known(self.method, parameters, known)
        graph = TopicGraph(self.method, place, parameters, random)
        membership = Membership(graph)
        present_s = presence(self.method, parameters)
        self.rosters = TableRosters(
            self.method, parameters, graph, membership, Urgency(), present_s
        )
        participants = KnownParticipants(graph, membership, self.rosters, present_s)
        self.division = TableDivision(graph, membership, self.rosters)
        forwarding = PartMulticast(graph, self.division, way_of(parameters), parameters)
        stop_go = StopGo(self.method, parameters, graph, membership, forwarding.send)
        super().__init__(graph, membership, forwarding, stop_go, participants)
