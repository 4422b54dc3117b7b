"""PSG-TBPS on converged topics: several nodes search for the subscribers at once (Kita 2025, 5.3)."""

import numpy as np
from numpy.typing import NDArray

from testbed.converged.flood import Hops
from testbed.converged.supports import NO_START, Starts

_FAR = 254  # hops to whoever does not start; one more still fits a byte
_Ints = NDArray[np.int64]


class Publications:
    """One publication of each publisher of some topics of `size`, from the nodes that start (`starts`).

    The topics' peers stand in one row of places, and behind each topic's peers is a place for nobody: slots that
    nobody serves lead there.
    """

    def __init__(self, starts: Starts, size: int) -> None:
        """Lay out the places once, for all that is asked."""
        _, self.topics, self.publishers = starts.shape
        nobody = starts == NO_START
        self.starts: _Ints = len(starts) - nobody.sum(axis=0)  # how many, [topic, publisher]
        places = np.where(nobody, size, starts) + (size + 1) * np.arange(self.topics)[:, None]
        self._places: _Ints = places.reshape(len(starts), -1)

    def paths(self, hops: Hops) -> Hops:
        """Hops to each subscriber by the start node that is first, `paths[topic, publisher, subscriber]`.

        `hops[topic, from, subscriber]`. The publisher begins at once, the others one hop later.
        """
        subscribers = hops.shape[2]
        nobody = np.full((self.topics, 1, subscribers), _FAR, dtype=np.uint8)
        rows = np.concatenate([hops, nobody], axis=1).reshape(-1, subscribers)
        paths: Hops = rows[self._places[0]]
        if len(self._places) > 1:
            soonest = rows[self._places[1]]
            another = np.empty_like(soonest)
            for places in self._places[2:]:
                rows.take(places, axis=0, out=another, mode="clip")
                np.minimum(soonest, another, out=soonest)
            np.minimum(paths, soonest + np.uint8(1), out=paths)
        return paths.reshape(self.topics, self.publishers, subscribers)

    def messages(self, messages: _Ints) -> _Ints:
        """What each publication sends, `[topic, publisher]`: each start node's multicast, and one to each of them.

        `messages[topic, start]`. The start nodes know nothing of each other, so nothing is suppressed between them.
        """
        nobody = np.zeros((self.topics, 1), dtype=np.int64)
        each = np.concatenate([messages + 1, nobody], axis=1).ravel()
        sent: _Ints = each.take(self._places).sum(axis=0) - 1  # the publisher needs none
        return sent.reshape(self.topics, self.publishers)
