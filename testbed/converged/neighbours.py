"""The links inside topics, one per pair of neighbours however many levels they share."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testbed.converged.graph import Links


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
    nearer than that of the level below, so whoever is a neighbour on several levels is so on levels that follow.
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
