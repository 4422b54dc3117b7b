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
    key, and counts the hops on the levels below. It changes at members only, so it is counted at those and repeated.
    """
    topics, size = vectors.shape
    hops = np.empty((topics * size, size), dtype=np.uint8)
    member = np.arange(
        topics * size
    )  # list after list, each in key order; those alone in a list are done
    row = member // size  # of `walked`: the list of each
    walked = np.zeros((topics, size), dtype=np.uint8)
    flat = vectors.ravel()
    for level in range(BITS):
        bit = (flat[member] >> np.uint64(BITS - 1 - level) & np.uint64(1)).astype(np.int64)
        halves = np.empty((len(walked), 2, size), dtype=np.uint8)
        for half in (0, 1):
            hops_at = _since_the_last(bit == half, row)
            halves[:, half] = walked + _up_to_the_next(hops_at, row, member % size, size)
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


def _since_the_last(is_it: NDArray[np.bool_], row: NDArray[np.int64]) -> NDArray[np.uint8]:
    """How many places ago each list had the last one that is it; where there was none yet, it does not matter."""
    place = np.arange(len(row))
    last = np.maximum.accumulate(np.where(is_it, place, -1))
    return (place - last).astype(np.uint8)


def _up_to_the_next(
    value: NDArray[np.uint8], row: NDArray[np.int64], column: NDArray[np.int64], size: int
) -> NDArray[np.uint8]:
    """Rows of `size`, filled with what stands at their members from there up to the next one's column."""
    begins = np.diff(row, prepend=-1) != 0
    upto = np.where(np.append(begins[1:], True), size, np.append(column[1:], 0))
    return np.repeat(value, upto - np.where(begins, 0, column)).reshape(-1, size)
