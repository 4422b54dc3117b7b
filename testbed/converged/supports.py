"""PSG-TBPS: which nodes search for the subscribers at the same time (Kita 2025, 5.3.1)."""

from enum import StrEnum
from math import ceil, floor, log2

import numpy as np
from numpy.typing import NDArray

from testbed.converged.graph import BITS

NO_START = -1
Starts = NDArray[np.int64]


class Support(StrEnum):
    """What becomes of a slot in the space of membership vectors that is nobody's."""

    NEXT = "next"  # the next one upward serves who does not yet
    EXACT = "exact"  # it is dropped


class SupportFrom(StrEnum):
    """Who may serve as a support node: the thesis does not say."""

    PARTICIPANTS = "participants"
    PUBLISHERS = "publishers"


def space_bits(participants: int) -> int:
    """How many bits of the vectors are looked at: enough for each participant to have a vector of its own."""
    return max(1, ceil(log2(participants)))


def start_count(bits: int, priority: int) -> int:
    """How many nodes start: the publisher alone at priority 1, a quarter of the space at priority 5."""
    return max(1, floor(1 + ((1 << bits) / 4 - 1) * (priority - 1) / 4))


def slots(bits: int, own: NDArray[np.int64], priority: int) -> NDArray[np.int64]:
    """The vectors that should start, from the publisher's own one upward; a last axis is added to `own`."""
    count = start_count(bits, priority)
    interval = (1 << bits) // count
    upward: NDArray[np.int64] = own[..., None] + interval * np.arange(count)
    return upward % (1 << bits)


def start_nodes(
    vectors: NDArray[np.uint64], publishers: int, priority: int, support: Support, among: int
) -> Starts:
    """Who starts, `starts[topic, publisher, number]`: peers of the topic, the publisher itself first.

    `vectors[topic, peer]` are in key order, publishers first. The first `among` peers of a topic may serve. `NO_START`
    fills the rest of a row. Those who may serve stand in the order of their bits, of equal ones the smaller key first;
    a slot looks upward from its own bits in this order, cyclically.
    """
    bits = space_bits(vectors.shape[1])
    prefix = (vectors[:, :among] >> np.uint64(BITS - bits)).astype(np.int64)
    order = np.argsort(prefix, axis=1, kind="stable")
    own = prefix[:, :publishers]
    wanted = slots(bits, own, priority)
    # One search for all topics: each has a space of its own in a long line of them.
    topic = np.arange(len(vectors))[:, None]
    line = (np.take_along_axis(prefix, order, axis=1) + (topic << bits)).ravel()
    found = np.searchsorted(line, wanted + (topic << bits)[..., None]) - among * topic[..., None]
    if support is Support.EXACT:
        chosen = _at(order, np.minimum(found, among - 1))
        starts = np.where(_at(prefix, chosen) == wanted, chosen, NO_START)
        starts[..., 0] = np.arange(publishers)
        return starts
    # How far above the publisher's own place each slot is served: behind the slot before it, so that none serves twice.
    place = np.argsort(order, axis=1)[:, :publishers]
    above = found - place[..., None] + among * (wanted < own[..., None])
    above[..., 0] = 0
    number = np.arange(above.shape[-1])
    above = number + np.maximum.accumulate(above - number, axis=-1)
    served = _within_one_round(above.reshape(-1, above.shape[-1]), among).reshape(above.shape)
    starts = _at(order, (served + place[..., None]) % among)
    return np.where(served == NO_START, NO_START, starts)


def _at(values: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each topic the values at its own places."""
    flat = places.reshape(len(places), -1)
    return np.take_along_axis(values, flat, axis=1).reshape(places.shape)


def _within_one_round(above: NDArray[np.int64], among: int) -> NDArray[np.int64]:
    """Slots that would be served by the publisher itself or later go to the first ones above it that are free."""
    late = above >= among
    served = np.where(late, NO_START, above)
    for row in np.flatnonzero(late.any(axis=1)):
        free = np.setdiff1d(np.arange(among), served[row])
        places = np.flatnonzero(late[row])[: len(free)]
        served[row, places] = free[: len(places)]
    return served
