"""Contacts that a publisher knows, in an adaptive table.

A table belongs to a key, and its entries are keys; or it belongs to a node for all its keys, and its entries are nodes,
by the key that became known first. (The thesis does not define which; with a table for each key, one hop reaches the
about 50 subscribers that it reports for a table of 60.)
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from nodes.overlay.topics.participants import Roster
from nodes.protocol.skipgraph_messages import VECTOR_BITS, Contact

Name = bytes | int  # identifies an entry: a key or a node


@dataclass(frozen=True, slots=True)
class Entry:
    """A contact, and its relation to the table's node."""

    name: Name
    key: bytes
    level: int
    sticky: bool = False
    subscribes: bool = False
    urgent: bool = False


class _Left(NamedTuple):
    """The levels of a table as they are without one entry; the larger, the better."""

    top: int
    filled: int  # minus the empty levels
    single: int  # minus the levels that are tied for the most entries
    fullest: int


class AdaptiveTable:
    """At most `size` entries, as seen from the key `own`.

    A routing table that adapts: it accepts every new contact and evicts the least useful entry (Kita 2025, 5.4).

    FRT's idea: tables are ordered by a total order. When a table has grown too large, it evicts the entry without which
    the best table is left. The first of these criteria that differs decides which of two tables is better:

    0. PATM-TBPS only: more urgent entries, subscribers of topics of high priority that the node publishes (the thesis
       prints the opposite sign, against its own text);
    1. a higher top level, then fewer empty levels below it (an entry's level: how many bits it shares with the table's
       node);
    2. more subscribers of the node's own topics;
    3. fewer levels that are tied for having the most entries;
    4. the most filled level is a higher one (of several that are tied, the highest);
    5. closer keys, on the right side and then on the left: entry by entry in order of distance; none is farther than
       any.

    The node's neighbours in the Skip Graph are sticky: the table never evicts them, since routing would break. With
    more neighbours than `size` the table is larger, and holds no other entry.

    Tables are not compared as wholes: what is left without an entry differs by the entry alone (0, 2), by its level (1,
    3, 4), or by its key (5). So a new entry costs one look at each entry and at each level.
    """

    def __init__(self, own: bytes, size: int) -> None:
        if size < 1:
            raise ValueError(f"table_size {size}; a table has 1 entry or more")
        self.own = own
        self._size = size
        self._entries: dict[Name, Entry] = {}
        self._levels: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __contains__(self, name: Name) -> bool:
        return name in self._entries

    def take(self, entry: Entry) -> list[Name]:
        """Add or update an entry. Return the entries that were evicted for it, perhaps itself."""
        self.discard(entry.name)
        self._entries[entry.name] = entry
        self._levels[entry.level] += 1
        gone: list[Name] = []
        while len(self) > self._size and (worst := self._worst()) is not None:
            self.discard(worst)
            gone.append(worst)
        return gone

    def discard(self, name: Name) -> None:
        """Remove the entry, if it is in the table."""
        entry = self._entries.pop(name, None)
        if entry is not None:
            self._levels[entry.level] -= 1
            if not self._levels[entry.level]:
                del self._levels[entry.level]

    def _worst(self) -> Name | None:
        """The entry without which the table is best; None: all are sticky."""
        loose = [entry for entry in self if not entry.sticky]
        if not loose:
            return None
        left = {level: self._without(level) for level in {entry.level for entry in loose}}

        ranks = [
            (
                not entry.urgent,
                *left[entry.level][:2],
                not entry.subscribes,
                *left[entry.level][2:],
                entry.key < self.own,
            )
            for entry in loose
        ]
        best = max(ranks)
        alike = [entry for entry, rank in zip(loose, ranks, strict=True) if rank == best]
        farthest = min if alike[0].key < self.own else max
        return farthest(alike, key=lambda entry: entry.key).name

    def _without(self, level: int) -> _Left:
        """The levels with one entry less on this level."""
        counts = {each: count - (each == level) for each, count in self._levels.items()}
        used = [each for each, count in counts.items() if count]
        top, most = max(used), max(counts.values())
        fullest = [each for each, count in counts.items() if count == most]
        return _Left(top, len(used) - top - 1, -len(fullest), max(fullest))


