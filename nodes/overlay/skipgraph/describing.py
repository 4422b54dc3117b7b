"""What a node of the graph knows, as JSON values: for those who look at a living graph from outside."""

from typing import Any

from nodes.overlay.skipgraph.contacts import Contact
from nodes.overlay.skipgraph.table import Table


def describe(table: Table) -> dict[str, Any]:
    """The membership vector; each own key and, level by level from 0 on, the keys to its left and right."""
    return {
        "vector": f"{table.vector:016x}",
        "suspects": sorted(table.suspects),
        "peers": [
            {
                "key": peer.key.hex(),
                "settled": peer.settled,
                "links": [
                    [_name(peer.neighbour(level, rightwards)) for rightwards in (False, True)]
                    for level in range(len(peer.levels) + 1)
                ],
            }
            for peer in table.peers.values()
        ],
    }


def _name(contact: Contact | None) -> str | None:
    return None if contact is None else contact.key.hex()
