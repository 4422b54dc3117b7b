"""Nodes of a converged Skip Graph; the place of each is computed on demand."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nodes.overlay.skipgraph.ring import SUCCESSORS
from nodes.overlay.skipgraph.table import KnownPlace
from nodes.overlay.topics.keys import Role, topic_key
from nodes.overlay.topics.scribe.routing import node_key
from nodes.protocol.skipgraph_messages import Contact
from testbed.converged import Population, converge
from testbed.converged.graph import NO_NODE


def topic_name(topic: int) -> str:
    """Topics in the order of their numbers, as a population has them."""
    return f"topic {topic:08}"


class StandingGraph:
    """Nodes with one key each: `owners` in the order of their keys, `key_of` is the key at a place of that order."""

    def __init__(
        self,
        owners: NDArray[np.int32],
        vectors: NDArray[np.uint64],
        key_of: Callable[[int], bytes],
    ) -> None:
        self._owners = owners
        self._vectors = vectors
        self._key_of = key_of
        self._place_of_node = np.full(len(vectors), NO_NODE)
        self._place_of_node[owners] = np.arange(len(owners))
        self._left, self._right = converge(owners, vectors)
        self._contacts: dict[int, Contact] = {}

    @property
    def standing(self) -> list[int]:
        """The nodes in the graph."""
        nodes: list[int] = self._owners.tolist()
        return nodes

    def vector(self, node: int) -> int:
        return int(self._vectors[node])

    def place(self, node: int) -> KnownPlace | None:
        """The place of a node; None if it is not in the graph."""
        at = int(self._place_of_node[node])
        if at == NO_NODE:
            return None
        count = len(self._owners)
        behind = (self._contact((at + 2 + more) % count) for more in range(SUCCESSORS))
        levels = []
        sides = zip(self._left[1:, at].tolist(), self._right[1:, at].tolist(), strict=True)
        for left, right in sides:
            if left == right == NO_NODE:
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
        return None if place == NO_NODE else self._contact(place)

    def _contact(self, place: int) -> Contact:
        if place not in self._contacts:
            node = int(self._owners[place])
            self._contacts[place] = Contact(self._key_of(place), node, self.vector(node))
        return self._contacts[place]


def all_topics_but(absent: int, participants: Population) -> StandingGraph:
    """By keys of topics, without the members of the topic `absent`: they come by messages."""
    first = absent * participants.size
    peers = np.delete(np.arange(len(participants.owners)), np.s_[first : first + participants.size])

    def key_of(place: int) -> bytes:
        peer = int(peers[place])
        topic, rank = divmod(peer, participants.size)
        role = Role.PUBLISHER if rank < participants.publishers else Role.SUBSCRIBER
        return topic_key(topic_name(topic), role, int(participants.owners[peer]))

    return StandingGraph(participants.owners[peers], participants.vectors, key_of)


def all_nodes(participants: Population) -> StandingGraph:
    """By their numbers, whatever topics they are in, as in Scribe."""
    numbers = np.arange(len(participants.vectors), dtype=np.int32)
    return StandingGraph(numbers, participants.vectors, node_key)
