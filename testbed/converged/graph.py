"""A Skip Graph's lists, built from keys and membership vectors by sorting."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BITS = 64
NO_NODE = -1
Links = NDArray[np.int32]


def converge(owners: NDArray[np.int32], vectors: NDArray[np.uint64]) -> tuple[Links, Links]:
    """The left and the right neighbour of each peer on each level: `left[level, peer]`, `right[level, peer]`.

    `owners` names the node of each peer, peers in the order of their keys; `vectors` are those of the nodes. The list
    of level i that a peer is in holds the peers that share its first i bits, in key order. There are as many levels as
    have a link between two nodes, and always level 0. Lists are linear: `NO_NODE` is beyond their ends.
    """
    lefts, rights = [], []
    for order, first in lists_of_levels(owners, vectors):
        left = np.full(len(owners), NO_NODE, dtype=np.int32)
        right = np.full(len(owners), NO_NODE, dtype=np.int32)
        linked = ~first[1:]
        left[order[1:][linked]] = order[:-1][linked]
        right[order[:-1][linked]] = order[1:][linked]
        lefts.append(left)
        rights.append(right)
    return np.array(lefts), np.array(rights)


def lists_of_levels(
    owners: NDArray[np.int32], vectors: NDArray[np.uint64]
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.bool_]]]:
    """Level after level: the peers, list after list and each list in key order; and which peer is the first of a list.

    From level to level a list falls into two, by one bit, both in the order that it had; a peer that is alone in a list
    or only among peers of its own node is in no list of the levels above. So a level is one pass over the peers that
    are left.
    """
    bits = vectors[owners]
    order = np.arange(len(owners), dtype=np.int32)
    first = order == 0
    yield order, first
    for level in range(BITS):
        foreign = ~first[1:] & (owners[order[1:]] != owners[order[:-1]])
        lists = np.cumsum(first) - 1
        shared = np.zeros(len(order), dtype=bool)  # of lists: they hold peers of several nodes
        shared[lists[1:][foreign]] = True
        stays = shared[lists]
        order, lists = order[stays], lists[stays]
        halves = 2 * lists + (bits[order] >> np.uint64(BITS - 1 - level) & np.uint64(1)).astype(int)
        sorting = np.argsort(halves, kind="stable")
        order, halves = order[sorting], halves[sorting]
        first = changes(halves)
        if not (~first[1:] & (owners[order[1:]] != owners[order[:-1]])).any():
            return
        yield order, first


def changes(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where another value begins; the first one does."""
    return np.concatenate([[True], values[1:] != values[:-1]])[: len(values)]


# The links inside topics, one per pair of neighbours however many levels they share.


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Of each peer of some topics of `size`: those in its own topic, as compressed rows."""

    size: int  # peers of a topic
    first: NDArray[np.int64]  # where each peer's neighbours begin in `peers`, and the end
    peers: NDArray[np.int64]  # ascending within a row; peers are numbered topic after topic

    @property
    def topics(self) -> int:
        """How many."""
        return (len(self.first) - 1) // self.size

    @property
    def links(self) -> NDArray[np.int64]:
        """Of each topic, both directions counted."""
        return np.diff(self.first[:: self.size])

    @property
    def owners(self) -> NDArray[np.int64]:
        """Whose neighbour each of `peers` is."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))


def neighbours_in_topics(right: Links, size: int) -> Neighbours:
    """The neighbours inside the topics that the columns of `right` belong to, `size` columns each.

    Links may lead to peers outside these columns, whose first one counts as peer 0. A list's next member is never
    nearer than that of the level below, so a peer that is a neighbour on several levels is so on consecutive levels.
    """
    columns = right.shape[1]
    last = np.arange(size, columns + size) // size * size  # of each peer's topic, excluded
    begins, ends = [], []
    below = np.zeros(columns, dtype=right.dtype)
    for links in right:
        new = np.flatnonzero((links > below) & (links < last))
        begins.append(new)
        ends.append(links[new].astype(np.int64))
        below = np.maximum(below, links)
    begin, end = np.concatenate(begins), np.concatenate(ends)
    pairs = np.sort(np.concatenate([begin * columns + end, end * columns + begin]))
    owner, peers = np.divmod(pairs, columns)
    first = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=columns))])
    return Neighbours(size, first, peers)
