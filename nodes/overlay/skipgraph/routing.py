"""Search: from the highest level down, as far as possible without passing the key; from either side.

A node considers the neighbours of all its peers at once: hops between its own peers cost nothing. Taking the nearest
neighbour that does not pass the key is the same as going down level by level, because the neighbours of a lower level
are never farther. A peer to the right of the key that knows no peer between sends the message to its left neighbour:
the key lies in that neighbour's gap, also across the end of the ring.

If the next peer has failed and no other has taken its place yet, the message goes round the ring: from there on only to
the right, across the end, until it reaches the key from its left. Such a message has AROUND hops or more.
"""

from collections.abc import Iterable
from typing import NamedTuple

from nodes.overlay.skipgraph.table import Peer, Table
from nodes.protocol.skipgraph_messages import Contact

# Keys are bytes, compared as bytes; at level 0 they form a ring, at all other levels a list.


def between(left: bytes, key: bytes, right: bytes) -> bool:
    """Whether `key` comes before `right` on the way to the right from `left`; on the ring, ends excluded.

    A ring of one goes all the way round: between a key and itself lies every other key.
    """
    if left < right:
        return left < key < right
    return key not in (left, right) and (key > left or key < right)


def in_gap(left: bytes, key: bytes, right: bytes) -> bool:
    """The same with the right end included: whether the peer at `left` decides which peer has the place `key`."""
    return key == right or between(left, key, right)


AROUND = 128
MAX_HOPS = 255


class Hop(NamedTuple):
    """The next peer on the route, and the hops that the message then has."""

    to: Contact
    hops: int


def holder(table: Table, key: bytes) -> Peer | None:
    """The own peer in whose gap the key lies."""
    for peer in table.in_ring():
        if in_gap(peer.key, key, peer.right.key):
            return peer
    return None


def next_hop(table: Table, key: bytes, hops: int, exact: bool = False) -> Hop | None:
    """The next hop to another node; None: no node is known. `exact`: the key's own peer is a goal, too."""
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
    """The last known peer before the key on the way to the right from here."""
    last: Contact | None = None
    for contact in table.known():
        if contact.key == key and not exact:
            continue
        if last is None or contact.key == key or between(last.key, contact.key, key):
            last = contact
    return None if last is None or last.node == table.number else last


def _largest(contacts: Iterable[Contact]) -> Contact | None:
    return max(contacts, key=lambda contact: contact.key, default=None)
