"""Skip Graph search: from the highest level down, as far as possible on each without passing the key.

A multicast by search is the union of the searches for all subscribers. That is a tree, because the way to whoever is
passed on the way is the beginning of the same way; so each of its links carries the message once.
"""

import numpy as np
from numpy.typing import NDArray

from testbed.converged.flood import Hops
from testbed.converged.graph import BITS


def search_hops(vectors: NDArray[np.uint64]) -> Hops:
    """Hops of the search, `hops[topic, from, to]`; `vectors[topic, peer]` in key order, all of a topic different."""
    to_the_right = _rightward(vectors)
    to_the_left = _rightward(vectors[:, ::-1])[:, ::-1, ::-1]
    rising = np.arange(vectors.shape[1])
    return np.where(rising[:, None] <= rising, to_the_right, to_the_left)


def _rightward(vectors: NDArray[np.uint64]) -> Hops:
    """The hops to all peers on the right (what stands at those on the left means nothing).

    On level i the search stays in the start's own list and stops at its last member that is not beyond the key. So
    it makes as many hops there as the list has members between the last one that shares one bit more with the start
    and the key: the members with the other bit since then. That is the same for all starts that share i + 1 bits, so
    it is counted for lists, not for pairs: `walked` has a row for each list that is still shared, a column for each
    key, and counts the hops on all levels below.
    """
    topics, size = vectors.shape
    hops = np.empty((topics * size, size), dtype=np.uint8)
    start = np.arange(topics * size)  # those who still share their list with somebody
    row = start // size  # of `walked`, for each of them
    walked = np.zeros((topics, size), dtype=np.uint8)
    flat = vectors.ravel()
    for level in range(BITS):
        bit = (flat[start] >> np.uint64(BITS - 1 - level) & np.uint64(1)).astype(np.int64)
        child = 2 * row + bit
        own = np.zeros((2 * len(walked), size), dtype=bool)
        own[child, start % size] = True
        other = own.reshape(-1, 2, size)[:, ::-1].reshape(-1, size)
        passed = np.cumsum(other, axis=1, dtype=np.uint16)
        since = np.maximum.accumulate(np.where(own, passed, 0), axis=1)
        walked = np.repeat(walked, 2, axis=0) + (passed - since).astype(np.uint8)
        members = np.bincount(child, minlength=len(walked))
        alone = members[child] == 1
        hops[start[alone]] = walked[child[alone]]
        start, child = start[~alone], child[~alone]
        if not len(start):
            break
        kept = members > 1
        walked = walked[kept]
        row = (np.cumsum(kept) - 1)[child]
    return hops.reshape(topics, size, size)
