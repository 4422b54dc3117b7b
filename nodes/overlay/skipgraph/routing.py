"""Search: from the highest level down, as far as possible without passing the key; from either side.

A node looks at the neighbours of all its peers at once: hops between peers of one node cost nothing. Taking the nearest
neighbour that does not pass the key is the same as going down level by level, because the neighbours of a lower level
are never farther. Whoever stands right of the key and sees nobody between asks its left neighbour: that is the one in
whose gap the key lies, across the end of the ring too.

Where the next one has died and nobody has taken its place yet, the way goes round the ring: from there on to the right
only, across the end, until it comes to the key from its left. Such a message is told by its hops: AROUND or more.
"""

from collections.abc import Iterable
from typing import NamedTuple

from nodes.overlay.skipgraph.table import Peer, Table
from nodes.protocol.skipgraph_messages import Contact

# Where a key lies: keys are bytes, compared as bytes; at level 0 they form a ring, everywhere else a line.


def between(left: bytes, key: bytes, right: bytes) -> bool:
    """Whether one who goes right from `left` meets `key` before `right`; on the ring, ends excluded.

    A ring of one goes all the way round: between a key and itself lies every other key.
    """
    if left < right:
        return left < key < right
    return key not in (left, right) and (key > left or key < right)


def in_gap(left: bytes, key: bytes, right: bytes) -> bool:
    """The same with the right end included: whether the peer at `left` decides who stands at `key`."""
    return key == right or between(left, key, right)


AROUND = 128
MAX_HOPS = 255


class Hop(NamedTuple):
    """The next one on the way, and the hops that the message then has."""

    to: Contact
    hops: int


def holder(table: Table, key: bytes) -> Peer | None:
    """The own peer in whose gap the key lies."""
    for peer in table.in_ring():
        if in_gap(peer.key, key, peer.right.key):
            return peer
    return None


def next_hop(table: Table, key: bytes, hops: int, exact: bool = False) -> Hop | None:
    """Who is to go on, if it is nobody of this node; None: nobody is known. `exact`: the key's own peer will do."""
    contact = None
    if hops < AROUND:
        contact = _nearest(table, key, exact)
    if contact is None:
        hops = max(hops, AROUND)
        contact = _round_the_ring(table, key, exact)
    return None if contact is None or hops >= MAX_HOPS else Hop(contact, hops + 1)


def _nearest(table: Table, key: bytes, exact: bool) -> Contact | None:
    peers = table.in_ring()
    if not peers:
        return None
    neighbours = [
        contact
        for peer in peers
        for contact in peer.neighbours()
        if contact.node != table.number and table.alive(contact)
    ]
    first = min(peers, key=lambda peer: peer.key)
    if first.key < key:
        return _largest(c for c in neighbours if c.key < key or (exact and c.key == key))
    after = [contact for contact in neighbours if key <= contact.key < first.key]
    if after:
        return min(after, key=lambda contact: contact.key)
    if first.left.node != table.number and table.alive(first.left):
        return first.left
    return None


def _round_the_ring(table: Table, key: bytes, exact: bool) -> Contact | None:
    """The last one before the key for whoever goes right from here."""
    last: Contact | None = None
    for contact in table.known():
        if contact.key == key and not exact:
            continue
        if last is None or contact.key == key or between(last.key, contact.key, key):
            last = contact
    return None if last is None or last.node == table.number else last


def _largest(contacts: Iterable[Contact]) -> Contact | None:
    return max(contacts, key=lambda contact: contact.key, default=None)
