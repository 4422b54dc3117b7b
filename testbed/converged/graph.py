"""A Skip Graph's lists, built from keys and membership vectors by sorting."""

import numpy as np
from numpy.typing import NDArray

BITS = 64
NOBODY = -1
Links = NDArray[np.int32]


def converge(owners: NDArray[np.int32], vectors: NDArray[np.uint64]) -> tuple[Links, Links]:
    """The left and the right neighbour of each peer on each level: `left[level, peer]`, `right[level, peer]`.

    `owners` names the node of each peer, peers in the order of their keys; `vectors` are those of the nodes. The list
    of level i that a peer is in holds the peers that share its first i bits, in key order. There are as many levels as
    have a link between two nodes, and always level 0. Lists are linear: `NOBODY` is beyond their ends.

    From level to level a list falls into two, by one bit, both in the order that it had; who is alone in a list or
    among peers of its own node is in no list of the levels above. That is one pass over those who are left per level.
    """
    bits = vectors[owners]
    order = np.arange(len(owners), dtype=np.int32)  # list after list, each in key order
    starts = np.zeros(len(owners), dtype=bool)  # of the first in each list
    starts[:1] = True
    lefts, rights = [], []
    for level in range(BITS + 1):
        joined = ~starts[1:]
        left = np.full(len(owners), NOBODY, dtype=np.int32)
        right = np.full(len(owners), NOBODY, dtype=np.int32)
        left[order[1:][joined]] = order[:-1][joined]
        right[order[:-1][joined]] = order[1:][joined]
        foreign = joined & (owners[order[1:]] != owners[order[:-1]])
        if level and not foreign.any():
            break
        lefts.append(left)
        rights.append(right)
        if level == BITS:
            break
        lists = np.cumsum(starts) - 1
        shared = np.zeros(lists[-1] + 1 if len(lists) else 0, dtype=bool)
        shared[lists[1:][foreign]] = True
        stay = shared[lists]
        order, lists = order[stay], lists[stay]
        halves = 2 * lists + (bits[order] >> np.uint64(BITS - 1 - level) & np.uint64(1)).astype(int)
        sorting = np.argsort(halves, kind="stable")
        order, halves = order[sorting], halves[sorting]
        starts = np.concatenate([[True], halves[1:] != halves[:-1]])[: len(order)]
    return np.array(lefts), np.array(rights)
