"""The final places of the nodes of a Skip Graph, found by sorting."""

from nodes.overlay.skipgraph.ring import SUCCESSORS
from nodes.overlay.skipgraph.table import KnownPlace
from nodes.protocol.skipgraph_messages import Contact


def known_places(contacts: list[Contact]) -> dict[bytes, KnownPlace]:
    """The places of nodes that have one key each."""
    ring = sorted(contacts, key=lambda contact: contact.key)
    places = {}
    for at, own in enumerate(ring):
        levels = []
        for level in range(1, 64):
            alike = [contact for contact in ring if contact.shares(own, level)]
            place = alike.index(own)
            left = alike[place - 1] if place else None
            right = alike[place + 1] if place + 1 < len(alike) else None
            if left is None and right is None:
                break
            levels.append((left, right))
        behind = tuple(ring[(at + 2 + more) % len(ring)] for more in range(SUCCESSORS))
        left, right = ring[at - 1], ring[(at + 1) % len(ring)]
        places[own.key] = KnownPlace(own.key, left, right, behind, tuple(levels))
    return places
