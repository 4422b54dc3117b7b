"""ATM-TBPS (Banno and Shudo 2020; Kita 2025, 4.2): tables that adapt hold the subscribers, as far as there is room.

A publisher enters whoever tells of himself (`roster`) in a table of `table_size` entries (`contact_table`); whom it
lets go it forgets. The subscribers that it holds, and those that are its neighbours in the Skip Graph, each get the
publication directly, with the part of the stretch up to the next of them (`parted`, which says what is promised).
So few subscribers are one hop away, and many are reached over the Skip Graph from the nearest one that is held: nothing
switches between the two. Everybody gets one message.
"""

from collections.abc import Mapping
from itertools import pairwise
from random import Random
from typing import Any

from nodes.overlay.topics.base import Place
from nodes.overlay.topics.contact_table import ContactTable, Interest, TableOf, TableRoster
from nodes.overlay.topics.keys import Role, edge, stands_in, topic_of
from nodes.overlay.topics.parted import Parted
from nodes.overlay.topics.parts import Part
from nodes.overlay.topics.roster import Roster
from nodes.overlay.topics.topic import Topic
from nodes.parameters import one_of, whole_number
from nodes.protocol.skipgraph_messages import Contact

TABLE_SIZE = 60  # Kita 2025, experiment 2


class AtmTbps(Parted):
    """A node of ATM-TBPS."""

    method = "atm-tbps"
    more_parameters = (*Parted.more_parameters, "table_size", "table_of")
    _remembers_all = False  # also whom the table does not hold

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        super().__init__(place, parameters, random)
        self._table_size = whole_number(self.method, parameters, "table_size", TABLE_SIZE, 1)
        self._table_of = TableOf(one_of(self.method, parameters, "table_of", tuple(TableOf)))
        self._tables: dict[str, ContactTable] = {}  # by topic; one of a node is that of all

    def parts(self, topic: str, priority: int, now: float) -> list[Part]:
        if self._flow(topic) is None:
            return []  # it stands among the subscribers, whom nobody tells who comes and goes
        known = self._subscribers(topic, now)
        low, high = edge(topic, Role.SUBSCRIBER), edge(topic, Role.SUBSCRIBER + 1)
        bounds = pairwise([low, *(contact.key for contact in known[1:]), high])
        return [Part(*stretch, contact) for contact, stretch in zip(known, bounds, strict=False)]

    def _subscribers(self, topic: str, now: float) -> list[Contact]:
        """Those that the table holds, and the neighbours among them; in key order."""
        roster = self._roster(topic)
        held = roster.held(now) if isinstance(roster, TableRoster) else []
        near = self._near([topic])
        every = {contact.key: contact for contact in [*held, *near]}
        return [
            every[key]
            for key in sorted(every)
            if stands_in(key, topic, Role.SUBSCRIBER)
            and not self.graph.suspects(every[key].node)
            and every[key].node != self.number
        ]

    # Tables

    def _roster(self, topic: str) -> Roster:
        own = self._own_contact(topic)
        if own is None:
            return Roster(0)
        if topic not in self._rosters:
            self._tables[topic] = self._table(own)
            self._rosters[topic] = TableRoster(
                self._forget_s, self._tables[topic], self._remembers_all
            )
        self._tables[topic].stick(self._near(self._sharing(topic)))
        return self._rosters[topic]

    def _sharing(self, topic: str) -> list[str]:
        """The topics of the same table."""
        return [topic] if self._table_of is TableOf.KEY else list(self._topics)

    def _table(self, own: Contact) -> ContactTable:
        if self._table_of is TableOf.NODE and self._tables:
            return next(iter(self._tables.values()))
        return self._new_table(own)

    def _new_table(self, own: Contact) -> ContactTable:
        topics = [topic_of(own.key)] if self._table_of is TableOf.KEY else list(self._topics)

        def interest(contact: Contact) -> Interest:
            mine = [name for name in topics if stands_in(contact.key, name, Role.SUBSCRIBER)]
            return Interest(bool(mine), any(map(self._is_urgent, mine)))

        return ContactTable(own, self._table_size, self._table_of, interest)

    def _near(self, topics: list[str]) -> list[Contact]:
        """The neighbours of this node's keys in the topics."""
        own = [self._own_contact(topic) for topic in topics]
        peers = [self.graph.peer(contact.key) for contact in own if contact is not None]
        return [contact for peer in peers if peer is not None for contact in peer.neighbours()]

    def _is_urgent(self, topic: str) -> bool:
        """ATM-TBPS knows no priorities."""
        return False

    def _settle_keys(self, state: Topic, now: float) -> None:
        super()._settle_keys(state, now)
        self._judge_again()

    def _on_keys(self, state: Topic, now: float) -> None:
        super()._on_keys(state, now)
        self._judge_again()

    def _judge_again(self) -> None:
        """What others are to this node has changed. The table of a key has one topic: there, nothing can change."""
        own = {name: self._own_contact(name) for name in self._rosters}
        self._rosters = {name: self._rosters[name] for name in own if own[name]}
        self._tables = {name: self._tables[name] for name in self._rosters}
        first = own[min(self._rosters)] if self._rosters else None
        if self._table_of is TableOf.KEY or first is None:
            return
        table = self._new_table(first)
        table.stick(self._near(list(self._topics)))
        for name, roster in self._rosters.items():
            self._tables[name] = table
            if isinstance(roster, TableRoster):
                roster.move(table)
