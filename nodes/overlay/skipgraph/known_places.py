"""A graph that stands already: where each key is, said from outside instead of found out by messages.

Whoever knows all keys and vectors knows all links, by sorting. Nodes that begin at such places are as they would be
after a long time without change, so no message is needed to make a graph of 100,000 nodes, and one that nobody talks to
need not even exist yet.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from nodes.overlay.skipgraph.contacts import Contact
from nodes.overlay.skipgraph.pace import SLACK, Pace
from nodes.overlay.skipgraph.table import Peer, Sides, Standing, Table

LONG_CALM = 1000  # looks without a change
NUMBER = 0  # of every link: below all that a peer begins with which comes by messages


@dataclass(frozen=True, slots=True)
class KnownPlace:
    """A key with its neighbours. At level 0 they form a ring; `levels` are those above, None beyond the ends.

    `successors` stand behind the right neighbour, in the ring: as many as `links.SUCCESSORS`, going round if need be.
    """

    key: bytes
    left: Contact
    right: Contact
    successors: tuple[Contact, ...]
    levels: tuple[tuple[Contact | None, Contact | None], ...]


def stand(table: Table, places: Iterable[KnownPlace]) -> None:
    """The node has peers at these places, linked and settled."""
    idle = table.idle_ticks
    for place in places:
        table.peers[place.key] = Peer(
            Contact(place.key, table.number, table.vector),
            NUMBER,
            place.left,
            place.right,
            NUMBER,
            Standing.LINKED,
            settled=True,
            successors=place.successors,
            unheard=-idle - idle // SLACK,
            levels=[Sides(left, right) for left, right in place.levels],
            pace=Pace(idle, table.random.randint(1, idle), LONG_CALM),
        )
