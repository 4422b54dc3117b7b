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


def neighbours_in_topics(left: Links, right: Links, size: int) -> Neighbours:
    """The neighbours inside the topics that the columns of `left` and `right` belong to, `size` columns each.

    The links may lead to peers outside these columns, whose first one counts as peer 0.
    """
    columns = left.shape[1]
    both = np.concatenate([left, right]).astype(np.int64)
    peer = np.broadcast_to(np.arange(columns), both.shape)
    inside = both // size == peer // size
    ends = np.unique(peer[inside] * columns + both[inside])
    first = np.searchsorted(ends, np.arange(columns + 1) * columns)
    return Neighbours(size, first, ends % columns)
