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
    topics, size = neighbours.topics, neighbours.size
    peer = np.repeat(np.arange(topics * size), np.diff(neighbours.first))
    near = np.zeros((topics, size, size), dtype=bool)
    near[peer // size, peer % size, neighbours.peers % size] = True
    to_the_right = _rightward(near)
    to_the_left = _rightward(near[:, ::-1, ::-1])[:, ::-1, ::-1]
    return np.maximum(to_the_right, to_the_left)


def _rightward(near: NDArray[np.bool_]) -> Hops:
    """The hops to all peers on the right, 0 to those on the left; `near[topic, peer, peer]`: they are neighbours.

    From the last peer of each topic to the first: the way of each is one hop, and then that of a peer on its right.
    """
    topics, size, _ = near.shape
    hops = np.zeros((topics, size, size), dtype=np.uint8)
    flat = hops.reshape(-1)
    keys = np.arange(size, dtype=np.int64)
    topic = size * size * np.arange(topics)[:, None]
    for peer in range(size - 2, -1, -1):
        right = keys[peer + 1 :]
        farthest = np.maximum.accumulate(np.where(near[:, peer, peer + 1 :], right, 0), axis=1)
        hops[:, peer, peer + 1 :] = flat[topic + farthest * size + right] + np.uint8(1)
    return hops
