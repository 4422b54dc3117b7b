"""PSG-TBPS on converged topics: several nodes search for the subscribers at once (Kita 2025, 5.3)."""

from enum import StrEnum
from math import ceil, floor, log2

import numpy as np
from numpy.typing import NDArray

from testbed.converged.graph import BITS
from testbed.converged.multicast import Hops

# PSG-TBPS: which nodes search for the subscribers at the same time (Kita 2025, 5.3.1).


NO_START = -1
Starts = NDArray[np.int64]


class Support(StrEnum):
    """How a slot without a node in the space of membership vectors is filled."""

    NEXT = "next"  # the next node upward that does not serve yet
    EXACT = "exact"  # it is dropped


class SupportFrom(StrEnum):
    """The nodes that may serve as support nodes: the thesis leaves it open."""

    PARTICIPANTS = "participants"
    PUBLISHERS = "publishers"


def space_bits(participants: int) -> int:
    """How many bits of the vectors are used: enough for each participant to have a vector of its own."""
    return max(1, ceil(log2(participants)))


def start_count(bits: int, priority: int) -> int:
    """How many nodes start: the publisher alone at priority 1, a quarter of the space at priority 5."""
    return max(1, floor(1 + ((1 << bits) / 4 - 1) * (priority - 1) / 4))


def slots(bits: int, own: NDArray[np.int64], priority: int) -> NDArray[np.int64]:
    """The vectors that should start, from the publisher's own one upward: `[number, ...]` for publishers `own[...]`."""
    count = start_count(bits, priority)
    interval = (1 << bits) // count
    upward: NDArray[np.int64] = np.add.outer(interval * np.arange(count), own)
    return upward % (1 << bits)


def start_nodes(
    vectors: NDArray[np.uint64], publishers: int, priority: int, support: Support, among: int
) -> Starts:
    """The start nodes, `starts[number, topic, publisher]`: peers of the topic, the publisher itself first.

    `vectors[topic, peer]` are in key order, publishers first. The first `among` peers of a topic may serve. `NO_START`
    is where there is none. The nodes that may serve are in the order of their bits, of equal ones the smaller key
    first; a slot looks upward from its own bits in this order, cyclically.
    """
    topics, bits = len(vectors), space_bits(vectors.shape[1])
    prefix = (vectors[:, :among] >> np.uint64(BITS - bits)).astype(np.int64)
    order = np.argsort(prefix, axis=1, kind="stable")
    own = prefix[:, :publishers]
    wanted = slots(bits, own, priority)
    # How many stand below each place of each topic's space: where a slot begins to look.
    topic = np.arange(topics)[:, None]
    having = np.bincount((prefix + (topic << bits)).ravel(), minlength=topics << bits)
    having = having.reshape(topics, -1)
    below = np.cumsum(having, axis=1) - having
    found = below.ravel()[wanted + (topic << bits)]
    line = order.ravel()
    if support is Support.EXACT:
        there = having.ravel()[wanted + (topic << bits)] > 0
        starts = np.where(there, line[np.minimum(found, among - 1) + among * topic], NO_START)
        starts[0] = np.arange(publishers)
        return starts
    # How far above the publisher's own place each slot is served: behind the slot before it, so that none serves twice.
    place = np.argsort(order, axis=1)[:, :publishers]
    number = np.arange(len(wanted))[:, None, None]
    above = found - place + among * (wanted < own) - number
    above[0] = 0
    above = np.maximum.accumulate(above, axis=0) + number
    served = _within_one_round(above.reshape(len(above), -1), among).reshape(above.shape)
    starts = line[(served + place) % among + among * topic]
    return np.where(served == NO_START, NO_START, starts)


def _within_one_round(above: NDArray[np.int64], among: int) -> NDArray[np.int64]:
    """Slots that would be served by the publisher itself or later go to the first ones above it that are free."""
    late = above >= among
    columns = np.flatnonzero(late[-1])  # each slot is later than the one before
    if not columns.size:
        return above
    served = np.where(late, NO_START, above)
    taken = np.zeros((among + 1, len(columns)), dtype=bool)  # the last row: of those that are late
    np.put_along_axis(taken, np.minimum(above[:, columns], among), True, axis=0)
    taken[among] = True
    free = np.argsort(taken, axis=0, kind="stable")
    free[np.take_along_axis(taken, free, axis=0)] = NO_START
    turn = np.cumsum(late[:, columns], axis=0) - 1
    instead = np.take_along_axis(free, np.clip(turn, 0, among), axis=0)
    served[:, columns] = np.where(late[:, columns], instead, served[:, columns])
    return served


_FAR = 254  # hops to a node that does not start; one more still fits a byte
_Ints = NDArray[np.int64]


class Publications:
    """One publication of each publisher of some topics of `size`, from the nodes that start (`starts`).

    The topics' peers stand in one row of places, and behind each topic's peers is an empty place: slots that
    no node serves lead there.
    """

    def __init__(self, starts: Starts, size: int) -> None:
        """Lay out the places once, for all that is asked."""
        _, self.topics, self.publishers = starts.shape
        unserved = starts == NO_START
        self.starts: _Ints = len(starts) - unserved.sum(axis=0)  # how many, [topic, publisher]
        places = np.where(unserved, size, starts) + (size + 1) * np.arange(self.topics)[:, None]
        self._places: _Ints = places.reshape(len(starts), -1)

    def paths(self, hops: Hops) -> Hops:
        """Hops to each subscriber by the start node that is first, `paths[topic, publisher, subscriber]`.

        `hops[topic, from, subscriber]`. The publisher begins at once, the others one hop later.
        """
        subscribers = hops.shape[2]
        unserved = np.full((self.topics, 1, subscribers), _FAR, dtype=np.uint8)
        rows = np.concatenate([hops, unserved], axis=1).reshape(-1, subscribers)
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
        unserved = np.zeros((self.topics, 1), dtype=np.int64)
        each = np.concatenate([messages + 1, unserved], axis=1).ravel()
        sent: _Ints = each.take(self._places).sum(axis=0) - 1  # the publisher needs none
        return sent.reshape(self.topics, self.publishers)
