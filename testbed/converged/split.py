"""Range multicast that splits: each neighbour in the range takes the stretch from its own key up to the next neighbour.

Everyone in the range gets the message once. The way to a key is that of a search which takes at every node the
farthest neighbour, of any level, that is not beyond the key; `testbed.converged.search` never goes up a level again.
"""

import numpy as np
from numpy.typing import NDArray

from testbed.converged.flood import Hops
from testbed.converged.neighbours import Neighbours


def split_hops(neighbours: Neighbours) -> Hops:
    """Hops of the multicast, `hops[topic, from, to]`."""
    size, shape = neighbours.size, (neighbours.topics, neighbours.size, neighbours.size)
    own, near = neighbours.owners, neighbours.peers
    to_the_right = _rightward(own[near > own], near[near > own] % size, shape)
    # Seen from the other end, the left is the right.
    own, near = len(neighbours.first) - 2 - own[::-1], len(neighbours.first) - 2 - near[::-1]
    to_the_left = _rightward(own[near > own], near[near > own] % size, shape)
    return np.maximum(to_the_right, to_the_left[::-1, ::-1, ::-1])


def _rightward(
    own: NDArray[np.int64], near: NDArray[np.int64], shape: tuple[int, int, int]
) -> Hops:
    """The hops to all peers on the right, 0 to those on the left.

    `near` are the neighbours on the right of the peers `own`, ascending, as places in their topic. From the last peer
    of each topic to the first: the way of each is one hop, and then the way of a peer on its right.
    """
    topics, size, _ = shape
    # To each key by way of the farthest neighbour before it: each neighbour is repeated up to the next one.
    lone = np.arange(size - 1, topics * size, size)  # nobody is on the right of these
    row = np.concatenate([own, lone])
    place = np.concatenate([near, np.full(topics, size - 1)])
    order = np.argsort(row, kind="stable")
    row, place = row[order], place[order]
    begins = np.diff(row, prepend=-1) != 0
    ends = np.append(begins[1:], True)
    upto = np.where(ends, size, np.append(place[1:], 0))
    farthest = np.repeat(place.astype(np.int32), upto - np.where(begins, 0, place))
    by_way_of = farthest.reshape(shape) * np.int32(size) + np.arange(size, dtype=np.int32)
    by_way_of += np.arange(topics, dtype=np.int32)[:, None, None] * np.int32(size * size)
    hops = np.zeros(shape, dtype=np.uint8)
    flat = hops.reshape(-1)
    for peer in range(size - 2, -1, -1):
        hops[:, peer, peer + 1 :] = flat[by_way_of[:, peer, peer + 1 :]] + np.uint8(1)
    return hops
