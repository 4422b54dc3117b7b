"""Range multicast that splits, as the message protocol does it (`nodes.overlay.skipgraph.multicast`).

A node gets a part of the range and divides it among its neighbours inside: each serves from its own key to the next
one's, and the leftmost also all that lies farther left. Everyone in the range gets the message once. To the right, the
way to a key is that of a search which takes at every node the farthest neighbour, of any level, that is not beyond the
key; `testbed.converged.search` never goes up a level again.
"""

import numpy as np
from numpy.typing import NDArray

from testbed.converged.flood import Hops
from testbed.converged.graph import changes
from testbed.converged.neighbours import Neighbours

_Peers = NDArray[np.int64]


def split_hops(neighbours: Neighbours) -> Hops:
    """Hops from each peer to all on its right, `hops[topic, from, to]`; 0 to those on its left.

    From the last peer of each topic to the first: the way of each is one hop, and then the way of a peer on its right.
    """
    topics, size = neighbours.topics, neighbours.size
    onward = neighbours.peers > neighbours.owners
    lone = np.arange(size - 1, topics * size, size)  # nobody is on the right of these
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
