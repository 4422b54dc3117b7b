"""The nodes of all topics but one, as they stand in a converged Skip Graph; each is worked out when it is asked for."""

import numpy as np

from nodes.overlay.skipgraph.contacts import Contact
from nodes.overlay.skipgraph.known_places import KnownPlace
from nodes.overlay.skipgraph.links import SUCCESSORS
from nodes.overlay.tbps.keys import Role, topic_key
from testbed.converged import Population, converge
from testbed.converged.graph import NOBODY


def topic_name(topic: int) -> str:
    """Topics in the order of their numbers, as a population has them."""
    return f"topic {topic:08}"


class StandingGraph:
    """A population without the nodes of the topic `absent`: they come by messages."""

    def __init__(self, people: Population, absent: int) -> None:
        size = people.size
        first = absent * size
        self.members: list[int] = people.owners[first : first + size].tolist()
        self._people = people
        self._peers = np.delete(np.arange(len(people.owners)), np.s_[first : first + size])
        owners = people.owners[self._peers]
        self._place_of_node = np.full(len(people.vectors), NOBODY)
        self._place_of_node[owners] = np.arange(len(owners))
        self._left, self._right = converge(owners, people.vectors)
        self._contacts: dict[int, Contact] = {}

    @property
    def standing(self) -> list[int]:
        """The nodes that stand in it."""
        nodes: list[int] = self._people.owners[self._peers].tolist()
        return nodes

    def vector(self, node: int) -> int:
        return int(self._people.vectors[node])

    def place(self, node: int) -> KnownPlace | None:
        """Where a node stands; None if it does not."""
        at = int(self._place_of_node[node])
        if at == NOBODY:
            return None
        count = len(self._peers)
        behind = (self._contact((at + 2 + more) % count) for more in range(SUCCESSORS))
        levels = []
        sides = zip(self._left[1:, at].tolist(), self._right[1:, at].tolist(), strict=True)
        for left, right in sides:
            if left == right == NOBODY:
                break
            levels.append((self._neighbour(left), self._neighbour(right)))
        return KnownPlace(
            self._contact(at).key,
            self._contact((at - 1) % count),
            self._contact((at + 1) % count),
            tuple(behind),
            tuple(levels),
        )

    def _neighbour(self, place: int) -> Contact | None:
        return None if place == NOBODY else self._contact(place)

    def _contact(self, place: int) -> Contact:
        if place not in self._contacts:
            self._contacts[place] = self._new_contact(place)
        return self._contacts[place]

    def _new_contact(self, place: int) -> Contact:
        peer = int(self._peers[place])
        node = int(self._people.owners[peer])
        topic, rank = divmod(peer, self._people.size)
        role = Role.PUBLISHER if rank < self._people.publishers else Role.SUBSCRIBER
        return Contact(topic_key(topic_name(topic), role, node), node, self.vector(node))
