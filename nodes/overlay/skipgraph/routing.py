"""Search: from the highest level down, as far as possible without passing the key; from either side.

A node looks at the neighbours of all its peers at once: hops between peers of one node cost nothing. Taking the nearest
neighbour that does not pass the key is the same as going down level by level, because the neighbours of a lower level
are never farther. Whoever stands right of the key and sees nobody between asks its left neighbour: that is the one in
whose gap the key lies, across the end of the ring too.
"""

from collections.abc import Iterable

from nodes.overlay.skipgraph.contacts import Contact
from nodes.overlay.skipgraph.keys import in_gap
from nodes.overlay.skipgraph.table import Peer, Table

MAX_HOPS = 255


def holder(table: Table, key: bytes) -> Peer | None:
    """The own peer in whose gap the key lies."""
    for peer in table.in_ring():
        if in_gap(peer.key, key, peer.right.key):
            return peer
    return None


def next_hop(table: Table, key: bytes, exact: bool) -> Contact | None:
    """Who is to go on, if it is nobody of this node; None: nobody is known. `exact`: the key's own peer will do."""
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
        before = _largest(c for c in neighbours if c.key < key or (exact and c.key == key))
        return before or _detour(table, key)
    after = [contact for contact in neighbours if key <= contact.key < first.key]
    if after:
        return min(after, key=lambda contact: contact.key)
    if first.left.node != table.number and table.alive(first.left):
        return first.left
    return _detour(table, key)


def _detour(table: Table, key: bytes) -> Contact | None:
    """While a neighbour is being replaced: anybody else who may know better."""
    others = [contact for contact in table.known() if contact.node != table.number]
    return _largest(c for c in others if c.key < key) or _largest(others)


def _largest(contacts: Iterable[Contact]) -> Contact | None:
    return max(contacts, key=lambda contact: contact.key, default=None)
