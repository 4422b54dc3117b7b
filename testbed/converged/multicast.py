"""Hops and messages between the peers of topics, by each strategy of multicast."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from testbed.converged.graph import BITS, Links, Neighbours, changes, neighbours_in_topics
from testbed.converged.population import Population

# Flooding: a node that gets a message for the first time passes it on over all links of the topic but the one it came
# by.
#
# The first copy to arrive has taken a shortest path. The messages do not depend on the first sender: each node sends
# over each of its links, all but the first except back.


Hops = NDArray[np.uint8]
_WORD = 64


def flood_hops(neighbours: Neighbours) -> Hops:
    """Hops of the first arrival, `hops[topic, from, to]`: searched in breadth from all peers of a topic at once.

    Each peer has one bit for each peer of its topic: whether a message of that one has reached it. A step ors the bits
    of all neighbours; a peer's distance is the number of steps before its bit is set.
    """
    size, topics = neighbours.size, neighbours.topics
    words = -(-size // _WORD)
    local = np.arange(size)
    itself = np.zeros((size, words), dtype=np.uint64)
    itself[local, local // _WORD] = np.uint64(1) << (local % _WORD).astype(np.uint64)
    reached = np.tile(itself, (topics, 1))
    hops = np.zeros((topics * size, size), dtype=np.uint8)
    while size > 1:
        missing = np.unpackbits((~reached).view(np.uint8), axis=1, count=size, bitorder="little")
        if not missing.any():
            break
        hops += missing
        reached = reached | np.bitwise_or.reduceat(
            reached[neighbours.peers], neighbours.first[:-1], axis=0
        )
    return hops.reshape(topics, size, size)


def flood_messages(neighbours: Neighbours) -> NDArray[np.int64]:
    """Messages of one flood of each topic: over every link from both of its ends, but not back to the first sender."""
    return neighbours.links - (neighbours.size - 1)


# Skip Graph search: from the highest level down, as far as possible on each without passing the key.
#
# A multicast by search is the union of the searches for all subscribers. That is a tree, because the way to a node that
# is passed on the way is the beginning of the same way; so each of its links carries the message once.


def search_hops(vectors: NDArray[np.uint64]) -> Hops:
    """Hops of the search, `hops[topic, from, to]`; `vectors[topic, peer]` in key order, all of a topic different."""
    both_ways = _rightward(np.concatenate([vectors, vectors[:, ::-1]]))
    to_the_right, to_the_left = both_ways[: len(vectors)], both_ways[len(vectors) :, ::-1, ::-1]
    rising = np.arange(vectors.shape[1])
    return np.where(rising[:, None] <= rising, to_the_right, to_the_left)


def _rightward(vectors: NDArray[np.uint64]) -> Hops:
    """The hops to all peers on the right (the values of those on the left are undefined).

    On level i the search stays in the start's own list and stops at its last member that is not beyond the key. So
    it makes as many hops there as the list has members between the last one that shares one bit more with the start
    and the key: the members with the other bit since then. That is the same for all starts that share i + 1 bits, so
    it is counted for lists, not for pairs: `walked` has a row for each list that is still shared, a column for each
    key, and counts the hops on the levels below. It changes at members only, so it is counted at those and repeated.
    """
    topics, size = vectors.shape
    hops = np.empty((topics * size, size), dtype=np.uint8)
    # Peers that are not alone in their list yet, list after list and each in key order; and the row of their list.
    member = np.arange(topics * size)
    row = member // size
    walked = np.zeros((topics, size), dtype=np.uint8)
    flat = vectors.ravel()
    for level in range(BITS):
        bit = (flat[member] >> np.uint64(BITS - 1 - level) & np.uint64(1)).astype(np.int64)
        since = np.stack([_since_the_last(bit == half) for half in (0, 1)])
        begins = changes(row)
        upto = np.where(np.append(begins[1:], True), size, np.append(member[1:] % size, 0))
        repeated = np.repeat(since, upto - np.where(begins, 0, member % size), axis=1)
        halves = walked[:, None] + repeated.reshape(2, len(walked), size).swapaxes(0, 1)
        walked = halves.reshape(-1, size)
        row = 2 * row + bit
        order = np.argsort(row, kind="stable")
        member, row = member[order], row[order]
        members = np.bincount(row, minlength=len(walked))
        alone = members[row] == 1
        hops[member[alone]] = walked[row[alone]]
        member, row = member[~alone], row[~alone]
        if not len(member):
            break
        kept = members > 1
        walked = walked[kept]
        row = (np.cumsum(kept) - 1)[row]
    return hops.reshape(topics, size, size)


def _since_the_last(is_it: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """How many places ago was the last one that is it; where its list had none yet, it does not matter."""
    place = np.arange(len(is_it))
    return (place - np.maximum.accumulate(np.where(is_it, place, -1))).astype(np.uint8)


# Range multicast that splits, as the message protocol does it (`nodes.overlay.skipgraph.multicast`).
#
# A node gets a part of the range and divides it among its neighbours inside: each serves from its own key to the next
# one's, and the leftmost also all that lies farther left. Everyone in the range gets the message once. To the right,
# the way to a key is that of a search which takes at every node the farthest neighbour, of any level, that is not
# beyond the key; `testbed.converged.multicast` never goes up a level again.


_Peers = NDArray[np.int64]


def split_hops(neighbours: Neighbours) -> Hops:
    """Hops from each peer to all on its right, `hops[topic, from, to]`; 0 to those on its left.

    From the last peer of each topic to the first: the way of each is one hop, and then the way of a peer on its right.
    """
    topics, size = neighbours.topics, neighbours.size
    onward = neighbours.peers > neighbours.owners
    lone = np.arange(size - 1, topics * size, size)  # these have no right neighbour
    row = np.concatenate([neighbours.owners[onward], lone])
    place = np.concatenate([neighbours.peers[onward] % size, np.full(topics, size - 1)])
    order = np.argsort(row, kind="stable")
    row, place = row[order], place[order]
    # To each key by way of the farthest neighbour before it: each neighbour is repeated up to the next one.
    begins = changes(row)
    upto = np.where(np.append(begins[1:], True), size, np.append(place[1:], 0))
    farthest = np.repeat(place.astype(np.int32), upto - np.where(begins, 0, place))
    in_topic = (np.arange(topics, dtype=np.int32) * np.int32(size * size))[:, None, None]
    to_key = np.arange(size, dtype=np.int32) + in_topic
    by_way_of = farthest.reshape(topics, size, size) * np.int32(size) + to_key
    hops = np.zeros((topics, size, size), dtype=np.uint8)
    flat = hops.reshape(-1)
    for peer in range(size - 2, -1, -1):
        hops[:, peer, peer + 1 :] = flat[by_way_of[:, peer, peer + 1 :]] + np.uint8(1)
    return hops


def leftward_hops(
    neighbours: Neighbours, rightward: Hops, start: _Peers, goal: _Peers, low: _Peers
) -> NDArray[np.uint8]:
    """Hops from each of some peers to a goal on its left, in a range that begins at `low`; `rightward` by `split_hops`.

    To the last neighbour that is not behind the goal, and from there to the right; if all are behind it, to the
    leftmost of them, and from there likewise.
    """
    size, peers = neighbours.size, len(neighbours.first) - 1
    links = neighbours.owners * peers + neighbours.peers  # ascending
    hops = np.zeros(len(start), dtype=np.uint8)
    at, todo = start.copy(), np.arange(len(start))
    while todo.size:
        hops[todo] += 1
        last = np.searchsorted(links, at[todo] * peers + goal[todo], "right") - 1
        before = neighbours.peers[last]
        found = (last >= neighbours.first[at[todo]]) & (before >= low[todo])
        ends, there = todo[found], before[found]
        hops[ends] += rightward[there // size, there % size, goal[ends] % size]
        todo = todo[~found]
        at[todo] = neighbours.peers[np.searchsorted(links, at[todo] * peers + low[todo])]
    return hops


# What a multicast along a tree of searches sends.


def tree_messages(hops: Hops, publishers: int) -> NDArray[np.int64]:
    """Messages of a multicast from each peer to all subscribers of its topic, `messages[topic, from]`.

    `hops[topic, from, to]` by `search` or `split`. Each subscriber gets the message once. Between subscribers there
    are none but subscribers; and a publisher that is passed on the way to any of them is also passed on the way to
    the first of them: at such a publisher a longer hop would have been taken if it had not passed the first. So the
    tree has one link for each subscriber, and one for each publisher between the sender and the first subscriber.
    """
    subscribers = hops.shape[2] - publishers
    messages = np.full(hops.shape[:2], subscribers - 1, dtype=np.int64)
    messages[:, :publishers] += hops[:, :publishers, publishers]
    return messages


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


def stretches(participants: Population) -> Iterator[slice]:
    """All topics, as many at once as the memory is to hold."""
    at_once = max(1, _PAIRS_AT_ONCE // participants.size**2)
    for first in range(0, participants.topics, at_once):
        yield slice(first, min(first + at_once, participants.topics))


def distances(
    participants: Population, links: tuple[Links, Links], topics: slice, strategies: set[Strategy]
) -> Distances:
    """Of these topics, by these strategies."""
    columns = slice(topics.start * participants.size, topics.stop * participants.size)
    neighbours = neighbours_in_topics(links[1][:, columns] - columns.start, participants.size)
    vectors = participants.peer_vectors[topics]
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
        messages[strategy] = tree_messages(hops[strategy], participants.publishers)
    return Distances(participants.publishers, vectors, neighbours, hops, messages)


# The delay that the thesis estimates from hops (Kita 2025, 6.1).


NODE_MS = 1.0  # in each node that is reached
LINK_MS = 10.0
CHILD_MS = 0.1  # a node sends to its children one after the other
CHILDREN = 10  # of each node on a way of several hops

_Numbers = TypeVar("_Numbers", float, NDArray[np.float64])


def hops_ms(path: _Numbers) -> _Numbers:
    """On a way of `path` hops, each by a node with `CHILDREN`."""
    return path * (NODE_MS + LINK_MS + CHILD_MS * CHILDREN)


def one_hop_ms(receivers: _Numbers) -> _Numbers:
    """The time until the last of the nodes that one node sends to directly has the message."""
    return NODE_MS + LINK_MS + CHILD_MS * receivers
