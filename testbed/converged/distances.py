"""Hops and messages between the peers of topics, by each strategy of multicast."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from testbed.converged.flood import Hops, flood_hops, flood_messages
from testbed.converged.graph import Links
from testbed.converged.neighbours import Neighbours, neighbours_in_topics
from testbed.converged.population import Population
from testbed.converged.search import search_hops
from testbed.converged.split import split_hops
from testbed.converged.trees import tree_messages

_PAIRS_AT_ONCE = 4_000_000  # of peers of one topic: some tens of MB


class Strategy(StrEnum):
    """How a multicast goes through a topic."""

    FLOOD = "flood"
    SEARCH = "search"
    SPLIT = "split"


@dataclass(frozen=True, slots=True)
class Distances:
    """Of a few topics that are followed together."""

    publishers: int
    vectors: NDArray[np.uint64]  # of each topic, of each peer
    neighbours: Neighbours
    hops: dict[
        Strategy, Hops
    ]  # of each topic, from each peer, to each peer (by `split` to those on its right)
    messages: dict[
        Strategy, NDArray[np.int64]
    ]  # of each topic, of a multicast from each peer to all subscribers

    @property
    def size(self) -> int:
        """Peers of a topic."""
        return int(self.vectors.shape[1])

    @property
    def subscribers(self) -> int:
        """Of a topic."""
        return self.size - self.publishers

    def to_subscribers(self, strategy: Strategy) -> Hops:
        """From each peer of each topic to each subscriber."""
        return self.hops[strategy][:, :, self.publishers :]


def stretches(people: Population) -> Iterator[slice]:
    """All topics, as many at once as the memory is to hold."""
    at_once = max(1, _PAIRS_AT_ONCE // people.size**2)
    for first in range(0, people.topics, at_once):
        yield slice(first, min(first + at_once, people.topics))


def distances(
    people: Population, links: tuple[Links, Links], topics: slice, strategies: set[Strategy]
) -> Distances:
    """Of these topics, by these strategies."""
    columns = slice(topics.start * people.size, topics.stop * people.size)
    neighbours = neighbours_in_topics(links[1][:, columns] - columns.start, people.size)
    vectors = people.peer_vectors[topics]
    hops: dict[Strategy, Hops] = {}
    messages: dict[Strategy, NDArray[np.int64]] = {}
    if Strategy.FLOOD in strategies:
        hops[Strategy.FLOOD] = flood_hops(neighbours)
        sent = flood_messages(neighbours)[:, None]
        messages[Strategy.FLOOD] = np.broadcast_to(sent, vectors.shape)
    if Strategy.SEARCH in strategies:
        hops[Strategy.SEARCH] = search_hops(vectors)
    if Strategy.SPLIT in strategies:
        hops[Strategy.SPLIT] = split_hops(neighbours)
    for strategy in strategies - {Strategy.FLOOD}:
        messages[strategy] = tree_messages(hops[strategy], people.publishers)
    return Distances(people.publishers, vectors, neighbours, hops, messages)
