"""Skip Graph search: from the highest level down, as far as possible on each without passing the key.

A multicast by search is the union of the searches for all subscribers. That is a tree, because the way to whoever is
passed on the way is the beginning of the same way; so each of its links carries the message once.
"""

import numpy as np
from numpy.typing import NDArray

from testbed.converged.flood import Hops
from testbed.converged.graph import BITS, changes


def search_hops(vectors: NDArray[np.uint64]) -> Hops:
    """Hops of the search, `hops[topic, from, to]`; `vectors[topic, peer]` in key order, all of a topic different."""
    both_ways = _rightward(np.concatenate([vectors, vectors[:, ::-1]]))
    to_the_right, to_the_left = both_ways[: len(vectors)], both_ways[len(vectors) :, ::-1, ::-1]
    rising = np.arange(vectors.shape[1])
    return np.where(rising[:, None] <= rising, to_the_right, to_the_left)


def _rightward(vectors: NDArray[np.uint64]) -> Hops:
    """The hops to all peers on the right (what stands at those on the left means nothing).

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