class TableOf(StrEnum):
    """What has a table of the given size."""

    KEY = "key"
    NODE = "node"


class Interest(NamedTuple):
    """The relation of a contact to the table's node."""

    subscribes: bool  # to one of the node's topics
    urgent: bool  # to one of high priority that the node publishes


class ContactTable:
    """The table of the peer `own`, or of its node. Contacts of the own node are not in it."""

    def __init__(
        self, own: Contact, size: int, of: TableOf, interest: Callable[[Contact], Interest]
    ) -> None:
        self._own = own
        self._of = of
        self._interest = interest
        self._table = AdaptiveTable(own.key, size)
        self._contacts: dict[Name, dict[bytes, Contact]] = {}
        self._near: dict[bytes, Contact] = {}

    def __len__(self) -> int:
        return len(self._table)

    def holds(self, contact: Contact) -> bool:
        """Whether the contact was added and not evicted."""
        return contact.key in self._contacts.get(self._name(contact), ())

    def knows(self, contact: Contact) -> bool:
        """The same; and this node knows itself."""
        return contact.node == self._own.node or self.holds(contact)

    def add(self, contact: Contact) -> None:
        """Add a contact that takes part."""
        if contact.node != self._own.node:
            name = self._name(contact)
            self._contacts.setdefault(name, {})[contact.key] = contact
            self._enter(name)

    def drop(self, contact: Contact) -> None:
        """Remove a contact that takes part no more; a neighbour stays until the Skip Graph replaces it."""
        name = self._name(contact)
        contacts = self._contacts.get(name, {})
        if contacts.pop(contact.key, None) is not None:
            if not contacts:
                del self._contacts[name]
            self._enter(name)

    def stick(self, neighbours: Iterable[Contact]) -> None:
        """Make these the neighbours in the Skip Graph."""
        near = {c.key: c for c in neighbours if c.node != self._own.node}
        if near.keys() == self._near.keys():
            return
        before, self._near = self._near, near
        for name in dict.fromkeys(map(self._name, [*before.values(), *near.values()])):
            self._enter(name)

    def _name(self, contact: Contact) -> Name:
        return contact.key if self._of is TableOf.KEY else contact.node

    def _enter(self, name: Name) -> None:
        """Update the entry of this name, or remove it."""
        near = [contact for contact in self._near.values() if self._name(contact) == name]
        contacts = [*near, *self._contacts.get(name, {}).values()]
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
            self._contacts.pop(gone, None)


class TableRoster(Roster):
    """A roster that remembers only contacts in the table; with `whole`, all, and it still distinguishes them."""

    def __init__(self, forget_s: float, table: ContactTable, whole: bool) -> None:
        super().__init__(forget_s)
        self._table = table
        self._whole = whole

    def held(self, now: float) -> list[Contact]:
        """The known contacts that the table holds, in key order."""
        return [contact for contact in self.known(now) if self._table.holds(contact)]

    def move(self, table: ContactTable) -> None:
        """Change to another table, and add all known contacts to it."""
        self._table = table
        for contact, _ in self._contacts.values():
            table.add(contact)
        self._prune()

    def add(self, contact: Contact, now: float) -> bool:
        new = super().add(contact, now)
        if contact.key in self._contacts:
            self._table.add(contact)
        self._prune()
        return new

    def drop(self, contact: Contact, now: float) -> bool:
        self._table.drop(contact)
        return super().drop(contact, now)

    def drop_node(self, node: int) -> None:
        for contact, _ in self._contacts.values():
            if contact.node == node:
                self._table.drop(contact)
        super().drop_node(node)

    def known(self, now: float) -> list[Contact]:
        before = [contact for contact, _ in self._contacts.values()]
        known = super().known(now)
        for contact in before:
            if contact.key not in self._contacts:
                self._table.drop(contact)
        self._prune()
        return [contact for contact in known if contact.key in self._contacts]

    def _prune(self) -> None:
        """Forget contacts that the table does not hold, except this node itself."""
        if not self._whole:
            kept = self._contacts.items()
            self._contacts = {key: entry for key, entry in kept if self._table.knows(entry[0])}
