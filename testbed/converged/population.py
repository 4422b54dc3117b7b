"""The participants of each topic, and their membership vectors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PATTERNS = {  # publishers and subscribers of each topic (Banno 2013, 4.1; Kita 2025, 6.1)
    "a": (10, 990),
    "b": (500, 500),
    "c": (990, 10),
    "d": (1, 9),
    "e": (5, 5),
    "f": (9, 1),
}


@dataclass(frozen=True, slots=True)
class Population:
    """Topics of one size. A peer is one key of a node; peers are numbered in the order of their keys.

    Topic after topic, a topic's publishers before its subscribers, each of the two in the order of node numbers.
    """

    topics: int
    publishers: int  # of each topic
    subscribers: int
    owners: NDArray[np.int32]  # the node of each peer
    vectors: NDArray[np.uint64]  # the membership vector of each node; bit 0 is the most significant

    @property
    def size(self) -> int:
        """Peers of a topic."""
        return self.publishers + self.subscribers

    @property
    def peer_vectors(self) -> NDArray[np.uint64]:
        """The membership vector of each peer, a row a topic."""
        return self.vectors[self.owners].reshape(self.topics, self.size)


def random_vectors(nodes: int, random: np.random.Generator) -> NDArray[np.uint64]:
    """64 random bits for each node."""
    return random.integers(0, 2**64, size=nodes, dtype=np.uint64)


def population(publishers: int, subscribers: int, nodes: int, seed: int) -> Population:
    """As many topics as `nodes` suffice for, each node in one of them; nodes that are left over are in none."""
    random = np.random.default_rng(seed)
    size = publishers + subscribers
    topics = nodes // size
    if not topics:
        raise ValueError(
            f"a topic has {size:,} nodes, and there are {nodes:,} only: give at least {size:,}"
        )
    members = random.permutation(nodes)[: topics * size].reshape(topics, size).astype(np.int32)
    members[:, :publishers].sort(axis=1)
    members[:, publishers:].sort(axis=1)
    return Population(
        topics, publishers, subscribers, members.ravel(), random_vectors(nodes, random)
    )


def shared_population(
    subscribers: int, nodes: int, topics_per_node: float, seed: int
) -> Population:
    """Topics of one publisher each, whose members are drawn from all nodes: a node is in several, by a key for each."""
    random = np.random.default_rng(seed)
    size = subscribers + 1
    topics = max(1, round(nodes * topics_per_node / size))
    members = np.array([random.choice(nodes, size, replace=False) for _ in range(topics)])
    members[:, 1:].sort(axis=1)
    owners = members.ravel().astype(np.int32)
    return Population(topics, 1, subscribers, owners, random_vectors(nodes, random))


def station_population(
    subscribers: int, nodes: int, stations: int, topics_each: int, seed: int
) -> Population:
    """Some nodes publish several topics each, and any others subscribe; whose topics are side by side is chance."""
    random = np.random.default_rng(seed)
    publishing = random.permutation(nodes)[:stations]
    publishers = random.permutation(np.repeat(publishing, topics_each))
    # Drawn from one node less, those from the publisher on are the next ones.
    others = np.array([random.choice(nodes - 1, subscribers, replace=False) for _ in publishers])
    others += others >= publishers[:, None]
    others.sort(axis=1)
    owners = np.concatenate([publishers[:, None], others], axis=1).ravel().astype(np.int32)
    return Population(len(publishers), 1, subscribers, owners, random_vectors(nodes, random))
