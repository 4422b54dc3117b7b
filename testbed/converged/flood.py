"""Flooding: whoever gets a message for the first time passes it on over all links of the topic but the one it came by.

The first copy to arrive has taken a shortest path. What is sent does not depend on who begins: each node sends over
each of its links, all but the first except back.
"""

import numpy as np
from numpy.typing import NDArray

from testbed.converged.neighbours import Neighbours

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
    """Messages of one flood of each topic: over every link from both of its ends, but not back to who was first."""
    return neighbours.links - (neighbours.size - 1)
