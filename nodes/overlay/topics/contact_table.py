"""Whom a publisher has heard of, in an adaptive table: contacts in, and what they are to the node.

A table is that of a key, whose entries are keys, or that of a node for all its keys, whose entries are nodes, by
whichever key they were heard of first. (The thesis does not say which; with one for each key, one hop reaches the about
50 subscribers that it reports for a table of 60.)
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from nodes.overlay.topics.adaptive_table import AdaptiveTable, Entry, Name
from nodes.overlay.topics.roster import Roster
from nodes.protocol.skipgraph_messages import VECTOR_BITS, Contact


class TableOf(StrEnum):
    """What has a table of the size that is given."""

    KEY = "key"
    NODE = "node"


class Interest(NamedTuple):
    """What somebody is to the table's node."""

    subscribes: bool  # to one of its topics
    urgent: bool  # to one of high priority that it publishes


class ContactTable:
    """The table of the peer `own`, or of its node. Nobody of the own node is in it."""

    def __init__(
        self, own: Contact, size: int, of: TableOf, interest: Callable[[Contact], Interest]
    ) -> None:
        self._own = own
        self._of = of
        self._interest = interest
        self._table = AdaptiveTable(own.key, size)
        self._heard: dict[Name, dict[bytes, Contact]] = {}
        self._near: dict[bytes, Contact] = {}

    def __len__(self) -> int:
        return len(self._table)

    def holds(self, contact: Contact) -> bool:
        """Whether it was heard of and has not had to go."""
        return contact.key in self._heard.get(self._name(contact), ())

    def knows(self, contact: Contact) -> bool:
        """The same; and this node knows itself."""
        return contact.node == self._own.node or self.holds(contact)

    def hear(self, contact: Contact) -> None:
        """Somebody is there."""
        if contact.node != self._own.node:
            name = self._name(contact)
            self._heard.setdefault(name, {})[contact.key] = contact
            self._enter(name)

    def drop(self, contact: Contact) -> None:
        """He is not any more; a neighbour stays until the Skip Graph has another."""
        name = self._name(contact)
        heard = self._heard.get(name, {})
        if heard.pop(contact.key, None) is not None:
            if not heard:
                del self._heard[name]
            self._enter(name)

    def stick(self, neighbours: Iterable[Contact]) -> None:
        """These are the neighbours in the Skip Graph now."""
        near = {c.key: c for c in neighbours if c.node != self._own.node}
        if near.keys() == self._near.keys():
            return
        before, self._near = self._near, near
        for name in dict.fromkeys(map(self._name, [*before.values(), *near.values()])):
            self._enter(name)

    def _name(self, contact: Contact) -> Name:
        return contact.key if self._of is TableOf.KEY else contact.node

    def _enter(self, name: Name) -> None:
        """The entry of this name as it is now, or none."""
        near = [contact for contact in self._near.values() if self._name(contact) == name]
        contacts = [*near, *self._heard.get(name, {}).values()]
        if not contacts:
            self._table.discard(name)
            return
        first = contacts[0]
        interests = [self._interest(contact) for contact in contacts]
        entry = Entry(
            name,
            first.key,
            VECTOR_BITS - (first.vector ^ self._own.vector).bit_length(),
            bool(near),
            any(interest.subscribes for interest in interests),
            any(interest.urgent for interest in interests),
        )
        for gone in self._table.take(entry):
            self._heard.pop(gone, None)


class TableRoster(Roster):
    """A roster that remembers only whom the table holds; with `whole`, all, and can still tell them apart."""

    def __init__(self, forget_s: float, table: ContactTable, whole: bool) -> None:
        super().__init__(forget_s)
        self._table = table
        self._whole = whole

    def held(self, now: float) -> list[Contact]:
        """Those heard of lately whom the table holds, in key order."""
        return [contact for contact in self.known(now) if self._table.holds(contact)]

    def move(self, table: ContactTable) -> None:
        """To another table, which hears of all that are known."""
        self._table = table
        for contact, _ in self._heard.values():
            table.hear(contact)
        self._prune()

    def add(self, contact: Contact, now: float) -> bool:
        new = super().add(contact, now)
        if contact.key in self._heard:
            self._table.hear(contact)
        self._prune()
        return new

    def drop(self, contact: Contact, now: float) -> bool:
        self._table.drop(contact)
        return super().drop(contact, now)

    def drop_node(self, node: int) -> None:
        for contact, _ in self._heard.values():
            if contact.node == node:
                self._table.drop(contact)
        super().drop_node(node)

    def known(self, now: float) -> list[Contact]:
        before = [contact for contact, _ in self._heard.values()]
        known = super().known(now)
        for contact in before:
            if contact.key not in self._heard:
                self._table.drop(contact)
        self._prune()
        return [contact for contact in known if contact.key in self._heard]

    def _prune(self) -> None:
        """Whom the table does not hold is not remembered, but this node itself."""
        if not self._whole:
            kept = self._heard.items()
            self._heard = {key: entry for key, entry in kept if self._table.knows(entry[0])}
