"""Whom publishers have heard of, and which subscribers their tables hold in the end.

A publisher has heard of the Skip Graph neighbours of its keys, which are sticky, and of the subscribers of its topics,
one after the other in any order. Others whom it may have heard of change nothing: by the tables' order they go first.
"""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from testbed.converged.adaptive import Heard, adapted
from testbed.converged.graph import BITS, NOBODY, Links
from testbed.converged.population import Population

_Ints = NDArray[np.int64]


class TableOf(StrEnum):
    """Whose table has the size that is given: the thesis does not say."""

    KEY = "key"  # each key has a table: fits what is reported, one hop up to about 50 subscribers with a size of 60
    NODE = "node"  # all keys of a node share one: with 5 keys it has more sticky entries than that


def shared_bits(vectors: NDArray[np.uint64], others: NDArray[np.uint64]) -> _Ints:
    """How many leading bits they share."""
    differ = vectors ^ others
    # Without the bit behind the leading one, rounding to a float cannot carry into the next power of two.
    _, length = np.frexp((differ & ~(differ >> np.uint64(1))).astype(np.float64))
    return BITS - length.astype(np.int64)


def held_by_keys(
    people: Population, links: tuple[Links, Links], size: int, random: np.random.Generator
) -> NDArray[np.bool_]:
    """The subscribers that the publisher's table for this topic holds, `[topic, subscriber]`."""
    own = np.arange(people.topics)[:, None] * people.size
    near = np.concatenate(links)[:, own[:, 0]].T.astype(np.int64)
    near.sort(axis=1)
    foreign = (near != NOBODY) & (people.owners[near] != people.owners[own])
    foreign[:, 1:] &= near[:, 1:] != near[:, :-1]
    subscribers = own + 1 + np.arange(people.subscribers)
    known = np.zeros(len(people.owners), dtype=bool)
    sticky_here = foreign & (near // people.size == own // people.size)
    known[near[sticky_here]] = True
    coming = random.permuted(subscribers, axis=1)
    who = np.concatenate([near, coming], axis=1)
    heard = _heard(
        people, own, who, near.shape[1], np.concatenate([foreign, ~known[coming]], axis=1)
    )
    held = np.zeros(len(people.owners), dtype=bool)
    held[who[adapted(heard, size) & (who // people.size == own // people.size)]] = True
    return np.take(held, subscribers)


def _heard(
    people: Population, own: _Ints, who: _Ints, sticky: int, there: NDArray[np.bool_]
) -> Heard:
    """Of tables for single keys."""
    vectors = people.vectors[people.owners]
    return Heard(
        there=there,
        level=np.where(there, shared_bits(vectors[own], vectors[who]), 0),
        sticky=np.broadcast_to(np.arange(who.shape[1]) < sticky, who.shape),
        subscribes=(who // people.size == own // people.size) & (who != own),
        urgent=np.zeros(who.shape, dtype=bool),
        distance=who - own,
    )
